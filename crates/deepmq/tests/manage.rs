//! The verbs that manage a running broker, as their user sees them: output and exit codes.

#![expect(clippy::unwrap_used, reason = "a function that helps a test fails with it")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};

/// A broker with its HTTP API on; killed at the end of the test.
struct Served {
    child: Child,
    url: String,
    metrics: String,
    _data: tempfile::TempDir,
}

impl Drop for Served {
    fn drop(&mut self) {
        // Already gone if something else failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("deepmq"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("DEEPMQ_")) {
        command.env_remove(name);
    }
    // The file of whoever runs the test is none of its business.
    command.env("XDG_CONFIG_HOME", "/nowhere");
    command
}

fn serve() -> Served {
    let data = tempfile::tempdir().unwrap();
    let any = "127.0.0.1:0";
    let mut child = command()
        .args(["serve", "--log", "error", "--amqp", any, "--http", any, "--metrics", any, "--data-dir"])
        .arg(data.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut address = |front_end: &str| {
        let line = lines.next().unwrap();
        line.strip_prefix(&format!("listening {front_end} ")).expect(&line).to_owned()
    };
    address("amqp");
    let (http, metrics) = (address("http"), address("metrics"));
    Served { child, url: format!("http://{http}"), metrics, _data: data }
}

impl Served {
    fn run(&self, arguments: &[&str]) -> Output {
        command().args(arguments).env("DEEPMQ_URL", &self.url).output().unwrap()
    }

    /// Standard output of a verb that must succeed.
    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Exit code and complaint of a verb that must fail.
    fn fails(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run(arguments);
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }
}

#[test]
fn a_session_from_declaring_to_deleting() {
    let broker = serve();
    assert_eq!(
        broker.ok(&["declare", "queue", "orders", "--arguments", "{\"x-max-length\":5}"]),
        "queue 'orders' declared\n"
    );
    assert_eq!(broker.ok(&["declare", "exchange", "shop", "--type", "topic"]), "exchange 'shop' declared\n");
    broker.ok(&["declare", "binding", "shop", "orders", "order.#"]);
    assert_eq!(broker.ok(&["publish", "shop", "order.new", "hello"]), "published\n");
    let listed = broker.ok(&["list", "queues"]);
    let lines: Vec<_> = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    assert_eq!(lines[0][..5], ["NAME", "VHOST", "TYPE", "DURABLE", "READY"]);
    assert_eq!(lines[1][..5], ["orders", "/", "classic", "yes", "1"]);
    assert!(broker.ok(&["get", "orders"]).contains("order.new"));
    let json: serde_json::Value =
        serde_json::from_str(&broker.ok(&["get", "orders", "--remove", "--json"])).unwrap();
    assert_eq!(json[0]["payload"], "hello");
    assert!(broker.ok(&["show", "queue", "orders", "--json"]).contains("\"messages\": 0"));
    let shown = broker.ok(&["show", "queue", "orders"]);
    assert!(shown.contains("arguments.x-max-length") && shown.contains("messages_ready"), "{shown}");
    assert!(broker.ok(&["list", "bindings", "--vhost", "/"]).contains("order.#"));
    assert!(broker.ok(&["status"]).contains("queues            1"), "{}", broker.ok(&["status"]));
    assert!(broker.ok(&["watch", "--rounds", "1"]).contains("orders"));
    broker.ok(&["purge", "orders"]);
    broker.ok(&["delete", "exchange", "shop"]);
    assert_eq!(broker.ok(&["delete", "queue", "orders"]), "queue 'orders' deleted\n");
}

#[test]
fn users_vhosts_permissions_and_policies_are_administered() {
    let broker = serve();
    broker.ok(&["declare", "vhost", "eu", "--description", "Europe"]);
    broker.ok(&["declare", "user", "ann", "--new-password", "secret", "--tags", "management"]);
    broker.ok(&["declare", "permission", "ann", "--vhost", "eu", "--configure", "^$"]);
    broker.ok(&["declare", "policy", "short", ".*", "{\"max-length\":5}", "--vhost", "eu"]);
    assert!(broker.ok(&["list", "users"]).contains("ann    management"));
    assert!(broker.ok(&["list", "policies"]).contains("{\"max-length\":5}"));
    let as_ann = ["--user", "ann", "--password", "secret"];
    let vhosts = broker.ok(&[&["list", "vhosts"], &as_ann[..]].concat());
    assert!(vhosts.contains("Europe") && vhosts.lines().count() == 2, "{vhosts}");
    let refused = broker.fails(&[&["declare"], &as_ann[..], &["queue", "q", "--vhost", "eu"]].concat());
    assert!(refused.0 == 1 && refused.1.contains("configure access to queue 'q'"), "{refused:?}");
    broker.ok(&["delete", "policy", "short", "--vhost", "eu"]);
    broker.ok(&["delete", "permission", "ann", "--vhost", "eu"]);
    broker.ok(&["delete", "user", "ann"]);
    broker.ok(&["delete", "vhost", "eu"]);
}

#[test]
fn a_payload_may_come_from_standard_input() {
    let broker = serve();
    broker.ok(&["declare", "queue", "q"]);
    let mut publishing = command()
        .args(["publish", "", "q", "--url", &broker.url])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    publishing.stdin.take().unwrap().write_all(b"\xffraw").unwrap();
    assert!(publishing.wait().unwrap().success());
    assert!(broker.ok(&["get", "q", "--json"]).contains("/3Jhdw=="));
}

#[test]
fn errors_are_sentences_with_their_own_exit_codes() {
    let broker = serve();
    assert_eq!(
        broker.fails(&["show", "queue", "absent"]),
        (1, "deepmq: there is no such thing; see deepmq list\n".into())
    );
    let (code, told) = broker.fails(&["list", "queues", "--password", "wrong"]);
    assert!(code == 1 && told.contains("--user and --password"), "{told}");
    let (code, told) = broker.fails(&["publish", "amq.direct", "nowhere", "x"]);
    assert!(code == 1 && told.contains("went to no queue"), "{told}");
    assert_eq!(broker.fails(&["list", "fruit"]).0, 2);
    let (code, told) = broker.fails(&["status", "--url", "http://127.0.0.1:1"]);
    assert!(code == 3 && told.starts_with("deepmq: no broker answers at http://127.0.0.1:1"), "{told}");
    assert_eq!(broker.fails(&["status", "--url", "nowhere"]).0, 1);
}

#[test]
fn a_file_says_where_and_who_unless_a_variable_or_a_flag_does() {
    let broker = serve();
    broker.ok(&["declare", "user", "ann", "--new-password", "secret", "--tags", "management"]);
    let settings = tempfile::tempdir().unwrap();
    std::fs::create_dir(settings.path().join("deepmq")).unwrap();
    let file = settings.path().join("deepmq/client.toml");
    std::fs::write(&file, format!("url = \"{}\"\nuser = \"ann\"\npassword = \"secret\"\n", broker.url))
        .unwrap();
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut list = command();
        list.env("XDG_CONFIG_HOME", settings.path()).envs(variables.iter().copied()).args(arguments);
        let output = list.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(text).unwrap())
    };
    let (code, told) = run(&["list", "users"], &[]);
    assert!(code == 1 && told.contains("Not administrator user"), "{told}");
    assert_eq!(run(&["list", "users"], &[("DEEPMQ_USER", "guest"), ("DEEPMQ_PASSWORD", "guest")]).0, 0);
    let as_guest = ["list", "users", "--user", "guest", "--password", "guest"];
    assert_eq!(run(&as_guest, &[("DEEPMQ_USER", "nobody")]).0, 0);
    std::fs::write(&file, "pasword = \"secret\"").unwrap();
    let (code, told) = run(&["status"], &[]);
    assert!(code == 1 && told.contains("client.toml may hold url, user and password"), "{told}");
    let (code, told) = run(&["status"], &[("DEEPMQ_CLIENT_CONFIG", "/nowhere/x.toml")]);
    assert!(code == 1 && told.contains("which does not exist"), "{told}");
}

#[test]
fn completions_are_scripts_of_the_shell() {
    let output = command().args(["completions", "bash"]).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("_deepmq()"));
}

#[test]
fn metrics_have_a_listener_of_their_own_without_a_login() {
    let broker = serve();
    let mut socket = std::net::TcpStream::connect(&broker.metrics).unwrap();
    socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let answer = std::io::read_to_string(socket).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("rabbitmq_identity_info"), "{answer}");
}
