//! The session without a socket: the same answers however the bytes are cut, and nonsense in every phase.

#![expect(clippy::expect_used, reason = "a function that helps a test fails with it")]

use super::*;
use crate::codec::frame::PROTOCOL_HEADER;
use crate::codec::method::{LongStr, basic, channel, confirm, connection, queue};
use crate::outbox::Outgoing;
use deepmq_broker::BrokerConfig;
use deepmq_model::Value;
use deepmq_storage::seam::Seam;
use deepmq_testkit::TestBroker;
use proptest::prelude::*;
use std::task::Waker;

fn broker() -> Broker {
    let config = BrokerConfig { users: vec![TestBroker::user("guest")], ..BrokerConfig::default() };
    Broker::start(config, Seam::simulated(1)).expect("the configuration is sound")
}

/// A session with what a driver does around it.
struct Rig {
    session: Session,
    outbox: Arc<Outbox>,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Rig {
    fn new(broker: &Broker) -> Self {
        let outbox = Outbox::new(1 << 20);
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let admission = broker.admit_connection(outbox.clone()).unwrap();
        let session = Session::new(broker.clone(), outbox.clone(), peer, admission);
        Self { session, outbox, input: Vec::new(), output: Vec::new() }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        loop {
            match self.session.next() {
                Next::Run => {}
                Next::Login(login) => {
                    let outcome = login.verify(self.session.broker.users());
                    self.session.handle_login(outcome);
                    continue;
                }
                Next::Wait | Next::Close(_) => break,
            }
            let used = self.session.handle(&self.input);
            self.input.drain(..used);
            if used == 0 && self.session.login.is_none() {
                break;
            }
        }
        self.collect();
    }

    fn collect(&mut self) {
        let (mut outgoing, mut starved) = (Outgoing::default(), Vec::new());
        while self.outbox.take(&mut outgoing, &mut starved, Waker::noop()) {
            while !outgoing.is_empty() {
                let bytes = match outgoing.plain() {
                    Some(bytes) => bytes.to_vec(),
                    None => outgoing.slices().iter().flat_map(|slice| slice.to_vec()).collect(),
                };
                outgoing.advance(bytes.len());
                self.output.extend(bytes);
            }
        }
    }

    /// What was answered, in frames.
    fn frames(&self) -> Vec<(Kind, u16, Vec<u8>)> {
        let (mut rest, mut frames) = (&self.output[..], Vec::new());
        while let Some((frame, len)) = frame::parse(rest, 0).expect("the session encodes frames well") {
            frames.push((frame.kind, frame.channel, frame.payload.to_vec()));
            rest = rest.split_at(len).1;
        }
        assert!(rest.is_empty(), "half a frame at the end");
        frames
    }
}

fn bytes_of<'m>(channel: u16, method: impl Into<Method<'m>>) -> Vec<u8> {
    let mut out = Vec::new();
    method.into().encode(channel, &mut out);
    out
}

fn publish(key: &[u8], mandatory: bool, body: &[u8]) -> Vec<u8> {
    let mut out = bytes_of(1, basic::Publish { routing_key: key, mandatory, ..Default::default() });
    crate::codec::content::write(1, &[0, 0], body, 4096, &mut out);
    out
}

fn start_ok() -> Vec<u8> {
    let capabilities: Table =
        ["consumer_cancel_notify", "connection.blocked", "authentication_failure_close"]
            .into_iter()
            .map(|name| (name, Value::Bool(true)))
            .collect();
    let client_properties = [("capabilities", Value::Table(capabilities))].into_iter().collect();
    let response = LongStr(b"\0guest\0guest");
    bytes_of(0, connection::StartOk { client_properties, mechanism: "PLAIN", response, locale: "en_US" })
}

fn tune_ok() -> Vec<u8> {
    bytes_of(0, connection::TuneOk { channel_max: 100, frame_max: 4096, heartbeat: 0 })
}

/// The steps that lead from one phase to the next.
fn steps(queue: &str) -> [Vec<u8>; 7] {
    let consume = basic::Consume { queue, consumer_tag: "c", ..Default::default() };
    [
        PROTOCOL_HEADER.to_vec(),
        start_ok(),
        tune_ok(),
        bytes_of(0, connection::Open { vhost: "/", ..Default::default() }),
        [
            bytes_of(1, channel::Open::default()),
            bytes_of(1, queue::Declare { queue, auto_delete: true, ..Default::default() }),
            bytes_of(1, consume),
        ]
        .concat(),
        bytes_of(1, basic::Publish { routing_key: queue.as_bytes(), ..Default::default() }),
        bytes_of(1, channel::Open::default()),
    ]
}

fn script() -> Vec<u8> {
    let before = steps("q");
    let get = bytes_of(1, basic::Get { queue: "r", ..Default::default() });
    let rest = [
        bytes_of(1, queue::Declare { queue: "r", ..Default::default() }),
        bytes_of(1, confirm::Select::default()),
        publish(b"nowhere", true, b"hi"),
        publish(b"r", false, b""),
        publish(b"r", false, &[7; 5000]),
        publish(b"q", false, b"to the consumer"),
        get,
        bytes_of(1, basic::Nack { delivery_tag: 2, multiple: false, requeue: true }),
        bytes_of(1, basic::Ack { delivery_tag: 1, multiple: true }),
        bytes_of(1, basic::Ack { delivery_tag: 99, multiple: false }),
        bytes_of(0, connection::Close { reply_code: 200, ..Default::default() }),
    ];
    [before[..5].concat(), rest.concat()].concat()
}

