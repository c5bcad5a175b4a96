//! The signals that stop the broker.
//!
//! Owns which they are and the exit code of each. Must not know what stopping takes.

use std::io;

use tokio::signal::unix::{self, SignalKind};

/// A request to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// SIGINT, as of Ctrl-C.
    Interrupt,
    /// SIGTERM, as of an init system.
    Terminate,
}

impl StopSignal {
    /// The exit code of a process the signal ended: 128 and the signal's number, as shells have it.
    pub(crate) const fn exit_code(self) -> i32 {
        match self {
            Self::Interrupt => 128 + 2,
            Self::Terminate => 128 + 15,
        }
    }
}

/// Catches the signals from its creation on, so none that comes during the start is lost.
#[derive(Debug)]
pub(crate) struct StopSignals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl StopSignals {
    /// Must be called within the runtime.
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
        }
    }
}
