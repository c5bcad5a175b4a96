//! The DeepMQ broker as a program.
//!
//! Owns the way from the command line to a running broker and to an exit code. Must not know what a broker does.

mod cli;
mod config;
mod definitions;
mod http;
mod log;
mod logging;
mod machine;
mod manage;
mod serve;
mod signals;

use std::io::Write;
use std::process::ExitCode;

/// A broker allocates on many threads at once and frees on others, and gives back what a burst took: jemalloc's background
/// thread does that even while nothing happens.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    match cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Without a standard error there is nobody to tell; the exit code still does.
            let _ = writeln!(std::io::stderr(), "deepmq: {:#}", failure.reason);
            failure.exit_code
        }
    }
}
