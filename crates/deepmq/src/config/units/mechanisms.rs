//! The mechanisms by which clients may log in.
//!
//! Owns how they are written: their names, divided by blanks, as clients are told. Must not know how they are spoken.

use std::str::FromStr;

use deepmq_broker::config::Mechanism;

use super::{BadValue, deserialize_from_text};

/// One or more, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mechanisms(pub(crate) Vec<Mechanism>);

impl FromStr for Mechanisms {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let wrong =
            BadValue("write some of PLAIN, AMQPLAIN and RABBIT-CR-DEMO, each once, as \"PLAIN AMQPLAIN\"");
        let mut mechanisms = Vec::new();
        for name in text.split_ascii_whitespace() {
            let known = Mechanism::ALL.into_iter().find(|mechanism| mechanism.name() == name);
            let Some(mechanism) = known.filter(|mechanism| !mechanisms.contains(mechanism)) else {
                return Err(wrong);
            };
            mechanisms.push(mechanism);
        }
        if mechanisms.is_empty() { Err(wrong) } else { Ok(Self(mechanisms)) }
    }
}

deserialize_from_text!(Mechanisms);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mechanisms_are_taken_in_their_order_each_once_and_those_that_do_not_exist_are_not() {
        use Mechanism::{AmqPlain, CrDemo, Plain};
        assert_eq!("PLAIN AMQPLAIN".parse(), Ok(Mechanisms(vec![Plain, AmqPlain])));
        assert_eq!(" RABBIT-CR-DEMO  PLAIN ".parse(), Ok(Mechanisms(vec![CrDemo, Plain])));
        for text in ["", " ", "plain", "PLAIN,AMQPLAIN", "PLAIN PLAIN", "EXTERNAL", "ANONYMOUS PLAIN"] {
            assert!(text.parse::<Mechanisms>().is_err(), "{text}");
        }
    }
}
