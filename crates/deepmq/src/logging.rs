//! Logs: one line per event on standard error.
//!
//! Owns where logs go and how they look. Must not know who logs.

use std::io::{self, IsTerminal};

use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::LogFilter;

/// Starts logging for the whole process. In colour only where somebody watches.
pub(crate) fn start(filter: LogFilter) {
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(io::stderr().is_terminal());
    tracing_subscriber::registry().with(filter.0).with(lines).init();
}
