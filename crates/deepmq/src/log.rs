//! `deepmq log`: looking at a data directory without a broker, or beside a running one.
//!
//! Owns what can be asked, and how the outcome is told. Must not know how a directory is read.

mod amqp_json;
mod dump;
mod verify;

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Subcommand};

/// What is to be done with the directory.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Check every record, block and checkpoint of a data directory, and change nothing
    ///
    /// Prints one line for each damage: which queue, which sequence numbers, which file; then what there is. The
    /// directory may be in use.
    #[command(after_help = VERIFY_AFTER_HELP)]
    Verify(Verify),
    /// Print the messages in a data directory as JSON, one per line, and change nothing
    ///
    /// A live message is a line of type "msg", with its properties and its body in base64; one that is completed but
    /// still on disk is a line of type "del". The directory may be in use.
    #[command(after_help = DUMP_AFTER_HELP)]
    Dump(Dump),
}

const VERIFY_AFTER_HELP: &str = "\
Exit codes: 0 nothing is damaged, 1 something is, 2 the directory can not be read.

What a crash has left unfinished at the end of the journal was never confirmed and is no damage.";

const DUMP_AFTER_HELP: &str = "\
The lines:
  {\"type\":\"msg\",\"vhost\":\"/\",\"queue\":\"q\",\"seq\":7,\"exchange\":\"\",\"routing_key\":\"q\",
   \"properties\":{\"delivery_mode\":2},\"data\":\"aGk=\",\"checksum\":\"crc32c:f59dd9c2\"}
  {\"type\":\"del\",\"vhost\":\"/\",\"queue\":\"q\",\"seq\":6}
The checksum is that of the body. AMQP's text that is no UTF-8 is {\"base64\":\"...\"}. A queue whose name is
lost is null and has its \"number\".

Exit codes: 0 all was printed, 1 something was not readable, 2 the directory can not be read at all.";

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The data directory
    dir: PathBuf,
}

/// Arguments of `dump`.
#[derive(Debug, Args)]
pub(crate) struct Dump {
    /// The data directory
    dir: PathBuf,
    /// Only this queue: its name, or its number where it has no name
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Only this vhost
    #[arg(long, value_name = "NAME")]
    vhost: Option<String>,
}

/// How it went, unless the directory can not be read at all.
#[derive(Debug)]
pub(crate) enum Outcome {
    Sound,
    /// Something is damaged, in a sentence.
    Damaged(anyhow::Error),
}

/// Does what is asked; fails with a sentence if the directory can not be read.
pub(crate) fn run(task: &Task) -> anyhow::Result<Outcome> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let (told, outcome) = match task {
        Task::Verify(Verify { dir }) => verify::run(dir, &mut out)?,
        Task::Dump(asked) => dump::run(asked, &mut out)?,
    };
    match told.and_then(|()| out.flush()) {
        // Who closed the pipe, as `head` does, has seen enough.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow!("standard output can not be written to: {error}"))
        }
        _ => Ok(outcome),
    }
}
