//! A broker with AMQP and HTTP in the test's process, and a client of each.
//!
//! Owns their start. Must not know what is tested.

use deepmq_api::{Api, ApiConfig, Listener};
use deepmq_broker::BrokerConfig;
use deepmq_broker::users::UserSpec;
use deepmq_storage::Seam;
use deepmq_testkit::TestBroker;
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// A broker and its API, with the users `guest` (administrator), `monitor`, `manager` and `nobody` (without a tag), whose
/// passwords are all `guest`. `manager` and `nobody` may enter the vhost `mine`, the others all.
pub(crate) struct Rig {
    pub(crate) broker: TestBroker,
    pub(crate) address: SocketAddr,
    client: reqwest::Client,
    serving: tokio::task::JoinHandle<()>,
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) json: Value,
}

fn user(name: &str, tags: &[&str]) -> UserSpec {
    let mut spec = TestBroker::user(name);
    spec.tags = tags.iter().map(|&tag| tag.into()).collect();
    spec
}

impl Rig {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}, |_| {}).await
    }

    pub(crate) async fn start_with(
        configure: impl FnOnce(&mut BrokerConfig),
        configure_api: impl FnOnce(&mut ApiConfig),
    ) -> Self {
        Self::start_on(Seam::real(), configure, configure_api).await
    }

    /// With this clock and disk.
    pub(crate) async fn start_on(
        seam: Seam,
        configure: impl FnOnce(&mut BrokerConfig),
        configure_api: impl FnOnce(&mut ApiConfig),
    ) -> Self {
        let broker = TestBroker::start_on(seam, |config| {
            let only_mine = deepmq_broker::users::VhostAccess::Only(vec!["mine".into()]);
            config.users = vec![
                user("guest", &["administrator"]),
                user("monitor", &["monitoring"]),
                UserSpec { vhosts: only_mine.clone(), ..user("manager", &["management"]) },
                UserSpec { vhosts: only_mine, ..user("nobody", &[]) },
            ];
            config.vhosts = vec!["/".into(), "mine".into()];
            configure(config);
        })
        .await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut config = ApiConfig {
            listeners: vec![
                Listener { protocol: "amqp", address: broker.address() },
                Listener { protocol: "http", address },
            ],
            ..ApiConfig::default()
        };
        configure_api(&mut config);
        let api = Api::new(broker.broker().clone(), config);
        let serving = tokio::spawn(async move { api.serve(listener, std::future::pending()).await });
        Self { broker, address, client: reqwest::Client::new(), serving }
    }

    /// Stops the broker in order, and the API with it.
    pub(crate) async fn stop(self) {
        let Self { broker, serving, client, .. } = self;
        drop(client);
        broker.broker().shutdown();
        serving.await.unwrap();
        broker.stop().await;
    }

    /// Where a path below `/api` is.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/api{path}", self.address)
    }

    pub(crate) fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Asks as a user, with a body if it is not null.
    pub(crate) async fn ask(&self, user: &str, method: Method, path: &str, body: Value) -> Answer {
        let request = self.client.request(method, self.url(path)).basic_auth(user, Some("guest"));
        let request = if body.is_null() { request } else { request.body(body.to_string()) };
        Answer::read(request.send().await.unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("guest", Method::GET, path, Value::Null).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.ask("guest", Method::PUT, path, body).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.ask("guest", Method::POST, path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.ask("guest", Method::DELETE, path, Value::Null).await
    }

    /// What is at a path, which must be there.
    pub(crate) async fn json(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json
    }
}

impl Answer {
    pub(crate) async fn read(response: Response) -> Self {
        let status = response.status();
        let text = response.text().await.unwrap();
        let json = if text.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        };
        Self { status, json }
    }

    /// The refusal, with its status.
    pub(crate) fn refusal(&self) -> (u16, &str, &str) {
        let field = |name: &str| self.json[name].as_str().unwrap_or_else(|| panic!("no refusal: {self:?}"));
        (self.status.as_u16(), field("error"), field("reason"))
    }
}
