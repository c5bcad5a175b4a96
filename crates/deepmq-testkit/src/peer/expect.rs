//! What must come, or must not.
//!
//! Owns the comparing. Every text is compared whole.

use super::RawPeer;
use deepmq_amqp::codec::method::{channel, connection};
use deepmq_amqp::codec::{Method, MethodId};
use std::fmt::Debug;

impl RawPeer {
    /// This method must come next.
    pub async fn expect<'m>(&mut self, channel: u16, expected: impl Into<Method<'m>>) {
        let came = self.method(channel).await;
        assert_eq!(came, expected.into());
    }

    /// The broker must close the channel for this reason; the peer agrees.
    pub async fn expect_channel_close(&mut self, channel: u16, code: u16, text: &str, cause: MethodId) {
        let expected = channel::Close {
            reply_code: code,
            reply_text: text,
            class_id: cause.class,
            method_id: cause.method,
        };
        self.expect(channel, expected).await;
        self.send(channel, channel::CloseOk {}).await;
    }

    /// The broker must close the connection for this reason; the peer agrees, and that is the end.
    pub async fn expect_connection_close(&mut self, code: u16, text: &str, cause: MethodId) {
        let expected = connection::Close {
            reply_code: code,
            reply_text: text,
            class_id: cause.class,
            method_id: cause.method,
        };
        self.expect(0, expected).await;
        let mut close_ok = Vec::new();
        connection::CloseOk {}.encode(0, &mut close_ok);
        self.try_send_bytes(&close_ok).await;
        self.expect_eof().await;
    }

    /// The method must cost channel 1, with itself named as the cause. The channel is open again after.
    pub async fn refused<'m>(&mut self, method: impl Into<Method<'m>>, code: u16, text: &str) {
        let method = method.into();
        let cause = method.id();
        self.send(1, method).await;
        self.expect_channel_close(1, code, text, cause).await;
        self.open_channel(1).await;
    }

    /// The method, on this channel, must cost the connection, with itself named as the cause.
    pub async fn fatal<'m>(mut self, channel: u16, method: impl Into<Method<'m>>, code: u16, text: &str) {
        let method = method.into();
        let cause = method.id();
        self.send(channel, method).await;
        self.expect_connection_close(code, text, cause).await;
    }

    /// The connection must be at its end, without another frame.
    pub async fn expect_eof(&mut self) {
        assert_eq!(self.next_frame().await, None, "after the end");
    }

    /// Nothing may come on the channel before the answer to what is said now: all that was caused earlier is known then.
    pub async fn expect_quiet(&mut self, channel: u16) {
        self.send(channel, channel::Flow { active: true }).await;
        self.expect(channel, channel::FlowOk { active: true }).await;
    }

    /// All bytes up to the end of the connection.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        loop {
            match self.receive_bytes().await {
                bytes if bytes.is_empty() => return rest,
                bytes => rest.extend(bytes),
            }
        }
    }
}

/// Fails the test with what came.
pub(super) fn unexpected(expected: &str, came: &impl Debug) -> ! {
    panic!("expected {expected}, but {came:?} came")
}
