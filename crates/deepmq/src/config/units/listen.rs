//! Where a front-end listens.
//!
//! Owns how an address is written. Must not know sockets: a host's name is looked up when it is bound.

use std::str::FromStr;

use super::{BadValue, deserialize_from_text};

/// A host and port, or `off`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Listen {
    Off,
    /// `host:port`; the host may be a name, or an IPv6 address in brackets.
    On(String),
}

impl FromStr for Listen {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let bracketed = |host: &str| host.starts_with('[') && host.ends_with(']');
        match text.rsplit_once(':') {
            Some((host, port))
                if !host.is_empty()
                    && (bracketed(host) || !host.contains(':'))
                    && port.parse::<u16>().is_ok() =>
            {
                Ok(Self::On(text.to_owned()))
            }
            _ => Err(BadValue("write an address as 127.0.0.1:5672, [::1]:5672 or localhost:5672, or off")),
        }
    }
}

deserialize_from_text!(Listen);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port_or_off() {
        for text in ["127.0.0.1:5672", "localhost:0", "[::1]:65535", "0.0.0.0:1"] {
            assert_eq!(text.parse(), Ok(Listen::On(text.to_owned())));
        }
        assert_eq!("off".parse(), Ok(Listen::Off));
        for text in ["", "5672", ":5672", "localhost", "localhost:", "localhost:65536", "::1:5672", "on"] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }
}
