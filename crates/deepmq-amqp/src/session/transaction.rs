//! Transactions: publishes and settlements that wait for tx.commit.
//!
//! Owns what waits. On commit it is done as if it had just been said; on rollback it was never said, and deliveries stay
//! unsettled, as RabbitMQ has it.

use super::channel::Mode;
use super::content::Owned;
use super::settle::Verdict;
use super::{Failure, Session};
use crate::codec::method::tx;
use crate::codec::publish::split_address;
use crate::translate::{self, PropertyRules};
use deepmq_broker::permits;
use deepmq_model::topology::RouteSet;
use hashbrown::HashSet;

/// A channel's transaction.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    publishes: Vec<Owned>,
    verdicts: Vec<Verdict>,
    settled: Settled,
}

impl Transaction {
    /// What it holds of messages, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.publishes.iter().map(Owned::bytes).sum()
    }
}

/// The deliveries that a transaction's verdicts cover, so that none is settled twice and there are never more verdicts than
/// deliveries.
#[derive(Debug, Default)]
struct Settled {
    up_to: u64,
    beyond: HashSet<u64>,
}

impl Settled {
    fn covers(&self, tag: u64) -> bool {
        tag <= self.up_to || self.beyond.contains(&tag)
    }

    fn add(&mut self, tag: u64, multiple: bool) {
        if multiple {
            self.up_to = tag;
            self.beyond.retain(|&other| other > tag);
        } else {
            self.beyond.insert(tag);
        }
    }
}

impl Session {
    pub(super) fn on_tx_method(&mut self, number: u16, method: tx::Method) -> Result<(), Failure> {
        match method {
            tx::Method::Select(_) => self.on_tx_select(number),
            tx::Method::Commit(_) => self.on_tx_commit(number),
            tx::Method::Rollback(_) => {
                self.take_transaction(number)?;
                self.send(number, tx::RollbackOk {});
                Ok(())
            }
            tx::Method::SelectOk(_) | tx::Method::CommitOk(_) | tx::Method::RollbackOk(_) => {
                Err(Failure::unimplemented())
            }
        }
    }

    fn on_tx_select(&mut self, number: u16) -> Result<(), Failure> {
        let channel = self.channel_mut(number)?;
        match channel.mode {
            Mode::Plain => channel.mode = Mode::Tx(Transaction::default()),
            Mode::Tx(_) => {}
            Mode::Confirm { .. } => {
                return Err(Failure::precondition("cannot switch from confirm to tx mode"));
            }
        }
        self.note_transaction(number);
        self.send(number, tx::SelectOk {});
        Ok(())
    }

    fn on_tx_commit(&mut self, number: u16) -> Result<(), Failure> {
        let Transaction { publishes, verdicts, .. } = self.take_transaction(number)?;
        for publish in &publishes {
            if let Err(failure) = self.publish_parts(number, &publish.parts()) {
                // All or nothing.
                self.drop_batch();
                return Err(failure);
            }
        }
        let (settled, kept) = match self.broker.durable().cloned() {
            Some(durable) => {
                let commit = durable.commits().begin();
                self.wakes.begin_commit();
                let settled = self.carry_out(number, verdicts);
                let kept = self.journal_with_settlements();
                kept.into_iter().for_each(|goal| commit.appended(goal.lsn));
                self.wakes.end_commit();
                (settled, kept)
            }
            None => (self.carry_out(number, verdicts), None),
        };
        settled?;
        if self.any_refused() {
            return Err(Failure::precondition("partial tx completion"));
        }
        match kept {
            // It says that the messages are safe, as a confirm would.
            Some(goal) => {
                self.outbox.write_after(goal, |frames| tx::CommitOk {}.encode(number, &mut frames.buf));
            }
            None => self.send(number, tx::CommitOk {}),
        }
        Ok(())
    }

    /// Does to queues what a commit says.
    fn carry_out(&mut self, number: u16, verdicts: Vec<Verdict>) -> Result<(), Failure> {
        self.hand_over(&[]);
        let settled = self.settle(number, verdicts.into_iter());
        self.settlements.apply(&mut self.wakes);
        settled
    }

    fn take_transaction(&mut self, number: u16) -> Result<Transaction, Failure> {
        let Mode::Tx(transaction) = &mut self.channel_mut(number)?.mode else {
            return Err(Failure::precondition("channel is not transactional"));
        };
        let transaction = std::mem::take(transaction);
        self.held.sub(transaction.bytes());
        self.note_transaction(number);
        Ok(transaction)
    }

    /// Keeps a publish for the commit. What is wrong with it is said now.
    pub(super) fn publish_later(&mut self, number: u16, whole: Owned) -> Result<(), Failure> {
        let (vhost, access) = (self.vhost()?, self.access()?);
        let (exchange, key) = split_address(&whole.address).unwrap_or_default();
        translate::check_properties(
            &whole.properties,
            PropertyRules::new(self.user.as_deref(), self.broker.limits()),
        )?;
        permits::publish(&access, &vhost, &String::from_utf8_lossy(exchange), key)
            .map_err(translate::access_refused)?;
        vhost
            .route(exchange, key, &mut || None, &mut RouteSet::new(), &mut Vec::new())
            .map_err(|error| translate::route_error(error, exchange, vhost.name()))?;
        self.held.add(whole.bytes())?;
        if let Mode::Tx(transaction) = &mut self.channel_mut(number)?.mode {
            transaction.publishes.push(whole);
        }
        self.note_transaction(number);
        Ok(())
    }

    /// Keeps a settlement for the commit. That there is no such delivery is said now. Tag 0 means what is open now, not what
    /// will be at the commit.
    pub(super) fn settle_later(&mut self, number: u16, verdict: Verdict) -> Result<(), Failure> {
        let outbox = self.outbox.clone();
        let Mode::Tx(transaction) = &mut self.channel_mut(number)?.mode else { return Ok(()) };
        let Transaction { verdicts, settled, .. } = transaction;
        let tag = if verdict.multiple && verdict.tag == 0 {
            let last = outbox.channel(number, |channel, _| channel.last_open(|tag| !settled.covers(tag)));
            let Some(last) = last.flatten() else { return Ok(()) };
            last
        } else {
            verdict.tag
        };
        let open = outbox.channel(number, |channel, _| channel.is_open(tag)).unwrap_or(false);
        if !open || settled.covers(tag) {
            return Err(Failure::precondition(format!("unknown delivery tag {tag}")));
        }
        settled.add(tag, verdict.multiple);
        verdicts.push(Verdict { tag, ..verdict });
        self.note_transaction(number);
        Ok(())
    }

    /// Lets who inspects the channel see what waits.
    fn note_transaction(&self, number: u16) {
        if let Some(Mode::Tx(open)) = self.channels.get(&number).map(|channel| &channel.mode) {
            let (publishes, verdicts) = (open.publishes.len(), open.verdicts.len());
            self.outbox.channel(number, |channel, _| channel.note_uncommitted(publishes, verdicts));
        }
    }
}
