//! The broker's errors as AMQP tells them: code, scope and RabbitMQ's text.
//!
//! Owns the wording, and the checks of properties whose rules are RabbitMQ's alone. Each match is exhaustive, so that
//! a new kind of error does not get past this file.

use crate::codec::ReplyCode;
use crate::session::Failure;
use deepmq_broker::Limits;
use deepmq_broker::queue::DeleteRefused;
use deepmq_broker::users::User;
use deepmq_broker::vhost::DeleteError;
use deepmq_model::access::Refused;
use deepmq_model::message::carbon::CarbonFault;
use deepmq_model::message::properties::{self, flag};
use deepmq_model::message::table;
use deepmq_model::topology::{Limit, ResourceKind, RouteError, TopologyError, describe};

/// Ten years in milliseconds: the longest time anything may be told to live.
const EXPIRATION_MS_MAX: u64 = 315_360_000_000;

/// The tag of users who may publish under another's name.
const IMPERSONATOR: &str = "impersonator";

/// What the user may not do.
pub(crate) fn access_refused(refused: Refused) -> Failure {
    Failure::soft(ReplyCode::AccessRefused, refused.to_string())
}

/// A refused operation on exchanges, queues or bindings.
pub(crate) fn topology_error(error: &TopologyError, vhost: &str) -> Failure {
    use TopologyError as E;
    let soft = |code, text: String| Failure::soft(code, text);
    let precondition = |text: String| Failure::precondition(text);
    match error {
        E::NotFound(resource) => soft(ReplyCode::NotFound, format!("no {resource} in vhost '{vhost}'")),
        E::Locked { queue } => soft(
            ReplyCode::ResourceLocked,
            format!(
                "cannot obtain exclusive access to locked queue '{queue}' in vhost '{vhost}'. It could be \
                 originally declared on another connection or the exclusive property value does not match that \
                 of the original declaration."
            ),
        ),
        E::InequivalentFlag { resource, flag, received, current } => precondition(format!(
            "inequivalent arg '{flag}' for {resource} in vhost '{vhost}': received '{received}' but current is \
             '{current}'"
        )),
        E::InequivalentArgument { resource, argument, received, current } => precondition(format!(
            "inequivalent arg '{argument}' for {resource} in vhost '{vhost}': received {} but current is {}",
            describe(received.as_ref()),
            describe(current.as_ref())
        )),
        E::ReservedName(resource) => soft(
            ReplyCode::AccessRefused,
            format!("{} name '{}' contains reserved prefix 'amq.*'", resource.kind, resource.name),
        ),
        E::UnnamedQueue => precondition("a queue needs a name".into()),
        E::UnknownExchangeType { name } => precondition(format!("unknown exchange type '{name}'")),
        E::InvalidArgument { queue, argument, fault } => {
            precondition(format!("invalid arg '{argument}' for queue '{queue}' in vhost '{vhost}': {fault}"))
        }
        E::InvalidArgumentType { resource, argument, type_name } => precondition(format!(
            "invalid type '{type_name}' for arg '{argument}' in {resource} in vhost '{vhost}'"
        )),
        E::InvalidProperty { queue, property } => {
            precondition(format!("invalid property '{property}' for queue '{queue}' in vhost '{vhost}'"))
        }
        E::StreamUnsupported { queue } => Failure::hard(
            ReplyCode::NotImplemented,
            format!("queue '{queue}' in vhost '{vhost}' cannot be a stream: streams are not supported"),
        ),
        E::ServerNamed { kind } => {
            precondition(format!("Cannot declare a server-named queue for type {kind}"))
        }
        E::DefaultExchange => {
            soft(ReplyCode::AccessRefused, "operation not permitted on the default exchange".into())
        }
        E::SystemExchange { exchange } => soft(
            ReplyCode::AccessRefused,
            format!("deletion of system exchange '{exchange}' in vhost '{vhost}' not allowed"),
        ),
        E::InUse(resource) => precondition(format!("{resource} in vhost '{vhost}' in use")),
        E::TooManyHashes { key, hashes, max } => precondition(format!(
            "Topic binding key '{key}' uses {hashes} '#' wildcards, at most {max} are allowed"
        )),
        E::InvalidMatch { value } => precondition(format!(
            "Invalid x-match field value {value}; expected all, any, all-with-x, or any-with-x"
        )),
        E::InvalidMatchType { type_name } => {
            precondition(format!("Invalid x-match field type {type_name}; expected longstr"))
        }
        E::LimitReached { limit, name, max } => precondition(limit_reached(*limit, name, *max, vhost)),
    }
}

fn limit_reached(limit: Limit, name: &str, max: usize, vhost: &str) -> String {
    match limit {
        Limit::Queues => {
            format!("cannot declare queue '{name}': queue limit in vhost '{vhost}' ({max}) is reached")
        }
        Limit::Exchanges => format!("cannot declare exchange '{name}': exchange limit of {max} is reached"),
        Limit::Bindings => {
            format!("cannot bind to '{name}': binding limit in vhost '{vhost}' ({max}) is reached")
        }
        Limit::Arguments => format!("'{name}' has more than {max} arguments"),
        Limit::NameBytes => format!("a name is longer than {max} bytes"),
    }
}

