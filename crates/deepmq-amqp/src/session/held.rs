//! What a connection holds of messages that are not published yet: bodies in the making, transactions.
//!
//! Owns the bound on it, and its part in the memory of all messages.

use super::Failure;
use crate::codec::ReplyCode;
use deepmq_broker::{Account, Memory};
use std::sync::Arc;

/// How much that is, in messages of the largest size allowed.
const MESSAGES_MAX: u64 = 2;

/// The bytes held.
#[derive(Debug)]
pub(super) struct Held {
    account: Account,
    max: u64,
}

impl Held {
    /// Nothing yet.
    pub(super) fn new(memory: Arc<Memory>, message_bytes_max: u64) -> Self {
        Self { account: Account::new(memory), max: message_bytes_max.saturating_mul(MESSAGES_MAX) }
    }

    /// So many bytes more, if the bound allows.
    pub(super) fn add(&mut self, bytes: usize) -> Result<(), Failure> {
        let sum = self.account.bytes() + bytes;
        if sum as u64 > self.max {
            let text = format!("unfinished messages of {sum} bytes are larger than max size {}", self.max);
            return Err(Failure::hard(ReplyCode::ResourceError, text));
        }
        self.account.set(sum);
        Ok(())
    }

    /// So many bytes fewer.
    pub(super) fn sub(&mut self, bytes: usize) {
        self.account.set(self.account.bytes().saturating_sub(bytes));
    }

    /// Nothing any more.
    pub(super) fn clear(&mut self) {
        self.account.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_messages_of_the_largest_size_are_held_and_not_a_byte_more() {
        let memory = Memory::new(1 << 20);
        let mut held = Held::new(memory.clone(), 100);
        held.add(199).unwrap();
        held.add(1).unwrap();
        assert_eq!(memory.used(), 200);
        assert_eq!(held.add(1).unwrap_err().code, ReplyCode::ResourceError);
        held.sub(200);
        assert_eq!(memory.used(), 0);
    }
}
