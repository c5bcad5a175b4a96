//! The fast way through a basic.publish, the method a broker reads most.
//!
//! Owns nothing the generic decoder does not also know: what is refused here is to be given to that one, for its diagnosis.

/// The arguments of a basic.publish, in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishArgs<'a> {
    /// Exchange and routing key as one run of bytes, both with their length octet before them. Equal addresses have equal bytes.
    pub address: &'a [u8],
    /// The name of the exchange; not checked for UTF-8.
    pub exchange: &'a [u8],
    /// The routing key.
    pub routing_key: &'a [u8],
    /// Whether to return the message if no queue takes it.
    pub mandatory: bool,
    /// Whether to return the message if no consumer takes it at once.
    pub immediate: bool,
}

impl<'a> PublishArgs<'a> {
    /// The arguments in the payload of a method frame; `None` if it is not a well-formed basic.publish.
    #[inline]
    pub fn parse(payload: &'a [u8]) -> Option<Self> {
        let (&[0, 60, 0, 40, _, _], arguments) = payload.split_first_chunk::<6>()? else {
            return None;
        };
        let exchange_end = 1 + usize::from(*arguments.first()?);
        let key_end = exchange_end + 1 + usize::from(*arguments.get(exchange_end)?);
        let (address, &[bits]) = arguments.split_at_checked(key_end)? else {
            return None;
        };
        Some(Self {
            address,
            exchange: address.get(1..exchange_end)?,
            routing_key: address.get(exchange_end + 1..)?,
            mandatory: bits & 1 != 0,
            immediate: bits & 2 != 0,
        })
    }
}

/// Exchange and routing key of an address as in [`PublishArgs::address`]; `None` if it is none.
#[inline]
pub fn split_address(address: &[u8]) -> Option<(&[u8], &[u8])> {
    let (exchange, rest) = split_short(address)?;
    let (routing_key, []) = split_short(rest)? else {
        return None;
    };
    Some((exchange, routing_key))
}

#[inline]
fn split_short(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first()?;
    rest.split_at_checked((*len).into())
}

#[cfg(test)]
mod tests;
