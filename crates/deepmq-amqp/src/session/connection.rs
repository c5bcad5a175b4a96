//! Methods of class connection once the connection is open.
//!
//! Owns little: closing is in `close`, blocking in `stall`.

use super::{Failure, Session};
use crate::codec::method::connection::{Method, UpdateSecretOk};

impl Session {
    pub(super) fn on_connection_method(&mut self, channel: u16, method: Method<'_>) -> Result<(), Failure> {
        if channel != 0 {
            return Err(Failure::unimplemented());
        }
        match method {
            Method::Close(close) => self.on_connection_close(&close),
            // A late answer.
            Method::CloseOk(_) => {}
            // Passwords do not expire, so there is nothing that a new secret could prolong; RabbitMQ agrees to it too.
            Method::UpdateSecret(_) => self.send(0, UpdateSecretOk {}),
            Method::StartOk(_) | Method::SecureOk(_) | Method::TuneOk(_) | Method::Open(_) => {
                return Err(Failure::wrong_phase("running"));
            }
            Method::Start(_)
            | Method::Secure(_)
            | Method::Tune(_)
            | Method::OpenOk(_)
            | Method::Blocked(_)
            | Method::Unblocked(_)
            | Method::UpdateSecretOk(_) => return Err(Failure::unimplemented()),
        }
        Ok(())
    }
}
