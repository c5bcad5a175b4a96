//! A failure as the peer is told of it: reply code, text, and the method that caused it.
//!
//! Owns the form of the text. Which failure is which code is the business of `translate` and of each method.

use super::NO_METHOD;
use crate::codec::{MethodId, ReplyCode};

/// The longest reply text in bytes: a short string.
const TEXT_BYTES_MAX: usize = 255;

/// What ends a channel or the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: ReplyCode,
    explanation: String,
    pub(super) method: MethodId,
}

impl Failure {
    /// With a code that ends a channel.
    pub(crate) fn soft(code: ReplyCode, explanation: impl Into<String>) -> Self {
        debug_assert!(!code.is_hard(), "{code:?} ends a connection");
        Self { code, explanation: explanation.into(), method: NO_METHOD }
    }

    /// With a code that ends the connection.
    pub(crate) fn hard(code: ReplyCode, explanation: impl Into<String>) -> Self {
        debug_assert!(code.is_hard(), "{code:?} ends a channel");
        Self { code, explanation: explanation.into(), method: NO_METHOD }
    }

    /// 406, the most common.
    pub(crate) fn precondition(explanation: impl Into<String>) -> Self {
        Self::soft(ReplyCode::PreconditionFailed, explanation)
    }

    pub(super) fn unimplemented() -> Self {
        Self::hard(ReplyCode::CommandInvalid, "unimplemented method")
    }

    pub(super) fn wrong_phase(phase: &str) -> Self {
        Self::hard(ReplyCode::ChannelError, format!("unexpected method in connection state {phase}"))
    }

    /// Caused by this method, unless a cause is known already.
    pub(super) fn of(mut self, method: MethodId) -> Self {
        if self.method == NO_METHOD {
            self.method = method;
        }
        self
    }

    /// The reply text: the code's name and the explanation, as long as fits.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{} - {}", self.code.name(), self.explanation);
        let mut end = text.len().min(TEXT_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_255_bytes_and_never_within_a_character() {
        let text = Failure::precondition("é".repeat(200)).text();
        assert!(text.len() == 255 || text.len() == 254);
        assert!(text.starts_with("PRECONDITION_FAILED - éé"));
    }
}
