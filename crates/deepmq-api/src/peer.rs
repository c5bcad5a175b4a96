//! Who is at the other end of the socket.
//!
//! Owns the address, which the server puts into each request. Must not know what is asked for.

use std::net::{IpAddr, SocketAddr};

/// The peer of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

impl Peer {
    /// Its address, an IPv4 one in IPv6's clothes as what it is.
    pub(crate) fn ip(self) -> IpAddr {
        self.0.ip().to_canonical()
    }

    /// Whether it is on this machine.
    pub(crate) fn is_loopback(self) -> bool {
        self.ip().is_loopback()
    }
}
