//! Class queue: declaring, binding, purging and deleting queues.

use deepmq_model::Table;

class! {
    50 "queue" <'a> => Method<'_>;

    /// Creates a queue or checks that it is there.
    Declare<'a> = 10 {
        ticket: u16,
        queue: &'a str,
        [passive, durable, exclusive, auto_delete, no_wait],
        arguments: Table,
    }
    /// It is there. The messages are those ready.
    DeclareOk<'a> = 11 { queue: &'a str, message_count: u32, consumer_count: u32, }
    /// Binds a queue to an exchange.
    Bind<'a> = 20 {
        ticket: u16,
        queue: &'a str,
        exchange: &'a str,
        routing_key: &'a [u8],
        [no_wait],
        arguments: Table,
    }
    /// It is bound.
    BindOk = 21 {}
    /// Removes all messages that are ready.
    Purge<'a> = 30 { ticket: u16, queue: &'a str, [no_wait] }
    /// So many were removed.
    PurgeOk = 31 { message_count: u32, }
    /// Deletes a queue.
    Delete<'a> = 40 { ticket: u16, queue: &'a str, [if_unused, if_empty, no_wait] }
    /// It is gone, and so many messages with it.
    DeleteOk = 41 { message_count: u32, }
    /// Removes a binding.
    Unbind<'a> = 50 {
        ticket: u16,
        queue: &'a str,
        exchange: &'a str,
        routing_key: &'a [u8],
        arguments: Table,
    }
    /// It is removed.
    UnbindOk = 51 {}
}
