//! What clients say of deliveries: ack, nack, reject, recover.
//!
//! Owns the gathering of acknowledgements that follow each other, so that the connection and each queue are locked once.

use super::channel::Mode;
use super::{Failure, Session};
use crate::codec::ack::AckArgs;
use crate::codec::method::basic;
use crate::codec::{Frame, ReplyCode};
use deepmq_broker::UnknownTag;
use deepmq_broker::queue::Outcome;

/// Acknowledgements not looked at yet.
#[derive(Debug, Default)]
pub(super) struct PendingAcks(Vec<(u16, AckArgs)>);

/// One statement about deliveries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verdict {
    pub(super) tag: u64,
    pub(super) multiple: bool,
    pub(super) outcome: Outcome,
}

impl Session {
    /// Takes a basic.ack to be looked at with others. False: it is something else, or not that simple.
    #[inline]
    pub(super) fn gather_ack(&mut self, frame: &Frame<'_>) -> bool {
        let Some(ack) = AckArgs::parse(frame.payload) else { return false };
        let simple = self.channels.get(&frame.channel).is_some_and(|channel| {
            !channel.is_closing() && channel.content.is_none() && !matches!(channel.mode, Mode::Tx(_))
        });
        if simple {
            self.acks.0.push((frame.channel, ack));
        }
        simple
    }

    /// Looks at the gathered acknowledgements.
    pub(super) fn flush_acks(&mut self) {
        if self.acks.0.is_empty() {
            return;
        }
        let mut acks = std::mem::take(&mut self.acks.0);
        for run in acks.chunk_by(|(a, _), (b, _)| a == b) {
            let Some(&(number, _)) = run.first() else { continue };
            let verdicts = run.iter().map(|(_, ack)| Verdict {
                tag: ack.delivery_tag,
                multiple: ack.multiple,
                outcome: Outcome::Ack,
            });
            if let Err(failure) = self.settle(number, verdicts) {
                self.settlements.apply(&mut self.wakes);
                self.fail(number, &failure.of(basic::Ack::ID));
            }
        }
        self.settlements.apply(&mut self.wakes);
        acks.clear();
        self.acks.0 = acks;
    }

    /// Settles deliveries of a channel, up to the first unknown one.
    pub(super) fn settle(
        &mut self,
        number: u16,
        verdicts: impl Iterator<Item = Verdict>,
    ) -> Result<(), Failure> {
        let settlements = &mut self.settlements;
        let result = self.outbox.channel(number, |channel, _| {
            let mut verdicts = verdicts;
            let settled = verdicts.try_for_each(|verdict| {
                channel.settle(verdict.tag, verdict.multiple, verdict.outcome, settlements)
            });
            (settled, channel.unpaused())
        });
        let Some((settled, unpaused)) = result else { return Ok(()) };
        for (queue, consumer) in unpaused {
            queue.resume(consumer, &mut self.wakes);
        }
        settled.map_err(|UnknownTag(tag)| Failure::precondition(format!("unknown delivery tag {tag}")))
    }

    /// Settles now, or with the transaction.
    pub(super) fn on_verdict(&mut self, number: u16, verdict: Verdict) -> Result<(), Failure> {
        if let Mode::Tx(_) = self.channel_mut(number)?.mode {
            return self.settle_later(number, verdict);
        }
        let settled = self.settle(number, std::iter::once(verdict));
        self.settlements.apply(&mut self.wakes);
        settled
    }

    pub(super) fn on_recover(&mut self, number: u16, requeue: bool) -> Result<(), Failure> {
        if !requeue {
            return Err(Failure::hard(ReplyCode::NotImplemented, "requeue=false"));
        }
        let everything = Verdict { tag: 0, multiple: true, outcome: Outcome::Recover };
        let settled = self.settle(number, std::iter::once(everything));
        self.settlements.apply(&mut self.wakes);
        settled
    }
}
