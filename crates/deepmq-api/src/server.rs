//! Accepting connections and serving HTTP on them, to the end.
//!
//! Owns the bounds of a connection: how many, and the time for a request's head. Must not know paths.

use crate::api::Api;
use crate::metrics;
use crate::peer::Peer;
use crate::router;
use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tower::ServiceExt;

/// Time for the head of a request, from the moment it can come.
const HEAD_TIMEOUT: Duration = Duration::from_secs(75);
/// The largest head of a request in bytes: long names, percent-encoded, and a long login.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Time for requests to be answered once the end has come.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait when no connection can be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl Api {
    /// Serves the API on `listener` until `shutdown` is ready or the broker stops. Returns once the requests under way were
    /// answered, or did not end within 5 seconds.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        self.serve_router(router::whole(self), listener, shutdown).await;
    }

    /// Serves the metrics on a listener of their own, to whoever asks; ends as [`Api::serve`] does.
    pub async fn serve_metrics(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        self.serve_router(metrics::open(self), listener, shutdown).await;
    }

    async fn serve_router(&self, router: Router, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let graceful = GracefulShutdown::new();
        let slots = Arc::new(Semaphore::new(self.config().connections_max));
        let (mut shutdown, mut stopping) = (pin!(shutdown), pin!(self.broker().stopping()));
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => break,
                () = &mut stopping => break,
                accepted = listener.accept() => accepted,
            };
            match (accepted, slots.clone().try_acquire_owned()) {
                (Ok((socket, peer)), Ok(slot)) => serve_one(socket, Peer(peer), &router, slot, &graceful),
                (Ok((_, peer)), Err(_)) => tracing::warn!(%peer, "connection refused, the limit is reached"),
                (Err(error), _) => {
                    tracing::error!(%error, "cannot accept connections");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        if timeout(SHUTDOWN_TIMEOUT, graceful.shutdown()).await.is_err() {
            tracing::warn!("requests did not end in time and were dropped");
        }
    }
}

fn serve_one(
    socket: TcpStream,
    peer: Peer,
    router: &Router,
    slot: OwnedSemaphorePermit,
    graceful: &GracefulShutdown,
) {
    if socket.set_nodelay(true).is_err() {
        return;
    }
    let router = router.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        router.clone().oneshot(request)
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD_BYTES_MAX);
    let connection = graceful.watch(builder.serve_connection(TokioIo::new(socket), service));
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(peer = %peer.0, %error, "connection ended");
        }
        drop(slot);
    });
}
