//! Definitions that are imported when the broker starts, before anybody can connect.
//!
//! Owns reading the file and saying what was made of it. Must not know what definitions are.

use std::path::Path;

use anyhow::{Context, anyhow};
use deepmq_broker::Broker;
use deepmq_broker::definitions::{Definitions, Scope};
use tracing::{info, warn};

/// Imports the file at `path`, all of it or nothing.
pub(crate) fn load(broker: &Broker, path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    let remedy = "correct it, or give another with --load-definitions";
    let text = std::fs::read(path)
        .map_err(|error| anyhow!("the definitions {shown} can not be read: {error}; {remedy}"))?;
    let imported = Definitions::read(&text, Scope::Broker)
        .and_then(|definitions| broker.import_definitions(&definitions))
        .map_err(|error| anyhow!("the definitions {shown} can not be imported, {error}; {remedy}"))?;
    for note in &imported.notes {
        warn!(file = %shown, note, "not taken from the definitions");
    }
    broker.wait_durable(imported.lsn).context("the definitions can not be kept")?;
    info!(file = %shown, changed = imported.lsn.is_some(), "definitions imported");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use deepmq_broker::BrokerConfig;
    use deepmq_storage::Seam;

    #[test]
    fn a_file_is_imported_or_refused_by_name_and_place() {
        let broker = Broker::start(BrokerConfig::default(), Seam::simulated(1)).expect("it is all default");
        let dir = tempfile::tempdir().expect("there is room for a test");
        let path = dir.path().join("definitions.json");
        let try_with = |text: &str| {
            std::fs::write(&path, text).expect("there is room for a test");
            load(&broker, &path).map_err(|error| error.to_string())
        };
        assert_eq!(try_with(r#"{"vhosts": [{"name": "shop"}]}"#), Ok(()));
        assert!(broker.vhost("shop").is_some());
        let error =
            try_with(r#"{"vhosts": [{"name": "other"}, {"name": ""}]}"#).expect_err("a name is missing");
        assert!(
            error.contains("definitions.json can not be imported, vhosts[1]: the name of a vhost"),
            "{error}"
        );
        assert!(broker.vhost("other").is_none());
    }
}
