//! A word now and then while something takes long.
//!
//! Owns when it is said. Must not know what takes long, or how long it will take: nobody does.

use std::io::{Write, stderr};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often.
const INTERVAL: Duration = Duration::from_secs(2);

/// Says on standard error how long something has taken so far, until it is dropped. What is quick is not mentioned.
#[derive(Debug)]
pub(super) struct Progress {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Of what `what` says.
    pub(super) fn start(what: String) -> Self {
        let (end, ended) = channel::<()>();
        let run = move || {
            let began = Instant::now();
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                // That nobody listens is no reason to stop.
                let _ = writeln!(stderr(), "{what}, for {} s so far", began.elapsed().as_secs());
            }
        };
        // Without a thread nothing is said, which does no harm.
        let thread = thread::Builder::new().name("progress".to_owned()).spawn(run).ok();
        Self { end: Some(end), thread }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // A panic there was reported there.
            let _ = thread.join();
        }
    }
}
