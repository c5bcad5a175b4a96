//! Reading: into a buffer that all connections of a thread share, so that an idle connection has none.
//!
//! Owns the bytes of a frame that has not come whole. Must not know frames.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;

/// Bytes per read at most.
const READ_BYTES_MAX: usize = 128 * 1024;
/// With this much of a frame there, the rest is read behind it instead of being copied each time.
const COPIED_BYTES_MAX: usize = 4 * 1024;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES_MAX]);
}

/// What was read and not used.
#[derive(Debug, Default)]
pub(super) struct Input {
    rest: Vec<u8>,
}

impl Input {
    /// Reads once, and gives `handle` all there is; it returns how much of that it used. Returns how many bytes came.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut TcpStream,
        handle: impl FnOnce(&[u8]) -> usize,
    ) -> Poll<io::Result<usize>> {
        if self.rest.len() > COPIED_BYTES_MAX {
            self.poll_read_behind(cx, socket, handle)
        } else {
            self.poll_read_shared(cx, socket, handle)
        }
    }

    fn poll_read_shared(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut TcpStream,
        handle: impl FnOnce(&[u8]) -> usize,
    ) -> Poll<io::Result<usize>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let kept = self.rest.len();
            let (before, room) =
                scratch.split_at_mut_checked(kept).expect("what is copied is less than a read");
            let count = ready!(poll_into(cx, socket, room))?;
            before.copy_from_slice(&self.rest);
            let bytes = scratch.get(..kept + count).unwrap_or_default();
            let used = handle(bytes);
            self.rest.clear();
            self.rest.extend_from_slice(bytes.get(used..).unwrap_or_default());
            Poll::Ready(Ok(count))
        })
    }

    fn poll_read_behind(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut TcpStream,
        handle: impl FnOnce(&[u8]) -> usize,
    ) -> Poll<io::Result<usize>> {
        let kept = self.rest.len();
        self.rest.resize(kept + READ_BYTES_MAX, 0);
        let read = poll_into(cx, socket, self.rest.get_mut(kept..).unwrap_or_default());
        let count = if let Poll::Ready(Ok(count)) = read { count } else { 0 };
        self.rest.truncate(kept + count);
        ready!(read)?;
        let used = handle(&self.rest);
        self.rest.drain(..used);
        Poll::Ready(Ok(count))
    }

    /// Gives `handle` what is left from earlier.
    pub(super) fn again(&mut self, handle: impl FnOnce(&[u8]) -> usize) {
        if !self.rest.is_empty() {
            let used = handle(&self.rest);
            self.rest.drain(..used);
        }
    }

    /// Gives memory back.
    pub(super) fn trim(&mut self) {
        if self.rest.is_empty() {
            self.rest = Vec::new();
        }
    }
}

fn poll_into(cx: &mut Context<'_>, socket: &mut TcpStream, room: &mut [u8]) -> Poll<io::Result<usize>> {
    let mut buf = ReadBuf::new(room);
    ready!(Pin::new(socket).poll_read(cx, &mut buf))?;
    Poll::Ready(Ok(buf.filled().len()))
}
