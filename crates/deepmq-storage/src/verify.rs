//! Looking at a data directory without changing it.
//!
//! Owns the check of every byte that matters and the listing of what is there. Takes no lock, so it works beside a running
//! broker: a look during which files went is taken again, and so is one that found damage. Must not know what is in
//! messages.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::RangeSet;
use crate::data_dir::DataDir;
use crate::failure::Latch;
use crate::format::{self, Format};
use crate::journal::replay;
use crate::layout::Layout;
use crate::record::{Content, Lsn, Message};
use crate::recover::{Damage, Found, ReplayError, find};
use crate::seam::{OpenMode, Seam};
use crate::segment::{BlockRef, FileCache, QueueSegments, ReadError};

/// How often a look is taken again because the directory changed meanwhile.
const LOOKS_MAX: usize = 10;
const OPEN_FILES_MAX: usize = 8;

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// What is not as it was written.
    pub damage: Vec<Damage>,
    /// Bytes at the end of the journal that a crash has torn, or that a running broker is just writing.
    pub torn_bytes: u64,
    /// The journal was closed in order.
    pub clean: bool,
    /// Queues anything is known of.
    pub queues: usize,
    /// Messages in the journal that are still needed and in no block.
    pub journal_messages: u64,
    /// Blocks in segments, and their bytes.
    pub blocks: u64,
    /// Bytes of their content.
    pub block_bytes: u64,
    /// The snapshot of the topology, which tells whose queues these are.
    pub snapshot: Option<Vec<u8>>,
    /// The changes after it, in order.
    pub topology: Vec<(Lsn, Vec<u8>)>,
}

