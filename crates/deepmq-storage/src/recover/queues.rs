//! The queues' directories.
//!
//! Owns reading checkpoints, and what to do without one. Segments are not opened. Must not change anything.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::Damage;
use crate::checkpoint;
use crate::data_dir::DataDir;
use crate::layout::{queue_id, segment_number};
use crate::record::QueueState;
use crate::seam::OpenMode;
use crate::segment::{Segment, rebuild};

/// What checkpoints say.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    pub(crate) states: Vec<QueueState>,
    pub(crate) segments: BTreeMap<u64, Vec<Segment>>,
    /// Segments no checkpoint lists; a whole directory where there is none.
    pub(crate) orphans: BTreeSet<(u64, Option<u64>)>,
    /// Segments a checkpoint lists that are missing or shorter than it says.
    pub(crate) missing: Vec<(u64, Segment)>,
    pub(crate) damage: Vec<Damage>,
}

pub(crate) fn read_queues(dir: &DataDir) -> io::Result<Queues> {
    let mut queues = Queues::default();
    let entries = match dir.disk.list(&dir.layout.queues_dir()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(queues),
        entries => entries?,
    };
    for queue in entries.iter().filter_map(|entry| queue_id(&entry.name)) {
        queues.read(dir, queue)?;
    }
    Ok(queues)
}

impl Queues {
    fn read(&mut self, dir: &DataDir, queue: u64) -> io::Result<()> {
        let Some(bytes) = read_checkpoint(dir, queue)? else {
            self.orphans.insert((queue, None));
            return Ok(());
        };
        let Some((state, segments)) = checkpoint::decode(&bytes, dir.tag, queue) else {
            self.damage.push(Damage::Checkpoint { file: dir.layout.checkpoint(queue), queue });
            let segments = rebuild(dir, queue, &mut self.damage)?;
            let next = segments.iter().map(|segment| segment.sequences.end()).max().unwrap_or(0);
            self.states.push(QueueState { queue, next, ..QueueState::default() });
            self.segments.insert(queue, segments);
            return Ok(());
        };
        let names = dir.disk.list(&dir.layout.queue_dir(queue))?;
        let files: BTreeSet<u64> = names.iter().filter_map(|entry| segment_number(&entry.name)).collect();
        let listed: BTreeSet<u64> = segments.iter().map(|segment| segment.number).collect();
        self.orphans.extend(files.difference(&listed).map(|number| (queue, Some(*number))));
        let (present, missing): (Vec<_>, Vec<_>) =
            segments.into_iter().partition(|segment| files.contains(&segment.number));
        self.missing.extend(missing.into_iter().map(|segment| (queue, segment)));
        self.states.push(state);
        self.segments.insert(queue, present);
        Ok(())
    }
}

fn read_checkpoint(dir: &DataDir, queue: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match dir.disk.open(&dir.layout.checkpoint(queue), OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = vec![0; usize::try_from(file.size()?).unwrap_or(usize::MAX)];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(Some(bytes))
}
