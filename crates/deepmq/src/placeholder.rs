//! Stands in for the engine and the AMQP front-end where this branch does not have them.
//!
//! Owns the shape of both. Deleted with the merge.

use std::future::Future;
use std::sync::Arc;

use deepmq_broker::BrokerConfig;
use deepmq_broker::users::{Users, UsersError};
use deepmq_storage::Seam;
use tokio::net::TcpListener;

#[derive(Debug, Clone)]
pub(crate) struct Broker {
    _users: Arc<Users>,
}

impl Broker {
    pub(crate) fn start(config: BrokerConfig, seam: Seam) -> Result<Self, UsersError> {
        Ok(Self { _users: Arc::new(Users::new(config.users, seam.random)?) })
    }

    #[expect(clippy::unused_self, reason = "the engine's signature")]
    pub(crate) fn shutdown(&self) {}
}

pub(crate) async fn serve_amqp(listener: TcpListener, broker: Broker, shutdown: impl Future<Output = ()>) {
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            _ = listener.accept() => {}
        }
    }
    drop(broker);
}
