//! `deepmq log verify`.
//!
//! Owns the words of the report. Must not know how damage is found.

use std::io::{self, Write};
use std::path::Path;

use anyhow::anyhow;
use deepmq_broker::durable::QueueNames;
use deepmq_storage::{Report, Seam, verify};

use super::Outcome;

/// Checks the directory and tells what was found; also whether telling worked.
pub(super) fn run(dir: &Path, out: &mut impl Write) -> anyhow::Result<(io::Result<()>, Outcome)> {
    let report = verify(&Seam::real(), dir)?;
    let mut names = QueueNames::default();
    let mut damage = Vec::new();
    let changes = report.topology.iter().map(|(_, bytes)| bytes);
    for bytes in report.snapshot.iter().chain(changes) {
        if let Err(error) = names.learn(bytes) {
            damage.push(format!("the topology can not be read: {error}"));
        }
    }
    damage.extend(report.damage.iter().map(|damage| damage.describe(|queue| names.describe(queue))));
    let told = tell(dir, &report, &damage, out);
    let outcome = match damage.len() {
        0 => Outcome::Sound,
        count => Outcome::Damaged(anyhow!("{} is damaged, see the {count} lines of damage", dir.display())),
    };
    Ok((told, outcome))
}

fn tell(dir: &Path, report: &Report, damage: &[String], out: &mut impl Write) -> io::Result<()> {
    for damage in damage {
        writeln!(out, "damage: {damage}")?;
    }
    if report.torn_bytes > 0 {
        let bytes = report.torn_bytes;
        writeln!(
            out,
            "torn: {bytes} bytes at the end of the journal, never confirmed: a crash, or a running broker"
        )?;
    }
    let Report { queues, journal_messages, blocks, block_bytes, .. } = report;
    let end = if report.clean { "closed in order" } else { "not closed: in use, or after a crash" };
    writeln!(
        out,
        "{}: {queues} queues with {journal_messages} messages in the journal and {blocks} blocks of {block_bytes} \
         bytes in segments, {end}",
        dir.display()
    )
}
