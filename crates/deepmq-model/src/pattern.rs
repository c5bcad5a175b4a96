//! Patterns of names as operators write them: regular expressions, found anywhere in the name.
//!
//! Owns their limits. Must not know what they are for. RabbitMQ's are PCRE; of those, look-around and back-references work
//! too, for `^(?!amq\.)` is a common way to say "all but the broker's own".

use std::fmt;

use fancy_regex::{Regex, RegexBuilder};

use crate::value::Name;

/// Longest pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 4096;
/// Memory of one compiled pattern, in bytes.
const COMPILED_BYTES_MAX: usize = 1024 * 1024;
/// Steps back within one match; a name on which a pattern takes more does not match it.
const BACKTRACK_MAX: usize = 10_000;

/// A pattern. Clones share what was compiled.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: Name,
    matcher: Matcher,
}

#[derive(Debug, Clone)]
enum Matcher {
    /// Every name, at no cost: what most permissions say.
    Everything,
    /// The empty name alone, which nothing has. RabbitMQ takes an empty pattern for `^$`.
    Nothing,
    Regex(Regex),
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// If it is too long or is no regular expression.
    pub fn new(text: impl Into<Name>) -> Result<Self, PatternError> {
        let text = text.into();
        if text.len() > PATTERN_BYTES_MAX {
            return Err(PatternError::TooLong);
        }
        let matcher = match &*text {
            ".*" | "^.*" | ".*$" | "^.*$" => Matcher::Everything,
            "" | "^$" => Matcher::Nothing,
            other => Matcher::Regex(compile(other)?),
        };
        Ok(Self { text, matcher })
    }

    /// The pattern of no name.
    pub fn nothing() -> Self {
        Self { text: "".into(), matcher: Matcher::Nothing }
    }

    /// As it was written.
    pub fn text(&self) -> &Name {
        &self.text
    }

    /// Whether it is found in `name`.
    pub fn matches(&self, name: &str) -> bool {
        match &self.matcher {
            Matcher::Everything => true,
            Matcher::Nothing => name.is_empty(),
            Matcher::Regex(regex) => regex.is_match(name).unwrap_or(false),
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn compile(text: &str) -> Result<Regex, PatternError> {
    let mut builder = RegexBuilder::new(text);
    builder.backtrack_limit(BACKTRACK_MAX).delegate_size_limit(COMPILED_BYTES_MAX);
    builder.build().map_err(|error| PatternError::Malformed(error.to_string()))
}

/// Why a text is no pattern. Who wrote it can mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It is longer than [`PATTERN_BYTES_MAX`].
    #[error("the pattern is longer than {PATTERN_BYTES_MAX} bytes")]
    TooLong,
    /// It is no regular expression, or one that takes too much memory.
    #[error("not a regular expression: {0}")]
    Malformed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).unwrap().matches(name)
    }

    #[test]
    fn a_pattern_is_found_anywhere_unless_it_is_anchored() {
        assert!(matches("b", "abc") && matches("^a.*c$", "abc"));
        assert!(!matches("^b", "abc") && !matches("B", "abc"));
        assert!(matches(".*", "") && matches(".*", "line\nline"));
    }

    #[test]
    fn an_empty_pattern_matches_no_name_there_is() {
        assert!(!matches("", "a") && !matches("^$", "a") && !Pattern::nothing().matches("a"));
        assert!(matches("", ""));
    }

    #[test]
    fn look_around_works_as_operators_know_it() {
        assert!(matches(r"^(?!amq\.).*", "orders") && !matches(r"^(?!amq\.).*", "amq.gen-1"));
    }

    #[test]
    fn what_is_no_pattern_is_refused_saying_why() {
        let error = Pattern::new("a(b").unwrap_err();
        assert!(error.to_string().starts_with("not a regular expression: "), "{error}");
        assert_eq!(Pattern::new("a".repeat(4097)).unwrap_err(), PatternError::TooLong);
        assert!(Pattern::new("a".repeat(4096)).is_ok());
        assert!(Pattern::new("(a{1000}){1000}").is_err());
    }

    #[test]
    fn a_pattern_that_would_take_for_ever_does_not_match() {
        assert!(!matches(r"^(a+)+(?=b)\1$", &"a".repeat(200)));
    }
}
