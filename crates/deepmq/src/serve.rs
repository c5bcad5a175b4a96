//! `deepmq serve`: a broker from start to stop.
//!
//! Owns the order in which the parts start and stop, and what is said when one can not. Must not know what the parts do.

use std::future::pending;
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use deepmq_storage::Seam;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tracing::{error, info, warn};

use crate::config::{Config, Listen};
use crate::signals::StopSignals;
use crate::{definitions, http, logging, machine};
use deepmq_amqp::serve as serve_amqp;
use deepmq_api::{Api, Listener};
use deepmq_broker::{Broker, StartError};

/// Time for the front-ends to close their connections. They bound themselves to a little less; what is left of the ten
/// seconds a stop may take is for the rest.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(9);
/// Time for work that can not be interrupted, such as the verification of a password.
const LINGER_TIME_MAX: Duration = Duration::from_millis(500);

/// Connections the system may take before the broker gets to them; less is too few for clients that all come back at once,
/// and who does not fit waits a second for the next attempt. The system may have a lower bound (`net.core.somaxconn`).
const ACCEPT_BACKLOG_MAX: i32 = 4096;

/// Runs a broker until a signal stops it.
pub(crate) fn run(config: Config) -> anyhow::Result<()> {
    logging::start(config.log.clone());
    for variable in &config.unknown_variables {
        warn!(
            variable,
            "this variable of the environment is no setting; see `deepmq serve --help` for those there are"
        );
    }
    match machine::raise_open_files() {
        Ok(open_files_max) => info!(?open_files_max, "open files"),
        Err(error) => warn!(%error, "the limit of open files stays as it is"),
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.worker_threads)
        .enable_all()
        .build()
        .context("the worker threads can not be started; ask for fewer with --worker-threads")?;
    let outcome = runtime.block_on(serve(config));
    runtime.shutdown_timeout(LINGER_TIME_MAX);
    outcome
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let mut signals = StopSignals::catch().context("the signals to stop can not be caught")?;
    let seam = Seam::real();
    let amqp = bind("--amqp", &config.amqp).await?;
    let http = bind("--http", &config.http).await?;
    let metrics = bind("--metrics", &config.metrics).await?;
    let mut api_config = config.api.clone();
    api_config.listeners = [("amqp", &amqp), ("http", &http), ("http/prometheus", &metrics)]
        .into_iter()
        .filter_map(|(protocol, bound)| Some(Listener { protocol, address: bound.as_ref()?.1 }))
        .collect();
    let broker = start(config, seam)?;
    let (stop, stopped) = watch::channel(());
    let (mut front_ends, mut announced) = (JoinSet::new(), Vec::new());
    if http.is_some() || metrics.is_some() {
        let addresses = (http.as_ref().map(|http| http.1), metrics.as_ref().map(|metrics| metrics.1));
        let api = Api::new(broker.clone(), api_config);
        let serving =
            http::start(api, http.map(|http| http.0), metrics.map(|metrics| metrics.0), stopped.clone())?;
        front_ends.spawn(serving);
        announced.extend([("http", addresses.0), ("metrics", addresses.1)]);
    }
    if let Some((listener, address)) = amqp {
        front_ends.spawn(serve_amqp(listener, broker.clone(), stop_of(stopped)));
        announce("amqp", address);
    } else {
        warn!("no listener for clients is on: nobody can connect");
    }
    announced
        .into_iter()
        .filter_map(|(front_end, address)| Some((front_end, address?)))
        .for_each(|(front_end, address)| announce(front_end, address));

    tokio::select! {
        signal = signals.next() => info!(?signal, "stopping"),
        () = any_end(&mut front_ends) => bail!("a listener stopped by itself; see the log above"),
        failure = broker.failed() => {
            error!(%failure, "the data directory has failed, nothing is confirmed any more: stopping");
            bail!("the data directory has failed: {failure}");
        }
    }
    drop(stop);
    let closed = async { while front_ends.join_next().await.is_some() {} };
    tokio::select! {
        () = closed => {}
        () = tokio::time::sleep(CLOSE_TIME_MAX) => warn!("some connections did not close in time"),
        again = signals.next() => std::process::exit(again.exit_code()),
    }
    broker.shutdown();
    let closing = broker.clone();
    spawn_blocking(move || closing.close())
        .await?
        .context("the data directory can not be closed in order")?;
    info!("stopped");
    Ok(())
}

/// Starts the broker on its data directory.
fn start(config: Config, seam: Seam) -> anyhow::Result<Broker> {
    let dir = config.data_dir.clone();
    let broker = Broker::start(config.broker, seam).map_err(|error| match error {
        StartError::Durable(error) => anyhow!(
            "the data directory {} can not be used: {error}; choose another directory with --data-dir",
            dir.display()
        ),
        StartError::Limits(_) | StartError::Registry(_) | StartError::DuplicateUser(_) => {
            anyhow::Error::new(error).context("the broker can not start")
        }
    })?;
    if let Some(path) = &config.load_definitions {
        definitions::load(&broker, path)?;
    }
    Ok(broker)
}

/// Ends with the first front-end; never, if there is none.
async fn any_end(front_ends: &mut JoinSet<()>) {
    match front_ends.join_next().await {
        Some(outcome) => error!(?outcome, "a listener stopped"),
        None => pending().await,
    }
}

/// Ends when the sender is dropped.
pub(crate) async fn stop_of(mut stopped: watch::Receiver<()>) {
    while stopped.changed().await.is_ok() {}
}

/// Binds what a flag asks for; none if that is nothing.
async fn bind(flag: &str, listen: &Listen) -> anyhow::Result<Option<(TcpListener, SocketAddr)>> {
    let Listen::On(address) = listen else { return Ok(None) };
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::AddrInUse => "stop the program that does, or choose",
            _ => "choose",
        };
        anyhow!(
            "{address} can not be listened on: {error}; {remedy} another address with {flag}, \
             as in {flag} 127.0.0.1:0 for any free port"
        )
    })?;
    // Tokio gives it 128; a second call changes that.
    rustix::net::listen(&listener, ACCEPT_BACKLOG_MAX).context("the listener can not be made to listen")?;
    let bound = listener.local_addr().context("the address listened on is unknown")?;
    Ok(Some((listener, bound)))
}

/// Tells who started the broker that it can connect now. A closed standard output means nobody wants to know.
fn announce(front_end: &str, address: SocketAddr) {
    let _ = writeln!(std::io::stdout(), "listening {front_end} {address}");
    info!(front_end, %address, "listening");
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpStream;
    use tokio::time::timeout;

    #[tokio::test]
    async fn a_crowd_that_comes_at_once_is_let_in_before_any_of_it_is_served() {
        let bound = bind("--amqp", &Listen::On("127.0.0.1:0".into())).await.expect("there is a free port");
        let (listener, address) = bound.expect("it is on");
        let mut crowd = Vec::new();
        for _ in 0..300 {
            let connected = timeout(Duration::from_secs(5), TcpStream::connect(address)).await;
            crowd.push(connected.expect("nobody waits").expect("nobody is refused"));
        }
        drop(listener);
    }
}