/// A refused deletion of a queue.
pub(crate) fn delete_error(error: &DeleteError, queue: &str, vhost: &str) -> Failure {
    let kind = ResourceKind::Queue;
    match error {
        DeleteError::Topology(error) => topology_error(error, vhost),
        DeleteError::Refused(DeleteRefused::InUse) => {
            Failure::precondition(format!("{kind} '{queue}' in vhost '{vhost}' in use"))
        }
        DeleteError::Refused(DeleteRefused::NotEmpty) => {
            Failure::precondition(format!("{kind} '{queue}' in vhost '{vhost}' not empty"))
        }
    }
}

/// A message that cannot be routed.
pub(crate) fn route_error(error: RouteError, exchange: &[u8], vhost: &str) -> Failure {
    let exchange = String::from_utf8_lossy(exchange);
    match error {
        RouteError::NotFound => {
            Failure::soft(ReplyCode::NotFound, format!("no exchange '{exchange}' in vhost '{vhost}'"))
        }
        RouteError::Internal => Failure::soft(
            ReplyCode::AccessRefused,
            format!("cannot publish to internal exchange '{exchange}' in vhost '{vhost}'"),
        ),
    }
}

/// Headers with further routing keys that are none.
pub(crate) fn carbon_fault(fault: &CarbonFault) -> Failure {
    Failure::precondition(format!("invalid message: {fault}"))
}

/// What properties are checked against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PropertyRules<'a> {
    /// Who publishes.
    pub(crate) user: Option<&'a User>,
    /// Nesting of the headers.
    pub(crate) table_depth_max: usize,
}

impl<'a> PropertyRules<'a> {
    pub(crate) fn new(user: Option<&'a User>, limits: &Limits) -> Self {
        Self { user, table_depth_max: limits.table_depth_max }
    }
}

/// Checks the properties with a meaning for the broker: `user-id`, `expiration`, and how deep the headers are. Returns which
/// properties there are.
#[inline]
pub(crate) fn check_properties(encoded: &[u8], rules: PropertyRules<'_>) -> Result<u16, Failure> {
    let flags = properties::flags(encoded);
    if flags & flag::HEADERS != 0 && rules.table_depth_max < table::DEPTH_MAX {
        check_depth(
            properties::headers(encoded)
                .is_none_or(|headers| table::is_within(headers, rules.table_depth_max)),
        )?;
    }
    if flags & (flag::USER_ID | flag::EXPIRATION) != 0 {
        check_rare_properties(encoded, rules.user)?;
    }
    Ok(flags)
}

/// Refuses a table that is nested too deep.
pub(crate) fn check_depth(within: bool) -> Result<(), Failure> {
    if within {
        return Ok(());
    }
    Err(Failure::hard(ReplyCode::SyntaxError, "a table is nested deeper than the limit"))
}

#[cold]
fn check_rare_properties(encoded: &[u8], user: Option<&User>) -> Result<(), Failure> {
    if let (Some(claimed), Some(user)) = (properties::user_id(encoded), user)
        && claimed != user.name.as_bytes()
        && !user.has_tag(IMPERSONATOR)
    {
        let user = &user.name;
        let claimed = String::from_utf8_lossy(claimed);
        let text = format!("user_id property set to '{claimed}' but authenticated user was '{user}'");
        return Err(Failure::precondition(text));
    }
    if let Some(expiration) = properties::expiration(encoded)
        && let Err(why) = check_expiration(expiration)
    {
        let text = format!("invalid expiration '{}': {why}", String::from_utf8_lossy(expiration));
        return Err(Failure::precondition(text));
    }
    Ok(())
}

/// A decimal number of milliseconds and nothing else; the error is RabbitMQ's tail of the text.
fn check_expiration(text: &[u8]) -> Result<(), String> {
    let signs = usize::from(text.first().is_some_and(|sign| matches!(sign, b'-' | b'+')));
    let digits = text.iter().skip(signs).take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return Err("no_integer".into());
    }
    let (number, rest) = text.split_at_checked(signs + digits).unwrap_or((text, &[]));
    let number = String::from_utf8_lossy(number);
    if !rest.is_empty() {
        return Err(format!("{{leftover_string,\"{}\"}}", String::from_utf8_lossy(rest)));
    }
    if number.starts_with('-') && number.bytes().any(|digit| matches!(digit, b'1'..=b'9')) {
        return Err(format!("{{value_negative,{number}}}"));
    }
    match number.trim_start_matches(['+', '-']).parse::<u64>() {
        Ok(ms) if ms <= EXPIRATION_MS_MAX => Ok(()),
        _ => Err(format!("{{value_too_large,{number}}}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiration_is_a_plain_number_of_at_most_ten_years() {
        for good in ["0", "60000", "+5", "-0", "315360000000"] {
            assert_eq!(check_expiration(good.as_bytes()), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("", "no_integer"),
            ("abc", "no_integer"),
            ("12abc", "{leftover_string,\"abc\"}"),
            ("-1", "{value_negative,-1}"),
            ("315360000001", "{value_too_large,315360000001}"),
            ("99999999999999999999999", "{value_too_large,99999999999999999999999}"),
        ] {
            assert_eq!(check_expiration(bad.as_bytes()), Err(why.into()), "{bad}");
        }
    }
}