/// Why a directory was not looked at.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// It is not a data directory, as far as can be told.
    #[error("{} is no data directory, or the file that says so is damaged", root.display())]
    Unknown {
        /// The directory.
        root: PathBuf,
    },
    /// A later release wrote it.
    #[error("{} has format version {version}, this release knows {}", root.display(), format::VERSION)]
    Newer {
        /// The directory.
        root: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The file system refused to read.
    #[error("can not read {}: {source}", root.display())]
    Io {
        /// The directory.
        root: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// A running broker changed it each time it was looked at.
    #[error("{} changes faster than it can be read", root.display())]
    Busy {
        /// The directory.
        root: PathBuf,
    },
}

/// A piece of what is in a directory.
#[derive(Debug)]
pub enum Dumped<'a> {
    /// The snapshot of the topology.
    Snapshot(&'a [u8]),
    /// A change of the topology that the snapshot does not tell.
    Topology(Lsn, &'a [u8]),
    /// A message in the journal that is still needed.
    Message {
        /// The queue.
        queue: u64,
        /// Its sequence.
        sequence: u64,
        /// The message.
        message: Message<'a>,
    },
    /// A block in a segment.
    Block {
        /// The queue.
        queue: u64,
        /// Where it lies.
        block: &'a BlockRef,
        /// Its content, unless it is damaged.
        content: Result<&'a [u8], &'a Damage>,
        /// Those of its sequences that are not settled.
        needed: Vec<Range<u64>>,
    },
    /// Messages in the journal that are needed no more and still lie there.
    Settled {
        /// The queue.
        queue: u64,
        /// Their sequences.
        sequences: Range<u64>,
    },
}

/// Checks everything in a data directory. Damage is told if a second look finds it too: beside a running broker a first one
/// may be half before a change and half after it.
///
/// # Errors
/// See [`VerifyError`]. Damage is no error; it is what the report is about.
pub fn verify(seam: &Seam, root: &Path) -> Result<Report, VerifyError> {
    let first = look(seam, root, report)?;
    if first.damage.is_empty() {
        return Ok(first);
    }
    let mut second = look(seam, root, report)?;
    second.damage.retain(|damage| first.damage.contains(damage));
    Ok(second)
}

fn report(dir: &DataDir, found: &Found) -> io::Result<Report> {
    let recovered = &found.recovered;
    let in_journal = recovered.queues.values().flat_map(|queue| queue.in_journal.iter());
    let mut report = Report {
        damage: recovered.damage.clone(),
        torn_bytes: recovered.torn_bytes,
        clean: recovered.clean,
        queues: recovered.queues.len(),
        journal_messages: in_journal.map(|range| range.end - range.start).sum(),
        snapshot: recovered.snapshot.clone(),
        topology: recovered.topology.clone(),
        ..Report::default()
    };
    let mut damage = Vec::new();
    each_block(dir, found, &mut damage, |queue, block, content| {
        report.blocks += 1;
        report.block_bytes += u64::from(block.bytes);
        // What nobody needs may have been given back.
        let settled = recovered.queues.get(&queue).map(|known| &known.state.settled);
        let needed = !settled.is_some_and(|settled| settled.covers(block.sequences.clone()));
        report.damage.extend(content.err().filter(|_| needed).cloned());
    })?;
    report.damage.extend(damage);
    Ok(report)
}

/// Hands over everything in a data directory: the topology, then what lies in the journal settled, its messages in the order
/// of sequences within each queue, and the blocks of each queue's segments. Damage is left out but for damaged blocks;
/// [`verify`] tells it.
///
/// # Errors
/// See [`VerifyError`]. Where a running broker changes the directory meanwhile, pieces may be handed over twice.
pub fn dump(seam: &Seam, root: &Path, mut take: impl FnMut(Dumped<'_>)) -> Result<(), VerifyError> {
    look(seam, root, |dir, found| {
        let recovered = &found.recovered;
        if let Some(snapshot) = &recovered.snapshot {
            take(Dumped::Snapshot(snapshot));
        }
        for (lsn, bytes) in &recovered.topology {
            take(Dumped::Topology(*lsn, bytes));
        }
        for (queue, settled) in settled_in_journal(dir, found)? {
            settled.iter().for_each(|sequences| take(Dumped::Settled { queue, sequences }));
        }
        let message =
            |queue, sequence, message: Message<'_>| take(Dumped::Message { queue, sequence, message });
        recovered.replay_from(dir, message).map_err(|ReplayError { source }| source)?;
        each_block(dir, found, &mut Vec::new(), |queue, block, content| {
            let state = recovered.queues.get(&queue).map(|known| &known.state.settled);
            let gaps = |settled: &RangeSet| settled.gaps(block.sequences.clone()).collect();
            let needed = state.map(gaps).unwrap_or_default();
            take(Dumped::Block { queue, block, content, needed });
        })
    })
}

/// What the journal's records place although it is settled, by queue. Queues that are gone are left out.
fn settled_in_journal(dir: &DataDir, found: &Found) -> io::Result<BTreeMap<u64, RangeSet>> {
    let mut placed: BTreeMap<u64, RangeSet> = BTreeMap::new();
    let recovered = &found.recovered;
    replay(dir, &recovered.outline, |_, _, content| {
        let Content::Batch(batch) = content else { return };
        batch.placements().for_each(|placement| {
            placed.entry(placement.queue).or_default().insert(placement.sequences());
        });
    })?;
    let settled = placed.into_iter().filter_map(|(queue, placed)| {
        let known = recovered.queues.get(&queue)?;
        let needed: RangeSet = placed.iter().flat_map(|range| known.state.settled.gaps(range)).collect();
        Some((queue, placed.iter().flat_map(|range| needed.gaps(range)).collect()))
    });
    Ok(settled.collect())
}

fn each_block(
    dir: &DataDir,
    found: &Found,
    damage: &mut Vec<Damage>,
    mut see: impl FnMut(u64, &BlockRef, Result<&[u8], &Damage>),
) -> io::Result<()> {
    let cache = Arc::new(FileCache::new(OPEN_FILES_MAX, OpenMode::Read));
    for (&queue, segments) in &found.segments {
        let mut of_queue = QueueSegments::new(dir.clone(), Arc::clone(&cache), 0, queue);
        of_queue.adopt(segments.iter().cloned());
        for segment in segments {
            damage.extend(of_queue.footer_damage(segment.number).map_err(refusal)?);
            let blocks: Vec<_> =
                of_queue.blocks(segment.number).map_err(refusal)?.values().cloned().collect();
            for block in &blocks {
                match of_queue.read(block) {
                    Ok(content) => see(queue, block, Ok(&content)),
                    Err(ReadError::Damaged(damage)) => see(queue, block, Err(&damage)),
                    Err(ReadError::Io { source, .. }) => return Err(source),
                }
            }
        }
    }
    Ok(())
}

fn refusal(error: ReadError) -> io::Error {
    match error {
        ReadError::Io { source, .. } => source,
        ReadError::Damaged(damage) => io::Error::new(io::ErrorKind::InvalidData, damage.to_string()),
    }
}

/// Takes a look, again where files went meanwhile. Files that came do no harm: what is in them is told by the next look.
fn look<T>(
    seam: &Seam,
    root: &Path,
    mut look: impl FnMut(&DataDir, &Found) -> io::Result<T>,
) -> Result<T, VerifyError> {
    let io = |source| VerifyError::Io { root: root.to_owned(), source };
    let layout = Layout::new(root);
    let known = format::read(seam.disk.as_ref(), &layout).map_err(io)?;
    let (tag, whole) = match known {
        Format::Known { tag, whole } => (tag, whole),
        Format::Newer(version) => return Err(VerifyError::Newer { root: root.to_owned(), version }),
        Format::Missing | Format::Damaged => return Err(VerifyError::Unknown { root: root.to_owned() }),
    };
    let dir = DataDir { disk: Arc::clone(&seam.disk), layout, latch: Latch::default(), tag };
    let files = || dir.disk.list(&dir.layout.journal_dir());
    let mut still = 0;
    for _ in 0..LOOKS_MAX {
        let before = files().map_err(io)?;
        let seen = find(&dir).and_then(|mut found| {
            if !whole {
                found.recovered.damage.push(Damage::Format { file: dir.layout.format() });
            }
            look(&dir, &found)
        });
        match seen {
            Ok(seen) => return Ok(seen),
            Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(io(source)),
            Err(source) => {
                // A queue's files may have gone without any of the journal's, but not each time.
                still = if files().map_err(io)? == before { still + 1 } else { 0 };
                if still == LOOKS_MAX / 2 {
                    return Err(io(source));
                }
            }
        }
    }
    Err(VerifyError::Busy { root: root.to_owned() })
}
