//! Who the client says it is, by one of the SASL mechanisms, and the verdict on it.
//!
//! Owns the parsing of credentials. Must not know how passwords are kept.

use super::Failure;
use crate::codec::ReplyCode;
use deepmq_broker::config::Mechanism;
use deepmq_broker::users::{AuthError, Secret, User, Users};
use deepmq_model::message::bytes::Reader;
use deepmq_model::message::table;
use deepmq_model::{Table, Value};
use std::sync::Arc;

/// What RABBIT-CR-DEMO asks, and how the answer begins.
pub(super) const CHALLENGE: &[u8] = b"Please tell me your password";
const ANSWER: &[u8] = b"My password is ";

/// What a mechanism's response says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Credentials {
    mechanism: &'static str,
    user: String,
    password: Vec<u8>,
}

/// What the first response leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Response {
    /// It says all.
    Whole(Credentials),
    /// It names a user, who is to be asked for the password: see [`Credentials::answered`].
    Asks(String),
}

impl Response {
    /// Reads a response, if the mechanism is one of those offered.
    pub(super) fn read(offered: &[Mechanism], mechanism: &str, response: &[u8]) -> Result<Self, Failure> {
        let Some(&known) = offered.iter().find(|known| known.name() == mechanism) else {
            let text = format!("unknown authentication mechanism '{mechanism}'");
            return Err(Failure::hard(ReplyCode::CommandInvalid, text));
        };
        let read = match known {
            Mechanism::Plain => Credentials::plain(response).map(Self::Whole),
            Mechanism::AmqPlain => Credentials::amqplain(response).map(Self::Whole),
            Mechanism::CrDemo => str::from_utf8(response).ok().map(|user| Self::Asks(user.to_owned())),
        };
        read.ok_or_else(|| malformed(known))
    }
}

fn malformed(mechanism: Mechanism) -> Failure {
    let text = format!("the response of mechanism {mechanism} is malformed");
    Failure::hard(ReplyCode::SyntaxError, text)
}

impl Credentials {
    /// Reads what a user says who was asked for the password.
    pub(super) fn answered(user: String, response: &[u8]) -> Result<Self, Failure> {
        let mechanism = Mechanism::CrDemo;
        let password = response.strip_prefix(ANSWER).ok_or_else(|| malformed(mechanism))?;
        Ok(Self { mechanism: mechanism.name(), user, password: password.to_vec() })
    }

    /// RFC 4616: an identity to act as, which is ignored, the user and the password, divided by NUL.
    fn plain(response: &[u8]) -> Option<Self> {
        let mut parts = response.splitn(3, |&byte| byte == 0);
        let (_, user, password) = (parts.next()?, parts.next()?, parts.next()?);
        let user = str::from_utf8(user).ok()?.to_owned();
        Some(Self { mechanism: Mechanism::Plain.name(), user, password: password.to_vec() })
    }

    /// A table without its length, with LOGIN and PASSWORD.
    fn amqplain(response: &[u8]) -> Option<Self> {
        let len = u32::try_from(response.len()).ok()?;
        let whole = [&len.to_be_bytes(), response].concat();
        let table = table::decode(&mut Reader::new(&whole)).ok()?;
        let user = text(&table, "LOGIN").and_then(|bytes| str::from_utf8(bytes).ok())?.to_owned();
        let password = text(&table, "PASSWORD")?.to_vec();
        Some(Self { mechanism: Mechanism::AmqPlain.name(), user, password })
    }
}

fn text<'t>(table: &'t Table, key: &str) -> Option<&'t [u8]> {
    match table.get(key)? {
        Value::Str(bytes) => Some(bytes),
        _ => None,
    }
}

/// A login to be verified.
#[derive(Debug)]
pub(crate) struct Login {
    mechanism: &'static str,
    user: String,
    password: Secret,
    loopback: bool,
}

/// The verdict on a login.
#[derive(Debug)]
pub(crate) struct LoginOutcome {
    pub(super) mechanism: &'static str,
    pub(super) user: String,
    pub(super) verdict: Result<Arc<User>, AuthError>,
}

impl PartialEq for Login {
    /// By who it is; a password is not for comparing.
    fn eq(&self, other: &Self) -> bool {
        (self.mechanism, &self.user) == (other.mechanism, &other.user)
    }
}

impl Eq for Login {}

impl Login {
    pub(super) fn new(credentials: Credentials, loopback: bool) -> Self {
        let Credentials { mechanism, user, password } = credentials;
        Self { mechanism, user, password: Secret::new(password), loopback }
    }

    /// Verifies against what is remembered; none: it takes [`Login::verify`].
    pub(super) fn verify_fast(&self, users: &Users) -> Option<Arc<User>> {
        users.authenticate_fast(&self.user, self.password.expose(), self.loopback)
    }

    /// Verifies, which blocks for tens of milliseconds.
    pub(crate) fn verify(self, users: &Users) -> LoginOutcome {
        let verdict = users.authenticate_slow(&self.user, self.password.expose(), self.loopback);
        LoginOutcome { mechanism: self.mechanism, user: self.user, verdict }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mechanism: &str, response: &[u8]) -> Result<(String, Vec<u8>), Failure> {
        let read = match Response::read(&[Mechanism::Plain, Mechanism::AmqPlain], mechanism, response)? {
            Response::Whole(credentials) => credentials,
            Response::Asks(user) => Credentials::answered(user, b"")?,
        };
        Ok((read.user, read.password))
    }

    #[test]
    fn plain_takes_user_and_password_and_ignores_the_identity() {
        assert_eq!(read("PLAIN", b"\0guest\0secret").unwrap(), ("guest".into(), b"secret".to_vec()));
        assert_eq!(read("PLAIN", b"me\0u\0a\0b").unwrap(), ("u".into(), b"a\0b".to_vec()));
        assert!(read("PLAIN", b"guest").is_err());
    }

    #[test]
    fn amqplain_takes_a_table_without_length() {
        let mut encoded = Vec::new();
        let login = [("LOGIN", Value::str("guest")), ("PASSWORD", Value::str("pw"))].into_iter().collect();
        table::encode(&login, &mut encoded);
        assert_eq!(read("AMQPLAIN", &encoded[4..]).unwrap(), ("guest".into(), b"pw".to_vec()));
        assert!(read("AMQPLAIN", b"\x05LOGIN").is_err());
    }

    #[test]
    fn who_is_asked_for_the_password_must_say_so() {
        let offered = [Mechanism::CrDemo];
        assert_eq!(Response::read(&offered, "RABBIT-CR-DEMO", b"guest"), Ok(Response::Asks("guest".into())));
        assert!(Response::read(&offered, "RABBIT-CR-DEMO", b"\xff").is_err());
        let answered = |response: &[u8]| Credentials::answered("guest".into(), response).ok();
        assert_eq!(answered(b"My password is a b").map(|read| read.password), Some(b"a b".to_vec()));
        assert_eq!(answered(b"My password is ").map(|read| read.password), Some(Vec::new()));
        assert_eq!((answered(b"my password is a"), answered(b"")), (None, None));
    }

    #[test]
    fn another_mechanism_is_refused_by_name() {
        for mechanism in ["EXTERNAL", "ANONYMOUS", "RABBIT-CR-DEMO", "plain", ""] {
            let failure = read(mechanism, b"").unwrap_err();
            let text = format!("COMMAND_INVALID - unknown authentication mechanism '{mechanism}'");
            assert_eq!(failure.text(), text);
        }
    }
}
