//! What is logged.
//!
//! Owns how a filter is written. Must not know where logs go.

use std::str::FromStr;

use tracing_subscriber::filter::{LevelFilter, Targets};

use super::{BadValue, deserialize_from_text};

/// A level, or levels per module, separated by commas.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogFilter(pub(crate) Targets);

impl Default for LogFilter {
    fn default() -> Self {
        Self(Targets::new().with_default(LevelFilter::INFO))
    }
}

impl FromStr for LogFilter {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        const FORM: BadValue =
            BadValue("write off, error, warn, info, debug or trace, or info,deepmq_amqp=debug");
        let mut targets = Targets::new();
        for part in text.split(',').map(str::trim) {
            // The library takes much more: a lone word for a module's name, a number or nothing for a level.
            let (module, level) = part.split_once('=').map_or((None, part), |(m, level)| (Some(m), level));
            if level.is_empty() || level.parse::<u8>().is_ok() || module == Some("") {
                return Err(FORM);
            }
            let level: LevelFilter = level.parse().map_err(|_| FORM)?;
            targets = match module {
                Some(module) => targets.with_target(module, level),
                None => targets.with_default(level),
            };
        }
        Ok(Self(targets))
    }
}

deserialize_from_text!(LogFilter);

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_filter_is_a_level_for_all_and_levels_for_modules() {
        let LogFilter(filter) = "warn, deepmq_amqp=debug".parse().unwrap();
        assert!(filter.would_enable("deepmq_broker", &Level::WARN));
        assert!(!filter.would_enable("deepmq_broker", &Level::INFO));
        assert!(filter.would_enable("deepmq_amqp::session", &Level::DEBUG));
        let LogFilter(off) = "off".parse().unwrap();
        assert!(!off.would_enable("deepmq_broker", &Level::ERROR));
    }

    #[test]
    fn a_misspelt_level_is_refused() {
        for text in ["", "inof", "3", "info,", "deepmq=loud", "=info", "deepmq"] {
            assert!(text.parse::<LogFilter>().is_err(), "{text}");
        }
    }
}
