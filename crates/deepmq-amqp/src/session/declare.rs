//! Declaring, deleting, binding and purging: classes exchange and queue.
//!
//! Owns what an empty name stands for. The rules themselves are the model's.

use super::{Failure, Session, clean, generated_name, reply_to};
use crate::codec::ReplyCode;
use crate::codec::method::{exchange, queue};
use crate::goal::Goal;
use crate::translate;
use deepmq_broker::queue::Queue;
use deepmq_broker::vhost::{BindingRequest, DeleteIf};
use deepmq_model::access::Permission;
use deepmq_model::topology::{Destination, ExchangeKind, ExchangeSpec, QueueSpec, ResourceKind};
use deepmq_model::{Name, Table};
use std::sync::Arc;

/// The two ends of a binding and what is said of it.
struct Bind<'a> {
    source: &'a str,
    destination: Destination<'a>,
    key: &'a [u8],
    arguments: &'a Table,
}

impl Session {
    pub(super) fn on_exchange_method(
        &mut self,
        number: u16,
        method: exchange::Method<'_>,
    ) -> Result<(), Failure> {
        self.channel_mut(number)?;
        match method {
            exchange::Method::Declare(declare) => self.on_exchange_declare(number, declare),
            exchange::Method::Delete(delete) => {
                let (vhost, name) = (self.vhost()?, clean(delete.exchange));
                if !is_predeclared(&name) {
                    self.permit(Permission::Configure, ResourceKind::Exchange, &name)?;
                }
                vhost
                    .delete_exchange(&name, delete.if_unused)
                    .map_err(|e| translate::topology_error(&e, vhost.name()))?;
                self.reply(number, delete.no_wait, exchange::DeleteOk {});
                Ok(())
            }
            exchange::Method::Bind(bind) => {
                let (source, destination) = (clean(bind.source), clean(bind.destination));
                self.bind(&Bind {
                    source: &source,
                    destination: Destination::Exchange(&destination),
                    key: bind.routing_key,
                    arguments: &bind.arguments,
                })?;
                self.reply(number, bind.no_wait, exchange::BindOk {});
                Ok(())
            }
            exchange::Method::Unbind(unbind) => {
                let (source, destination) = (clean(unbind.source), clean(unbind.destination));
                self.unbind(&Bind {
                    source: &source,
                    destination: Destination::Exchange(&destination),
                    key: unbind.routing_key,
                    arguments: &unbind.arguments,
                })?;
                self.reply(number, unbind.no_wait, exchange::UnbindOk {});
                Ok(())
            }
            exchange::Method::DeclareOk(_)
            | exchange::Method::DeleteOk(_)
            | exchange::Method::BindOk(_)
            | exchange::Method::UnbindOk(_) => Err(Failure::unimplemented()),
        }
    }

    fn on_exchange_declare(&mut self, number: u16, declare: exchange::Declare<'_>) -> Result<(), Failure> {
        let vhost = self.vhost()?;
        let error = |e| translate::topology_error(&e, vhost.name());
        let name = clean(declare.exchange);
        let named = !name.is_empty();
        if declare.passive {
            if named {
                self.permit_any(ResourceKind::Exchange, &name)?;
            }
            vhost.check_exchange(&name).map_err(error)?;
        } else {
            let kind = declare.kind.parse::<ExchangeKind>().map_err(error)?;
            if named {
                let exists = vhost.exchange_kind(&name).is_some();
                self.permit_declare((ResourceKind::Exchange, &name), exists, &declare.arguments)?;
            }
            let spec = ExchangeSpec {
                kind,
                durable: declare.durable,
                auto_delete: declare.auto_delete,
                internal: declare.internal,
                arguments: declare.arguments,
            };
            vhost.declare_exchange(&name, spec).map_err(error)?;
        }
        self.reply(number, declare.no_wait, exchange::DeclareOk {});
        Ok(())
    }

    pub(super) fn on_queue_method(&mut self, number: u16, method: queue::Method<'_>) -> Result<(), Failure> {
        self.channel_mut(number)?;
        match method {
            queue::Method::Declare(declare) => self.on_queue_declare(number, declare),
            queue::Method::Bind(bind) => self.on_queue_bind(number, &bind),
            queue::Method::Unbind(unbind) => {
                let queue = self.queue_name(number, unbind.queue)?;
                reply_to::refuse_binding(&queue)?;
                self.unbind(&Bind {
                    source: &clean(unbind.exchange),
                    destination: Destination::Queue(&queue),
                    key: unbind.routing_key,
                    arguments: &unbind.arguments,
                })?;
                self.reply(number, false, queue::UnbindOk {});
                Ok(())
            }
            queue::Method::Purge(purge) => {
                let name = self.queue_name(number, purge.queue)?;
                self.permit(Permission::Read, ResourceKind::Queue, &name)?;
                let message_count = count(self.find_queue(&name)?.purge(&mut self.wakes));
                self.reply(number, purge.no_wait, queue::PurgeOk { message_count });
                Ok(())
            }
            queue::Method::Delete(delete) => self.on_queue_delete(number, &delete),
            queue::Method::DeclareOk(_)
            | queue::Method::BindOk(_)
            | queue::Method::PurgeOk(_)
            | queue::Method::DeleteOk(_)
            | queue::Method::UnbindOk(_) => Err(Failure::unimplemented()),
        }
    }

