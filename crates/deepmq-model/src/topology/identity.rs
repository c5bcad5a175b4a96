//! The numbers by which queues, exchanges, bindings and connections are known inside a vhost.
//!
//! Owns the types only: who hands them out is the slab of each kind.

/// A queue of the vhost: a dense index, so the broker can keep its runtimes in a vector.
///
/// Valid until the queue is deleted; a later declaration may reuse it. Both change [`super::Topology::generation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueId(pub u32);

/// The connection that declared an exclusive queue. Never reused while the broker runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ExchangeId(pub(super) u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BindingId(pub(super) u32);

/// Where a binding leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Target {
    Queue(QueueId),
    Exchange(ExchangeId),
}