/// The answers to pieces, confirms aside, which may be gathered or not.
fn answers(pieces: &[&[u8]]) -> Vec<(Kind, u16, Vec<u8>)> {
    let mut rig = Rig::new(&broker());
    for piece in pieces {
        rig.feed(piece);
    }
    assert_eq!(rig.session.next(), Next::Close(Duration::ZERO));
    let confirm = |payload: &[u8]| payload.starts_with(&[0, 60, 0, 80]);
    rig.frames().into_iter().filter(|(_, _, payload)| !confirm(payload)).collect()
}

#[test]
fn a_cut_at_any_byte_does_not_change_the_answers() {
    let script = script();
    let whole = answers(&[&script]);
    assert!(whole.len() > 15, "{whole:?}");
    for at in 1..script.len() {
        let (before, after) = script.split_at(at);
        assert_eq!(answers(&[before, after]), whole, "cut at {at}");
    }
    assert_eq!(answers(&script.chunks(1).collect::<Vec<_>>()), whole);
}

/// Something that may come at any time.
#[derive(Debug, Clone)]
enum Piece {
    Bytes(Vec<u8>),
    Frame(u8, u16, Vec<u8>),
    Method(usize, u16, Vec<u8>),
    Message(bool, Vec<u8>),
    Ack(u64, bool),
    CloseOk,
}

fn piece() -> impl Strategy<Value = Piece> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..64);
    let kind = prop::sample::select(vec![1_u8, 2, 3, 8, 5]);
    prop_oneof![
        1 => bytes().prop_map(Piece::Bytes),
        3 => (kind, 0_u16..3, bytes()).prop_map(|(kind, channel, payload)| Piece::Frame(kind, channel, payload)),
        12 => (any::<usize>(), 0_u16..3, bytes())
            .prop_map(|(which, channel, arguments)| Piece::Method(which, channel, arguments)),
        4 => (any::<bool>(), bytes()).prop_map(|(mandatory, body)| Piece::Message(mandatory, body)),
        2 => (0_u64..5, any::<bool>()).prop_map(|(tag, multiple)| Piece::Ack(tag, multiple)),
        1 => Just(Piece::CloseOk),
    ]
}

fn encode(piece: &Piece) -> Vec<u8> {
    let texts = ["", "q", "r", "amq.direct", "amq.topic", "direct", "/", "c", "PLAIN"].map(str::to_owned);
    let tables = [
        Table::new(),
        [("x-message-ttl", Value::I32(-1))].into_iter().collect(),
        [("x-match", Value::str("any")), ("k", Value::Void)].into_iter().collect(),
    ];
    match piece {
        Piece::Bytes(bytes) => bytes.clone(),
        Piece::Frame(kind, channel, payload) => {
            let mut out = Vec::new();
            frame::write(Kind::Method, *channel, &mut out, |writer| writer.raw(payload));
            out[0] = *kind;
            out
        }
        Piece::Method(which, channel, arguments) => {
            bytes_of(*channel, Method::any(*which, arguments, &texts, &tables))
        }
        Piece::Message(mandatory, body) => publish(b"q", *mandatory, body),
        Piece::Ack(delivery_tag, multiple) => {
            bytes_of(1, basic::Ack { delivery_tag: *delivery_tag, multiple: *multiple })
        }
        Piece::CloseOk => bytes_of(1, channel::CloseOk {}),
    }
}

/// Whether the answers end as they must: one close at most, with a code that ends a connection, and little after it.
fn check_ending(frames: &[(Kind, u16, Vec<u8>)]) {
    let close = |(kind, channel, payload): &(Kind, u16, Vec<u8>)| {
        *kind == Kind::Method && *channel == 0 && payload.starts_with(&[0, 10, 0, 50])
    };
    let Some(at) = frames.iter().position(close) else { return };
    let Ok(Method::Connection(connection::Method::Close(said))) = Method::decode(&frames[at].2) else {
        panic!("a close that is none")
    };
    let code = ReplyCode::from_code(said.reply_code).expect("a known code");
    assert!(code.is_hard() || code == ReplyCode::AccessRefused, "{said:?}");
    assert!(said.reply_text.starts_with(code.name()), "{said:?}");
    for (_, channel, payload) in &frames[at + 1..] {
        assert_eq!((*channel, &payload[..]), (0, &[0, 10, 0, 51][..]), "after connection.close");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nonsense_in_any_phase_ends_in_one_proper_close_or_does_not_matter(
        phase in 0_usize..8,
        pieces in prop::collection::vec(piece(), 1..16),
        together in any::<bool>(),
    ) {
        let broker = broker();
        let mut rig = Rig::new(&broker);
        for step in steps("q").iter().take(phase) {
            rig.feed(step);
        }
        let pieces: Vec<Vec<u8>> = pieces.iter().map(encode).collect();
        if together {
            rig.feed(&pieces.concat());
        } else {
            pieces.iter().for_each(|piece| rig.feed(piece));
        }
        prop_assert!(rig.output.len() < 64 << 10, "{} bytes of answers", rig.output.len());
        if phase > 0 {
            check_ending(&rig.frames());
        }
        rig.session.handle_end("the end");
        drop(rig);

        // Nothing is left of it, and the broker serves the next one.
        prop_assert_eq!(broker.connections().len(), 0);
        let vhost = broker.vhost("/").expect("it exists");
        for queue in vhost.queues() {
            prop_assert_eq!((queue.depth.consumers, queue.depth.unacked), (0, 0));
        }
        let mut fresh = Rig::new(&broker);
        steps("fresh").iter().take(5).for_each(|step| fresh.feed(step));
        fresh.feed(&publish(b"fresh", false, b"alive"));
        let (kind, channel, body) = fresh.frames().pop().expect("a delivery");
        prop_assert_eq!((kind, channel, &body[..]), (Kind::Body, 1, &b"alive"[..]));
    }
}
