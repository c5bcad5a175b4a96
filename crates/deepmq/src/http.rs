//! The thread of the HTTP front-end: a listing of ten thousand queues takes none of those that serve messages.
//!
//! Owns the thread and its runtime. Must not know what is served.

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
