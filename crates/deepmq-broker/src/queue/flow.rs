//! Pacing: publishers of a queue whose consumers cannot keep up wait for their turn.
//!
//! Owns the turnstile. Each batch that goes into a long queue takes a ticket, good once as many messages have left as
//! the tickets before it and itself brought. So what comes in is what goes out, however many publishers there are. Must
//! not know time: how long a publisher is willing to wait is its own business.

use std::task::Waker;

/// Up to this many ready messages nobody waits.
const FREE_READY_MAX: u64 = 32 * 1024;
/// ... if they take no more than this, in bytes.
const FREE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A publisher's turn: see [`Queue::poll_turn`](super::Queue::poll_turn).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u64);

/// The turnstile of one queue.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// Messages that have left the ready ones, ever.
    left: u64,
    /// The last ticket.
    issued: u64,
    waiting: Vec<(Ticket, Waker)>,
}

impl Flow {
    /// Whether publishers are to wait.
    pub(super) fn is_long(ready: u64, bytes: usize) -> bool {
        ready > FREE_READY_MAX || bytes > FREE_BYTES_MAX
    }

    /// Takes a ticket for so many messages.
    pub(super) fn issue(&mut self, messages: u64) -> Ticket {
        self.issued = self.issued.max(self.left) + messages;
        Ticket(self.issued)
    }

    /// Whether it is the ticket's turn; if not, `waker` is woken when it is.
    pub(super) fn poll(&mut self, ticket: Ticket, waker: &Waker) -> bool {
        if ticket.0 <= self.left {
            return true;
        }
        match self.waiting.iter_mut().find(|(_, known)| known.will_wake(waker)) {
            Some((known, _)) => *known = ticket,
            None => self.waiting.push((ticket, waker.clone())),
        }
        false
    }

    /// So many messages have left; moves the wakers of those whose turn it is.
    pub(super) fn leave(&mut self, messages: u64, mut wake: impl FnMut(Waker)) {
        self.left += messages;
        if self.waiting.is_empty() {
            return;
        }
        let left = self.left;
        self.waiting.extract_if(.., |(ticket, _)| ticket.0 <= left).for_each(|(_, waker)| wake(waker));
    }

    /// The queue is short, gone or without consumers: nobody waits any more.
    pub(super) fn open(&mut self, wake: impl FnMut(Waker)) {
        self.issued = self.left;
        self.waiting.drain(..).map(|(_, waker)| waker).for_each(wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_come_due_in_turn_as_messages_leave() {
        let mut flow = Flow::default();
        flow.leave(10, drop);
        let (first, second) = (flow.issue(100), flow.issue(50));
        assert!(!flow.poll(first, Waker::noop()));
        flow.leave(99, drop);
        assert!(!flow.poll(first, Waker::noop()));
        flow.leave(1, drop);
        assert!(flow.poll(first, Waker::noop()));
        assert!(!flow.poll(second, Waker::noop()));
        flow.leave(50, drop);
        assert!(flow.poll(second, Waker::noop()));
    }

    #[test]
    fn who_waits_is_woken_once_when_due_and_all_are_when_the_queue_opens() {
        let mut flow = Flow::default();
        let (first, second) = (flow.issue(10), flow.issue(10));
        flow.poll(first, Waker::noop());
        let mut woken = 0;
        flow.leave(10, |_| woken += 1);
        assert_eq!(woken, 1);
        flow.poll(second, Waker::noop());
        flow.open(|_| woken += 1);
        assert_eq!(woken, 2);
    }
}
