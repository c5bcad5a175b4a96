//! The fast way through a basic.ack.
//!
//! Owns nothing the generic decoder does not also know: what is refused here is to be given to that one, for its diagnosis.

/// The arguments of a basic.ack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckArgs {
    /// The delivery settled.
    pub delivery_tag: u64,
    /// Whether all deliveries before it are settled too.
    pub multiple: bool,
}

impl AckArgs {
    /// The arguments in the payload of a method frame; `None` if it is not a well-formed basic.ack.
    #[inline]
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let &[0, 60, 0, 80, t0, t1, t2, t3, t4, t5, t6, t7, bits] = payload else {
            return None;
        };
        let delivery_tag = u64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
        Some(Self { delivery_tag, multiple: bits & 1 != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::method::{Method, basic};

    #[test]
    fn an_ack_is_read_as_the_generic_decoder_reads_it() {
        for (delivery_tag, multiple) in
            [(0, true), (1, false), (0x0102_0304_0506_0708, true), (u64::MAX, false)]
        {
            let mut out = Vec::new();
            basic::Ack { delivery_tag, multiple }.encode(1, &mut out);
            let payload = &out[7..out.len() - 1];
            assert_eq!(AckArgs::parse(payload), Some(AckArgs { delivery_tag, multiple }));
            let generic = Method::decode(payload).unwrap();
            assert_eq!(generic, basic::Ack { delivery_tag, multiple }.into());
        }
    }

    #[test]
    fn other_methods_and_other_lengths_are_left_to_the_generic_decoder() {
        let mut nack = Vec::new();
        basic::Nack { delivery_tag: 1, multiple: true, requeue: false }.encode(1, &mut nack);
        assert_eq!(AckArgs::parse(&nack[7..nack.len() - 1]), None);
        assert_eq!(AckArgs::parse(&[0, 60, 0, 80, 0, 0, 0, 0, 0, 0, 0, 1]), None);
        assert_eq!(AckArgs::parse(&[0, 60, 0, 80, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]), None);
    }
}
