//! Clients that wait for replies without a queue: each under an address of its own, to which the default exchange leads.
//!
//! Owns who waits where. A reply is handed over at once or not at all, and never kept.

use super::Vhost;
use crate::message::MessageRef;
use crate::subscriber::Subscriber;
use deepmq_model::Name;
use hashbrown::HashMap;
use parking_lot::RwLock;
use std::sync::Arc;

/// Who waits, by address. Its lock is a leaf: nothing else is taken while it is held.
#[derive(Debug, Default)]
pub(super) struct Replies(RwLock<HashMap<Name, Waiting>>);

/// A connection, and the channel of it that waits.
type Waiting = (Arc<dyn Subscriber>, u16);

/// A client waits for replies as long as this lives.
#[derive(Debug)]
pub struct Expecting {
    address: Name,
    replies: Arc<Replies>,
}

impl Expecting {
    /// The address that replies are sent to.
    pub fn address(&self) -> &Name {
        &self.address
    }
}

impl Drop for Expecting {
    fn drop(&mut self) {
        self.replies.0.write().remove(&self.address);
    }
}

impl Vhost {
    /// A channel waits for replies from now on. Nobody else may have the address.
    pub fn expect_replies(&self, address: Name, subscriber: Arc<dyn Subscriber>, channel: u16) -> Expecting {
        self.replies.0.write().insert(address.clone(), (subscriber, channel));
        Expecting { address, replies: self.replies.clone() }
    }

    /// Whether somebody waits for replies there.
    pub fn expects_replies(&self, address: &str) -> bool {
        self.replies.0.read().contains_key(address)
    }

    /// Hands a reply over to who waits for it at this address; false: nobody does, or takes more now.
    pub fn reply(&self, address: &[u8], message: &MessageRef<'_>) -> bool {
        let Ok(address) = std::str::from_utf8(address) else { return false };
        let waiting = self.replies.0.read().get(address).cloned();
        waiting.is_some_and(|(subscriber, channel)| {
            let taken = subscriber.reply(channel, message);
            if taken {
                subscriber.wake();
            }
            taken
        })
    }
}
