//! What who looks into a vhost sees, and publishing one message.

use super::*;
use crate::queue::Fetched;
use crate::vhost::Publication;
use bytes::Bytes;

fn publish_to(vhost: &Vhost, exchange: &str, key: &str, body: &'static [u8]) -> Result<usize, PublishError> {
    let body = Bytes::from_static(body);
    let message = Publication { exchange, routing_key: key, properties: &[0, 0], body };
    vhost.publish(&message).map(|routed| routed.queues)
}

#[test]
fn queues_are_seen_by_name_whoever_they_belong_to() {
    let vhost = vhost();
    vhost.declare_queue("b", exclusive(), OTHER).unwrap();
    vhost.with_queue("a");
    let seen: Vec<_> = vhost.declared_queues().into_iter().map(|queue| queue.declared.name).collect();
    assert_eq!(seen, names(&["a", "b"]));
    assert_eq!(vhost.declared_queue("b").unwrap().declared.owner, Some(OTHER));
    assert!(vhost.declared_queue("c").is_none());
}

#[test]
fn bindings_are_seen_from_either_end() {
    let vhost = vhost();
    vhost.with_queue("q");
    vhost.bind_queue("amq.direct", "q");
    let to_queue = vhost.bindings_to_queue("q").unwrap();
    assert_eq!(to_queue.iter().map(|binding| &*binding.source).collect::<Vec<_>>(), ["", "amq.direct"]);
    assert_eq!(vhost.bindings_from_exchange("amq.direct").unwrap().len(), 1);
    assert_eq!(vhost.bindings_from_exchange("").unwrap().len(), 1);
    assert!(vhost.bindings_to_exchange("amq.direct").unwrap().is_empty());
    assert!(vhost.bindings_to_queue("x").is_none() && vhost.bindings_from_exchange("x").is_none());
}

#[test]
fn a_single_message_goes_to_the_queues_of_its_route() {
    let vhost = vhost();
    let queue = vhost.with_queue("q");
    vhost.bind_queue("amq.direct", "q");
    assert_eq!(publish_to(&vhost, "", "q", b"short"), Ok(1));
    assert_eq!(publish_to(&vhost, "amq.direct", "k", &[7; 10_000]), Ok(1));
    assert_eq!(publish_to(&vhost, "amq.direct", "other", b""), Ok(0));
    assert_eq!(publish_to(&vhost, "nowhere", "k", b""), Err(PublishError::Route(RouteError::NotFound)));
    let fetch =
        || queue.fetch(true, |delivery, left| (delivery.message.body.len(), left), &mut Wakes::default());
    assert_eq!(
        (fetch(), fetch(), fetch()),
        (Fetched::Message((5, 1)), Fetched::Message((10_000, 0)), Fetched::Empty)
    );
}
