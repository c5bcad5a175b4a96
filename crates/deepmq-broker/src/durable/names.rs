//! Whose messages are in a data directory: from the store's numbers to names of vhosts and queues.
//!
//! Owns the look-up, for who looks at a directory without a broker. Must not know what is in it besides.

use super::change::{Change, What};
use deepmq_model::Name;
use deepmq_model::message::Malformed;
use std::collections::BTreeMap;

/// The names of all queues that a topology ever knew, for no number is used twice.
#[derive(Debug, Clone, Default)]
pub struct QueueNames {
    names: BTreeMap<u64, QueueName>,
}

/// A queue and its vhost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueName {
    /// The vhost.
    pub vhost: Name,
    /// The queue.
    pub queue: Name,
}

impl QueueNames {
    /// Learns from a snapshot of the topology, or from a change after it.
    ///
    /// # Errors
    /// The bytes are none that this release can read; what was known stays.
    pub fn learn(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        self.names.extend(Change::decode_all(bytes)?.into_iter().filter_map(|change| match change.what {
            What::Queue { name, number, .. } => {
                Some((number, QueueName { vhost: change.vhost, queue: name }))
            }
            _ => None,
        }));
        Ok(())
    }

    /// The name behind a number.
    pub fn get(&self, number: u64) -> Option<&QueueName> {
        self.names.get(&number)
    }

    /// Whether any queue has this name, in this vhost if one is given.
    pub fn knows(&self, queue: &str, vhost: Option<&str>) -> bool {
        self.names.values().any(|name| name.is(queue, vhost))
    }

    /// A queue in words: by its name, or by its number if no name is known.
    pub fn describe(&self, number: u64) -> String {
        match self.get(number) {
            Some(QueueName { vhost, queue }) => format!("queue '{queue}' in vhost '{vhost}'"),
            None => format!("queue number {number:016x}"),
        }
    }
}

impl QueueName {
    /// Whether it is this one; without a vhost, in any.
    pub fn is(&self, queue: &str, vhost: Option<&str>) -> bool {
        &*self.queue == queue && vhost.is_none_or(|vhost| &*self.vhost == vhost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deepmq_model::Table;

    fn queue(vhost: &str, name: &str, number: u64) -> Vec<u8> {
        let what = What::Queue { name: name.into(), number, auto_delete: false, arguments: Table::default() };
        encode(vhost, what)
    }

    fn encode(vhost: &str, what: What) -> Vec<u8> {
        let mut bytes = Vec::new();
        Change { vhost: vhost.into(), what }.encode(&mut bytes);
        bytes
    }

    #[test]
    fn every_number_keeps_its_name_even_if_the_queue_is_gone() {
        let mut names = QueueNames::default();
        names.learn(&[queue("/", "a", 1), queue("blue", "a", 2)].concat()).unwrap();
        names.learn(&encode("/", What::NoQueue { name: "a".into() })).unwrap();
        names.learn(&queue("/", "a", 3)).unwrap();
        assert_eq!(names.describe(1), "queue 'a' in vhost '/'");
        assert_eq!(names.describe(2), "queue 'a' in vhost 'blue'");
        assert_eq!(names.describe(3), names.describe(1));
        assert_eq!(names.describe(0xabc), "queue number 0000000000000abc");
        assert!(names.knows("a", None) && names.knows("a", Some("blue")));
        assert!(!names.knows("a", Some("green")) && !names.knows("b", None));
        assert!(names.learn(b"\x01/\x07").is_err());
        assert_eq!(names.get(2).map(|name| &*name.vhost), Some("blue"));
    }
}
