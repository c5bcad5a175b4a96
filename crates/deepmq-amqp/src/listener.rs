//! Accepting connections, and closing them all at the end.
//!
//! Owns the tasks of its connections. Must not know what they do.

use crate::driver::{Shared, drive};
use crate::outbox::Outbox;
use crate::session::Session;
use deepmq_broker::Broker;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How long connections may take to close at the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(8);
/// How long to wait when there are no descriptors left, before accepting goes on.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves AMQP 0-9-1 on `listener` until `shutdown` is ready or the broker stops. Returns once all connections were
/// closed with 320, or did not close within 8 seconds.
pub async fn serve(listener: TcpListener, broker: Broker, shutdown: impl Future<Output = ()>) {
    let logins = Arc::new(Semaphore::new(broker.limits().slow_logins_max));
    let shared = Arc::new(Shared { broker: broker.clone(), logins });
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    let mut stopping = pin!(broker.stopping());
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            () = &mut stopping => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => admit(socket, peer, &shared, &mut connections),
                Err(error) => pause_after(&error).await,
            },
        }
    }
    drop(listener);
    broker.close_connections("broker forced connection closure with reason 'shutdown'");
    if timeout(SHUTDOWN_TIMEOUT, async { while connections.join_next().await.is_some() {} }).await.is_err() {
        tracing::warn!(connections = connections.len(), "connections did not close in time and were dropped");
    }
}

fn admit(socket: TcpStream, peer: std::net::SocketAddr, shared: &Arc<Shared>, connections: &mut JoinSet<()>) {
    let limits = shared.broker.limits();
    let outbox = Outbox::new(limits.output_buffer_bytes_max);
    let Some(admission) = shared.broker.admit_connection(outbox.clone()) else {
        let max = limits.connections_max;
        tracing::warn!(%peer, max, "connection refused, the limit is reached");
        return;
    };
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%peer, %error, "connection gone before it was served");
        return;
    }
    let session = Session::new(shared.broker.clone(), outbox.clone(), peer, admission);
    connections.spawn(drive(socket, session, outbox, shared.clone()));
}

/// Errors of a single connection mean nothing; a lack of descriptors ends when connections do.
async fn pause_after(error: &io::Error) {
    if !matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused
    ) {
        tracing::error!(%error, "cannot accept connections");
        sleep(ACCEPT_PAUSE).await;
    }
}
