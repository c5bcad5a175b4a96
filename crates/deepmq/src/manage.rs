//! The verbs that manage a running broker over its HTTP API.
//!
//! Owns what each verb asks for and prints. Must not know the broker itself: whatever works here works with any client.

mod client;
mod file;
mod kind;
mod progress;
mod table;
mod verbs;

pub(crate) use verbs::Manage;

use std::fs;
use std::io::{Read, Write, stdout};
use std::process::ExitCode;
use std::thread::sleep;

use anyhow::{Context, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::cli::Failure;
use client::{Client, ClientError, path};
use kind::Kind;
use progress::Progress;
use table::Table;
use verbs::{Declare, DefinitionsVerb, Delete};

/// The broker refused what was asked for, or there is no such thing.
const EXIT_REFUSED: u8 = 1;
/// The broker cannot be reached.
const EXIT_UNREACHABLE: u8 = 3;
/// The longest payload that is read from standard input, in bytes: what the API takes, and room for its form.
const PAYLOAD_BYTES_MAX: u64 = 14 << 20;

/// Does what a verb says.
pub(crate) fn run(verb: Manage) -> Result<(), Failure> {
    act(verb).map_err(|reason| {
        let unreachable = matches!(reason.downcast_ref(), Some(ClientError::Unreachable { .. }));
        let exit_code = ExitCode::from(if unreachable { EXIT_UNREACHABLE } else { EXIT_REFUSED });
        Failure { reason, exit_code }
    })
}

fn act(verb: Manage) -> anyhow::Result<()> {
    match verb {
        Manage::Status { on, json } => status(&on.client()?, json),
        Manage::List { on, kind, vhost, json } => {
            let listed = on.client()?.get(&kind.list_path(vhost.as_deref()))?;
            show_list(kind, &listed, json)
        }
        Manage::Show { on, kind, name, vhost, json } => {
            show_one(&on.client()?.get(&kind.show_path(&vhost, &name)?)?, json)
        }
        Manage::Declare { on, what } => declare(&on.client()?, what),
        Manage::Delete { on, what } => delete(&on.client()?, what),
        Manage::Purge { on, queue, vhost } => {
            on.client()?.delete(&path(&["queues", &vhost, &queue, "contents"]))?;
            print(&format!("purged queue '{queue}'"))
        }
        Manage::Publish { on, exchange, routing_key, payload, vhost } => {
            publish(&on.client()?, (&vhost, &exchange, &routing_key), payload)
        }
        Manage::Get { on, queue, vhost, count, remove, json } => {
            get(&on.client()?, &vhost, &queue, count, remove, json)
        }
        Manage::CloseConnection { on, name, reason } => {
            on.client()?.delete_for(&path(&["connections", &name]), &reason)?;
            print(&format!("closed connection '{name}'"))
        }
        Manage::Definitions { what } => definitions(what),
        Manage::Watch { on, vhost, interval, rounds } => {
            watch(&on.client()?, vhost.as_deref(), interval.0, rounds)
        }
    }
}

fn definitions(what: DefinitionsVerb) -> anyhow::Result<()> {
    let at = |vhost: Option<&str>| path(&["definitions"].into_iter().chain(vhost).collect::<Vec<_>>());
    match what {
        DefinitionsVerb::Export { file, on, vhost } => {
            let client = on.client()?;
            let exporting = Progress::start("exporting".to_owned());
            let exported = client.get(&at(vhost.as_deref()))?;
            drop(exporting);
            let text = serde_json::to_string_pretty(&exported)?;
            let Some(file) = file else { return print(&text) };
            fs::write(&file, text + "\n")
                .with_context(|| format!("{} can not be written", file.display()))?;
            print(&format!("definitions written to {}", file.display()))
        }
        DefinitionsVerb::Import { file, on, vhost } => {
            let text = fs::read(&file).with_context(|| format!("{} can not be read", file.display()))?;
            let document: Value = serde_json::from_slice(&text)
                .with_context(|| format!("{} is no JSON document", file.display()))?;
            let client = on.client()?;
            let importing = Progress::start(format!("importing {}", file.display()));
            client.post(&at(vhost.as_deref()), &document)?;
            drop(importing);
            print(&format!("definitions taken from {}", file.display()))
        }
    }
}

/// Writes to standard output; that nobody reads it any more ends the verb without a complaint.
fn print(text: &str) -> anyhow::Result<()> {
    match writeln!(stdout(), "{text}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done.context("standard output can not be written"),
    }
}

fn status(client: &Client, json: bool) -> anyhow::Result<()> {
    let overview = client.get("/overview")?;
    if json {
        return print(&serde_json::to_string_pretty(&overview)?);
    }
    let text = |field: &str| table::cell(&overview, field);
    print(&format!("{} {} on {}", text("product_name"), text("product_version"), text("node")))?;
    let mut shown = Table::new(["", ""]);
    for (label, field) in [
        ("connections", "object_totals.connections"),
        ("channels", "object_totals.channels"),
        ("consumers", "object_totals.consumers"),
        ("exchanges", "object_totals.exchanges"),
        ("queues", "object_totals.queues"),
        ("messages ready", "queue_totals.messages_ready"),
        ("messages unacked", "queue_totals.messages_unacknowledged"),
        ("published/s", "message_stats.publish_details.rate"),
        ("delivered/s", "message_stats.deliver_get_details.rate"),
    ] {
        shown.row([label.to_owned(), text(field)]);
    }
    print(&shown.to_string())
}

fn show_list(kind: Kind, listed: &Value, json: bool) -> anyhow::Result<()> {
    if json {
        return print(&serde_json::to_string_pretty(listed)?);
    }
    let columns = kind.columns();
    let mut shown = Table::new(columns.iter().map(|(heading, _)| *heading));
    for item in listed.as_array().into_iter().flatten() {
        shown.row(columns.iter().map(|(_, field)| table::cell(item, field)));
    }
    print(&shown.to_string())
}

fn show_one(one: &Value, json: bool) -> anyhow::Result<()> {
    if json {
        return print(&serde_json::to_string_pretty(one)?);
    }
    let mut shown = Table::new(["", ""]);
    table::fields(one).into_iter().for_each(|field| shown.row([field.clone(), table::cell(one, &field)]));
    print(&shown.to_string())
}

/// The arguments given on the command line, as a JSON object.
fn object(given: Option<&str>) -> anyhow::Result<Value> {
    let parsed: Value =
        serde_json::from_str(given.unwrap_or("{}")).context("arguments must be a JSON object")?;
    if parsed.is_object() {
        Ok(parsed)
    } else {
        bail!("arguments must be a JSON object, as in '{{\"x-max-length\": 10}}'")
    }
}

fn declare(client: &Client, what: Declare) -> anyhow::Result<()> {
    let said = what.said();
    let created = match what {
        Declare::Exchange { name, kind, transient, arguments, vhost } => {
            let body =
                json!({"type": kind, "durable": !transient, "arguments": object(arguments.as_deref())?});
            client.put(&path(&["exchanges", &vhost, &name]), &body)?
        }
        Declare::Queue { name, transient, arguments, vhost } => {
            let body = json!({"durable": !transient, "arguments": object(arguments.as_deref())?});
            client.put(&path(&["queues", &vhost, &name]), &body)?
        }
        Declare::Binding { source, destination, routing_key, to_exchange, arguments, vhost } => {
            let body = json!({"routing_key": routing_key, "arguments": object(arguments.as_deref())?});
            let to = if to_exchange { "e" } else { "q" };
            client.post(&path(&["bindings", &vhost, "e", &source, to, &destination]), &body)?;
            true
        }
        Declare::Vhost { name, description } => {
            client.put(&path(&["vhosts", &name]), &json!({"description": description.unwrap_or_default()}))?
        }
        Declare::User { name, new_password, tags } => {
            let mut body = json!({"tags": tags.unwrap_or_default()});
            if let (Some(password), Some(fields)) = (new_password, body.as_object_mut()) {
                fields.insert("password".into(), password.into());
            }
            client.put(&path(&["users", &name]), &body)?
        }
        Declare::Permission { whose, configure, write, read, vhost } => {
            let body = json!({"configure": configure, "write": write, "read": read});
            client.put(&path(&["permissions", &vhost, &whose]), &body)?
        }
        Declare::Policy { name, pattern, definition, apply_to, priority, vhost } => {
            let definition = object(Some(&definition))?;
            let body = json!({
                "pattern": pattern, "definition": definition, "apply-to": apply_to, "priority": priority,
            });
            client.put(&path(&["policies", &vhost, &name]), &body)?
        }
    };
    print(&format!("{said} {}", if created { "declared" } else { "was there already, or changed" }))
}

fn delete(client: &Client, what: Delete) -> anyhow::Result<()> {
    let said = what.said();
    let at = match &what {
        Delete::Exchange { name, vhost } => path(&["exchanges", vhost, name]),
        Delete::Queue { name, if_empty, if_unused, vhost } => {
            format!("{}?if-empty={if_empty}&if-unused={if_unused}", path(&["queues", vhost, name]))
        }
        Delete::Binding { source, destination, properties_key, to_exchange, vhost } => {
            let to = if *to_exchange { "e" } else { "q" };
            path(&["bindings", vhost, "e", source, to, destination, properties_key])
        }
        Delete::Vhost { name } => path(&["vhosts", name]),
        Delete::User { name } => path(&["users", name]),
        Delete::Permission { whose, vhost } => path(&["permissions", vhost, whose]),
        Delete::Policy { name, vhost } => path(&["policies", vhost, name]),
    };
    client.delete(&at)?;
    print(&format!("{said} deleted"))
}

/// All of standard input, within the bound.
fn standard_input() -> anyhow::Result<Vec<u8>> {
    let mut read = Vec::new();
    std::io::stdin().take(PAYLOAD_BYTES_MAX + 1).read_to_end(&mut read)?;
    if read.len() as u64 > PAYLOAD_BYTES_MAX {
        bail!("the payload is larger than {PAYLOAD_BYTES_MAX} bytes");
    }
    Ok(read)
}

fn publish(client: &Client, at: (&str, &str, &str), payload: Option<String>) -> anyhow::Result<()> {
    let (vhost, exchange, routing_key) = at;
    let payload = payload.map_or_else(standard_input, |payload| Ok(payload.into_bytes()))?;
    let exchange = if exchange.is_empty() { "amq.default" } else { exchange };
    let body = json!({
        "properties": {"delivery_mode": 2},
        "routing_key": routing_key,
        "payload": BASE64_STANDARD.encode(payload),
        "payload_encoding": "base64",
    });
    let answer = client.post(&path(&["exchanges", vhost, exchange, "publish"]), &body)?;
    if answer.get("routed") == Some(&Value::Bool(true)) {
        return print("published");
    }
    bail!("the message went to no queue: nothing is bound to '{exchange}' for routing key '{routing_key}'")
}

fn get(
    client: &Client,
    vhost: &str,
    queue: &str,
    count: u32,
    remove: bool,
    json: bool,
) -> anyhow::Result<()> {
    let mode = if remove { "ack_requeue_false" } else { "ack_requeue_true" };
    let body = json!({"count": count, "ackmode": mode, "encoding": "auto"});
    let messages = client.post(&path(&["queues", vhost, queue, "get"]), &body)?;
    if json {
        return print(&serde_json::to_string_pretty(&messages)?);
    }
    let mut shown = Table::new(["EXCHANGE", "ROUTING KEY", "BYTES", "REDELIVERED", "PAYLOAD"]);
    for message in messages.as_array().into_iter().flatten() {
        let fields = ["exchange", "routing_key", "payload_bytes", "redelivered", "payload"];
        shown.row(fields.iter().map(|field| table::cell(message, field)));
    }
    print(&shown.to_string())
}

fn watch(
    client: &Client,
    vhost: Option<&str>,
    interval: std::time::Duration,
    rounds: Option<u32>,
) -> anyhow::Result<()> {
    let mut round = 0;
    loop {
        let listed = client.get(&Kind::Queues.list_path(vhost))?;
        let mut shown = Table::new(["QUEUE", "VHOST", "READY", "UNACKED", "CONSUMERS", "IN/S", "OUT/S"]);
        for queue in listed.as_array().into_iter().flatten() {
            let fields = [
                "name",
                "vhost",
                "messages_ready",
                "messages_unacknowledged",
                "consumers",
                "message_stats.publish_details.rate",
                "message_stats.deliver_get_details.rate",
            ];
            shown.row(fields.iter().map(|field| table::cell(queue, field)));
        }
        // Home, and away with what stood there.
        print(&format!("\u{1b}[H\u{1b}[J{shown}"))?;
        round += 1;
        if rounds.is_some_and(|rounds| round >= rounds) {
            return Ok(());
        }
        sleep(interval);
    }
}
