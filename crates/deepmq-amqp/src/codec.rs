//! The wire format of AMQP 0-9-1: bytes to frames, methods and contents, and back.
//!
//! Owns every length, letter and limit of the encoding. Must not know connections, channels or the broker: what arrives is
//! only checked for being well formed, never for being allowed.
//!
//! ```text
//! in:  bytes -> frame::parse -> Method::decode | publish | ack | content::Header::decode
//! out: Method::encode | deliver | content::write -> bytes
//! ```

pub mod ack;
pub mod content;
pub mod deliver;
pub mod frame;
pub mod method;
pub mod publish;
pub mod replycode;

pub use deepmq_model::message::bytes::{Malformed, Reader, Writer};
pub use frame::{Frame, FrameError};
pub use method::{Method, MethodError, MethodId};
pub use replycode::ReplyCode;
