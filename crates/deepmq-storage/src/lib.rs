//! The floor of the broker: the seam through which time, randomness and the disk enter, and all that is kept on disk.
//!
//! Owns the traits of that seam, their real implementations and their simulated ones; the journal that makes things
//! durable, the segments that hold what memory does not, and what is read back at the start. Knows queues as numbers,
//! messages as numbered bytes. Must not know what is in them, queues' semantics, protocols or tokio.
//!
//! ```text
//! BatchBuilder -> Journal::append -> run_once: write, sync -> mark moves -> waiters        (in)
//! blocks -> Store::append_block -> checkpoint -> the oldest journal file is recycled       (later)
//! Store::open -> Recovered: snapshot, topology, states -> replay: messages of the journal  (at the start)
//! ```

mod bytes;
mod checkpoint;
mod data_dir;
mod failure;
mod format;
mod journal;
mod latency;
mod layout;
mod ranges;
mod record;
mod recover;
pub mod seam;
mod segment;
mod snapshot;
mod store;
mod verify;

pub use failure::StorageFailure;
pub use journal::{
    AppendError, Appended, Blocker, Durability, Journal, JournalLatencies, JournalThread, Reclaim,
};
pub use latency::{LATENCY_BOUNDS, Latencies, LatencyCounts};
pub use ranges::RangeSet;
pub use record::{Batch, BatchBuilder, Draft, Lsn, Message, Placement, QueueState, Settlement};
pub use recover::{Damage, LostMessages, Recovered, RecoveredQueue, ReplayError};
pub use seam::Seam;
pub use segment::{BlockRef, NewBlock, ReadBlock, ReadError, SegmentStats};
pub use store::{OpenError, Options, Store};
pub use verify::{Dumped, Report, VerifyError, dump, verify};
