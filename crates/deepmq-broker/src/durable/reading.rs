//! The thread that reads messages back from segments, so that no thread that serves connections waits for the disk.
//!
//! Owns how much is read at once, and what becomes of damage. Must not know who needs the messages.

use crate::backlog::{Packed, decode_page};
use crate::message::MessageRef;
use crate::queue::{PageRead, Queue};
use deepmq_model::queue::Position;
use deepmq_storage::{ReadBlock, ReadError, Store};
use std::io;
use std::ops::Range;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

/// Read at once, in bytes.
const READ_BYTES: usize = 1024 * 1024;

#[derive(Debug)]
struct Request {
    queue: Weak<Queue>,
    number: u64,
    position: Position,
}

/// The thread. Stops when dropped.
#[derive(Debug)]
pub(super) struct PageReader {
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl PageReader {
    pub(super) fn start(store: Arc<Store>) -> io::Result<Self> {
        let (requests, asked) = channel::<Request>();
        let run = move || {
            for request in asked {
                let Some(queue) = request.queue.upgrade() else { continue };
                match read(&store, request.number, request.position) {
                    Ok(pages) => {
                        let lost = queue.paged_in(&pages);
                        if lost > 0 {
                            report(&queue, lost, &pages);
                        }
                    }
                    Err(error) => {
                        // The broker stops for it, rather than to serve one queue without its messages.
                        tracing::error!(%error, vhost = &**queue.vhost(), queue = &**queue.name(), "messages can not be read");
                        store.fail(&error);
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("paging-in".to_owned()).spawn(run)?;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    pub(super) fn ask(&self, queue: &Arc<Queue>, number: u64, position: Position) {
        let request = Request { queue: Arc::downgrade(queue), number, position };
        if let Some(requests) = &self.requests {
            // It listens as long as this lives.
            let _ = requests.send(request);
        }
    }
}

impl Drop for PageReader {
    fn drop(&mut self) {
        self.requests = None;
        // The last to hold the broker may be the thread itself, which ends without being waited for then.
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != thread::current().id())
        {
            // A panic there was reported there.
            let _ = thread.join();
        }
    }
}

/// Reads from `position` on.
fn read(store: &Store, number: u64, position: Position) -> Result<Vec<PageRead>, ReadError> {
    let Some(block) = store.find_block(number, position.0)? else {
        // Up to the next that is there, everything is gone.
        let next = store.next_block(number, position.0)?;
        let end = next.map_or(u64::MAX, |next| next.sequences.start);
        return Ok(vec![(position.0..end.max(position.0 + 1), None)]);
    };
    let read = store.read_ahead(number, &block, READ_BYTES)?;
    Ok(read.into_iter().map(unpack).collect())
}

/// Hands over the messages at `positions`, but for those that are damaged.
pub(super) fn each_of(
    store: &Store,
    number: u64,
    positions: Range<u64>,
    mut each: impl FnMut(Position, MessageRef<'_>),
) -> Result<(), ReadError> {
    let mut next = store.next_block(number, positions.start)?;
    while let Some(block) = next.filter(|block| block.sequences.start < positions.end) {
        let mut end = block.sequences.end;
        for ReadBlock { block, content } in store.read_ahead(number, &block, READ_BYTES)? {
            end = end.max(block.sequences.end);
            let at = |index: usize| block.sequences.start + index as u64;
            // What is damaged here is found to be so again once it is needed, and told then.
            let Ok(content) = content else { continue };
            let _ = decode_page(&content, |index, message| {
                if let Some(message) = message.filter(|_| positions.contains(&at(index))) {
                    each(Position(at(index)), message);
                }
            });
        }
        next = store.next_block(number, end)?;
    }
    Ok(())
}

fn unpack(ReadBlock { block, content }: ReadBlock) -> PageRead {
    let packed = match content {
        Ok(content) => Packed::decode(&content).map_err(|error| error.to_string()),
        Err(damage) => Err(damage.to_string()),
    };
    // Whether anything of it is needed, the queue knows.
    let packed = packed.inspect_err(|error| tracing::info!(%error, "a page can not be read"));
    (block.sequences, packed.ok().map(Arc::new))
}

fn report(queue: &Queue, messages: u64, pages: &[PageRead]) {
    for (positions, _) in pages.iter().filter(|(_, packed)| packed.is_none()) {
        tracing::error!(
            vhost = &**queue.vhost(),
            queue = &**queue.name(),
            messages,
            from = positions.start,
            to = positions.end,
            "messages are lost, the rest is served"
        );
    }
}
