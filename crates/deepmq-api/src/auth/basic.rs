//! HTTP's Basic scheme (RFC 7617).
//!
//! Owns the reading of the header. Must not know who is let in.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use deepmq_broker::users::Secret;

/// More than any name and password that AMQP can carry.
const HEADER_BYTES_MAX: usize = 16 * 1024;

/// A name and a password.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: Secret,
}

impl Credentials {
    /// Reads the value of an `Authorization` header; none if it is of another scheme or malformed.
    pub(super) fn read(header: &[u8]) -> Option<Self> {
        if header.len() > HEADER_BYTES_MAX {
            return None;
        }
        let (scheme, encoded) = std::str::from_utf8(header).ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let mut decoded = BASE64_STANDARD.decode(encoded.trim()).ok()?;
        let colon = decoded.iter().position(|&byte| byte == b':')?;
        let password = decoded.split_off(colon + 1);
        decoded.pop();
        Some(Self { user: String::from_utf8(decoded).ok()?, password: Secret::new(password) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: &str) -> Option<(String, Vec<u8>)> {
        Credentials::read(header.as_bytes()).map(|read| (read.user, read.password.expose().to_vec()))
    }

    #[test]
    fn a_name_ends_at_the_first_colon_and_a_password_may_be_anything() {
        assert_eq!(read("Basic Z3Vlc3Q6Z3Vlc3Q="), Some(("guest".into(), b"guest".to_vec())));
        assert_eq!(read("basic dTphOmI="), Some(("u".into(), b"a:b".to_vec())));
        assert_eq!(read("Basic Og=="), Some((String::new(), Vec::new())));
        let bytes = format!("Basic {}", BASE64_STANDARD.encode(b"u:\xff\0"));
        assert_eq!(read(&bytes), Some(("u".into(), b"\xff\0".to_vec())));
    }

    #[test]
    fn what_is_not_that_form_is_nobody() {
        let not_utf8 = format!("Basic {}", BASE64_STANDARD.encode(b"\xff:p"));
        let no_colon = format!("Basic {}", BASE64_STANDARD.encode(b"guest"));
        let long = format!("Basic {}", BASE64_STANDARD.encode(vec![b':'; HEADER_BYTES_MAX]));
        for header in ["", "Basic", "Basic !", "Bearer Z3Vlc3Q6Z3Vlc3Q=", &not_utf8, &no_colon, &long] {
            assert_eq!(read(header), None, "{header:.40}");
        }
    }
}
