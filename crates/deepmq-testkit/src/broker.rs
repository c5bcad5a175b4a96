//! A broker in the test's process, listening on a port of its own.
//!
//! Owns its start and its end. Must not know what is tested.

use crate::{Handshake, RawPeer};
use deepmq_broker::queue::{Depth, Queue};
use deepmq_broker::users::{Password, PasswordHash, UserSpec};
use deepmq_broker::{Broker, BrokerConfig};
use deepmq_storage::seam::Seam;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// `guest` under the cheapest parameters there are: a test has no secret, and no time.
const GUEST_HASH: &str =
    "$argon2id$v=19$m=8,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$SornS97CWQAPZ7UfK109tPDtWqbyf1Q+e/2wp2iDOcg";

/// A running broker. Dropped, it is gone at once, its connections with it.
#[derive(Debug)]
pub struct TestBroker {
    address: SocketAddr,
    broker: Broker,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl TestBroker {
    /// With the default limits, the vhost `/` and the user `guest`.
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// As `configure` wants it.
    pub async fn start_with(configure: impl FnOnce(&mut BrokerConfig)) -> Self {
        Self::start_on(Seam::real(), configure).await
    }

    /// As `configure` wants it, with this clock, randomness and disk.
    pub async fn start_on(seam: Seam, configure: impl FnOnce(&mut BrokerConfig)) -> Self {
        let mut config = BrokerConfig { users: vec![Self::user("guest")], ..BrokerConfig::default() };
        configure(&mut config);
        let broker = Broker::start(config, seam).expect("the test's configuration is sound");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(deepmq_amqp::serve(listener, broker.clone(), async {
            // Dropped without a word it is aborted anyway.
            let _ = stopped.await;
        }));
        Self { address, broker, stop, serving }
    }

    /// A user whose password is `guest`, at no cost.
    pub fn user(name: &str) -> UserSpec {
        let hash = PasswordHash::parse(GUEST_HASH).expect("it was made by argon2");
        UserSpec::new(name, Password::Hash(hash))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The broker itself.
    pub fn broker(&self) -> &Broker {
        &self.broker
    }

    /// A running queue of vhost `/`, by its name; none if it does not exist. Exclusive ones are not found.
    pub fn queue(&self, name: &str) -> Option<Arc<Queue>> {
        let nobody = deepmq_broker::connection::ConnectionId(u64::MAX);
        self.broker.vhost("/")?.queue(name, nobody).ok()
    }

    /// What a queue of vhost `/` holds; nothing if it does not exist.
    pub fn depth(&self, name: &str) -> Depth {
        self.queue(name).map(|queue| queue.depth()).unwrap_or_default()
    }

    /// An open connection that knows all capabilities, with channel 1 open.
    pub async fn peer(&self) -> RawPeer {
        self.peer_with(&Handshake::default()).await
    }

    /// An open connection after this handshake, with channel 1 open.
    pub async fn peer_with(&self, handshake: &Handshake) -> RawPeer {
        let mut peer = RawPeer::open(self.address, handshake).await;
        peer.open_channel(1).await;
        peer
    }

    /// Stops as the program would: every connection is closed with 320, and a data directory in order. Returns once all are
    /// gone.
    pub async fn stop(self) {
        let Self { stop, serving, broker, .. } = self;
        // The listener may have ended by itself.
        let _ = stop.send(());
        serving.await.expect("the listener does not panic");
        let closed = tokio::task::spawn_blocking(move || broker.close()).await;
        closed.expect("closing does not panic").expect("the test's disk works");
    }
}
