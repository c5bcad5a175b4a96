//! Class basic: publishing, consuming and settling messages.

use deepmq_model::Table;

class! {
    60 "basic" <'a> => Method<'_>;

    /// Limits what may be unsettled; `prefetch_size` is in bytes.
    Qos = 10 { prefetch_size: u32, prefetch_count: u16, [global] }
    /// The limit is set.
    QosOk = 11 {}
    /// Starts a consumer.
    Consume<'a> = 20 {
        ticket: u16,
        queue: &'a str,
        consumer_tag: &'a str,
        [no_local, no_ack, exclusive, no_wait],
        arguments: Table,
    }
    /// It is started.
    ConsumeOk<'a> = 21 { consumer_tag: &'a str, }
    /// Ends a consumer; from the server: it has ended.
    Cancel<'a> = 30 { consumer_tag: &'a str, [no_wait] }
    /// It has ended.
    CancelOk<'a> = 31 { consumer_tag: &'a str, }
    /// Publishes the content that follows.
    Publish<'a> = 40 { ticket: u16, exchange: &'a str, routing_key: &'a [u8], [mandatory, immediate] }
    /// Gives back the content that follows, which went nowhere.
    Return<'a> = 50 { reply_code: u16, reply_text: &'a str, exchange: &'a str, routing_key: &'a [u8], }
    /// Delivers the content that follows to a consumer.
    Deliver<'a> = 60 {
        consumer_tag: &'a str,
        delivery_tag: u64,
        [redelivered],
        exchange: &'a str,
        routing_key: &'a [u8],
    }
    /// Asks for one message.
    Get<'a> = 70 { ticket: u16, queue: &'a str, [no_ack] }
    /// Here it is, in the content that follows; so many more are ready.
    GetOk<'a> = 71 {
        delivery_tag: u64,
        [redelivered],
        exchange: &'a str,
        routing_key: &'a [u8],
        message_count: u32,
    }
    /// There is none. The argument is of the past.
    GetEmpty<'a> = 72 { cluster_id: &'a str, }
    /// Settles a delivery as done; from the server: confirms a message.
    Ack = 80 { delivery_tag: u64, [multiple] }
    /// Settles a delivery as refused.
    Reject = 90 { delivery_tag: u64, [requeue] }
    /// Redelivers all that is unsettled, without an answer.
    RecoverAsync = 100 { [requeue] }
    /// Redelivers all that is unsettled.
    Recover = 110 { [requeue] }
    /// It will be redelivered.
    RecoverOk = 111 {}
    /// Settles deliveries as refused (an extension); from the server: a message is lost.
    Nack = 120 { delivery_tag: u64, [multiple, requeue] }
}