    fn on_queue_declare(&mut self, number: u16, declare: queue::Declare<'_>) -> Result<(), Failure> {
        let given = clean(declare.queue);
        if reply_to::is_pseudo(&given) {
            return self.on_declare_replies(number, &given.as_ref().into(), declare.no_wait);
        }
        let queue = if declare.passive {
            let name = self.queue_name(number, &given)?;
            self.permit_any(ResourceKind::Queue, &name)?;
            let queue = self.find_queue(&name)?;
            queue.touch();
            queue
        } else {
            self.declare_queue(&given, &declare)?
        };
        self.channel_mut(number)?.last_queue = Some(queue.name().clone());
        let depth = queue.depth();
        let ok = queue::DeclareOk {
            queue: queue.name(),
            message_count: count(depth.ready),
            consumer_count: count(depth.consumers as u64),
        };
        self.reply(number, declare.no_wait, ok);
        Ok(())
    }

    fn declare_queue(&mut self, given: &str, declare: &queue::Declare<'_>) -> Result<Arc<Queue>, Failure> {
        let vhost = self.vhost()?;
        let server_named = given.is_empty();
        let name: Name = if server_named { generated_name("amq.gen-", &self.broker) } else { given.into() };
        let exists = vhost.has_queue(&name);
        self.permit_declare((ResourceKind::Queue, &name), exists, &declare.arguments)?;
        let spec = QueueSpec {
            durable: declare.durable,
            exclusive: declare.exclusive,
            auto_delete: declare.auto_delete,
            server_named,
            arguments: declare.arguments.clone(),
        };
        let (queue, _) = vhost
            .declare_queue(&name, spec, self.id)
            .map_err(|e| translate::topology_error(&e, vhost.name()))?;
        Ok(queue)
    }

    fn on_queue_bind(&mut self, number: u16, bind: &queue::Bind<'_>) -> Result<(), Failure> {
        let queue = self.queue_name(number, bind.queue)?;
        reply_to::refuse_binding(&queue)?;
        // With neither queue nor key given, the key is the name of the last queue too (specification, queue.bind).
        let key = if bind.queue.is_empty() && bind.routing_key.is_empty() {
            queue.as_bytes()
        } else {
            bind.routing_key
        };
        self.bind(&Bind {
            source: &clean(bind.exchange),
            destination: Destination::Queue(&queue),
            key,
            arguments: &bind.arguments,
        })?;
        self.reply(number, bind.no_wait, queue::BindOk {});
        Ok(())
    }

    fn on_queue_delete(&mut self, number: u16, delete: &queue::Delete<'_>) -> Result<(), Failure> {
        let vhost = self.vhost()?;
        let name = self.queue_name(number, delete.queue)?;
        self.permit(Permission::Configure, ResourceKind::Queue, &name)?;
        let when = DeleteIf { unused: delete.if_unused, empty: delete.if_empty };
        let answer = |messages| {
            self.reply(number, delete.no_wait, queue::DeleteOk { message_count: count(messages) });
        };
        vhost
            .delete_queue(&name, self.id, when, answer)
            .map_err(|e| translate::delete_error(&e, &name, vhost.name()))
    }

    /// The queue a name stands for: an empty one is the last declared on the channel.
    pub(super) fn queue_name(&mut self, number: u16, given: &str) -> Result<Name, Failure> {
        let given = clean(given);
        if !given.is_empty() {
            return Ok(given.as_ref().into());
        }
        let last = self.channel_mut(number)?.last_queue.clone();
        last.ok_or_else(|| Failure::soft(ReplyCode::NotFound, "no previously declared queue"))
    }

    fn find_queue(&self, name: &str) -> Result<Arc<Queue>, Failure> {
        let vhost = self.vhost()?;
        vhost.queue(name, self.id).map_err(|e| translate::topology_error(&e, vhost.name()))
    }

    fn bind(&mut self, bind: &Bind<'_>) -> Result<(), Failure> {
        self.permit_binding(bind.source, bind.destination, bind.key)?;
        let vhost = self.vhost()?;
        let bound = vhost.bind(bind.request(), self.id);
        bound.map(|_| ()).map_err(|e| translate::topology_error(&e, vhost.name()))
    }

    fn unbind(&mut self, bind: &Bind<'_>) -> Result<(), Failure> {
        self.permit_binding(bind.source, bind.destination, bind.key)?;
        let vhost = self.vhost()?;
        vhost.unbind(bind.request(), self.id).map_err(|e| translate::topology_error(&e, vhost.name()))
    }

    /// Answers, unless the client does not wait for it. The answer is sent once what was done is durable.
    fn reply<'m>(&self, number: u16, no_wait: bool, method: impl Into<crate::codec::Method<'m>>) {
        if no_wait {
            return;
        }
        let last = self.vhost.as_ref().and_then(|vhost| vhost.last_change());
        match last
            .filter(|&lsn| self.broker.durable().is_some_and(|durable| durable.journal().durable() < lsn))
        {
            Some(lsn) => {
                let method = method.into();
                self.outbox.write_after(Goal::synced(lsn), |frames| method.encode(number, &mut frames.buf));
            }
            None => self.send(number, method),
        }
    }
}

impl<'a> Bind<'a> {
    fn request(&self) -> BindingRequest<'a> {
        BindingRequest {
            source: self.source,
            destination: self.destination,
            key: self.key,
            arguments: self.arguments,
        }
    }
}

/// Whether an exchange cannot be deleted, whatever the permissions.
fn is_predeclared(name: &str) -> bool {
    name.is_empty() || name.starts_with("amq.")
}

fn count(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
