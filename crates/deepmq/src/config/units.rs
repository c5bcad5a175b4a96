//! Values with a form of their own: sizes, times, addresses, log filters.
//!
//! Owns how each is written; the same in a flag, a variable and the file. Must not know which setting uses it.

mod confirmed;
mod count;
mod label;
mod listen;
mod log_filter;
mod mechanisms;
mod size;
mod thread_count;
mod time;

pub(crate) use confirmed::Confirmed;
pub(crate) use count::{Count, ShortCount};
pub(crate) use label::Label;
pub(crate) use listen::Listen;
pub(crate) use log_filter::LogFilter;
pub(crate) use mechanisms::Mechanisms;
pub(crate) use size::{ByteSize, Memory};
pub(crate) use thread_count::ThreadCount;
pub(crate) use time::Period;

/// Why a value is not of its form: what is wrong with it, and an example of what is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadValue(&'static str);

impl std::fmt::Display for BadValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for BadValue {}

/// Lets a type that is read from text be read from whatever stands in the file, as if it stood there in quotes: the type
/// takes it, or says in its own words what is right.
macro_rules! deserialize_from_text {
    ($type:ty) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a string")
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse()
                            .map_err(|error| E::custom(format_args!("invalid value {text:?}: {error}")))
                    }

                    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<$type, E> {
                        self.visit_str(&number.to_string())
                    }

                    fn visit_i128<E: serde::de::Error>(self, number: i128) -> Result<$type, E> {
                        self.visit_str(&number.to_string())
                    }

                    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<$type, E> {
                        self.visit_str(&number.to_string())
                    }

                    fn visit_bool<E: serde::de::Error>(self, truth: bool) -> Result<$type, E> {
                        self.visit_str(&truth.to_string())
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }
    };
}
use deserialize_from_text;
