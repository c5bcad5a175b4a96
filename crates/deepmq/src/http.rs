//! The thread of the HTTP front-end: a listing of ten thousand queues takes none of those that serve messages, and where they
//! share a core, messages come first.
//!
//! Owns the thread, its priority and its runtime. Must not know what is served.

use crate::serve::stop_of;
use anyhow::Context;
use deepmq_api::Api;
use std::future::Future;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tracing::error;

/// Starts serving the API and the metrics, each if there is a listener. What is returned ends when both have ended: soon after
/// the sender of `stopped` is dropped.
pub(crate) fn start(
    api: Api,
    http: Option<TcpListener>,
    metrics: Option<TcpListener>,
    stopped: watch::Receiver<()>,
) -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    // A socket is known to the runtime it was bound in; the other one takes it over from the system.
    let (http, metrics) =
        (http.map(TcpListener::into_std).transpose()?, metrics.map(TcpListener::into_std).transpose()?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(8)
        .thread_name("http-blocking")
        .build()
        .context("the runtime of the HTTP front-end can not be started")?;
    let (ended, end) = oneshot::channel();
    let serve = move || {
        step_back();
        let serving = runtime.block_on(async {
            let (http, metrics) = (
                http.map(TcpListener::from_std).transpose()?,
                metrics.map(TcpListener::from_std).transpose()?,
            );
            tokio::join!(
                async {
                    if let Some(listener) = http {
                        api.serve(listener, stop_of(stopped.clone())).await;
                    }
                },
                async {
                    if let Some(listener) = metrics {
                        api.serve_metrics(listener, stop_of(stopped.clone())).await;
                    }
                }
            );
            Ok::<_, std::io::Error>(())
        });
        if let Err(error) = serving {
            error!(%error, "the HTTP front-end can not serve");
        }
        // Nobody is left to be told if the program does not wait any more.
        let _ = ended.send(());
    };
    std::thread::Builder::new()
        .name("http".into())
        .spawn(serve)
        .context("the HTTP thread can not be started")?;
    Ok(async {
        // Without a word it has ended too.
        let _ = end.await;
    })
}

/// Lets other threads have the processor first, where a thread can: on Linux, a number is of the thread alone if its own is given.
#[cfg(target_os = "linux")]
fn step_back() {
    /// A tenth of what another thread gets of a core that both want, which is enough for a health check.
    const NICENESS: i32 = 10;
    let lowered = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
    if let Err(error) = lowered {
        tracing::debug!(%error, "the HTTP thread has the priority of all others");
    }
}

#[cfg(not(target_os = "linux"))]
fn step_back() {}
