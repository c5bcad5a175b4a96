//! The command line.
//!
//! Owns the verbs, their help and the exit code of each kind of failure. Must not know what a setting means.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::{Shell, generate};

use crate::config::{Config, Settings};
use crate::log::{self, Outcome};
use crate::machine::Machine;
use crate::{manage, serve};

/// A message broker that RabbitMQ's clients work with unchanged
#[derive(Debug, Parser)]
#[command(name = "deepmq", version, arg_required_else_help = true, after_help = AFTER_HELP, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const AFTER_HELP: &str = "\
Examples:
  deepmq serve                              A broker on 127.0.0.1:5672 with its data in ./data
  deepmq serve --help                       Every setting
  deepmq log verify ./data                  Whether anything in ./data is damaged
  deepmq log dump ./data --queue orders     The messages of a queue as JSON, one per line
  deepmq status                             The running broker at a glance
  deepmq list queues                        Its queues
  deepmq declare queue orders               A new one
  deepmq publish amq.direct orders hello    A message for it

The verbs that manage ask a running broker over HTTP. Where it is and who asks, the first one found counts:
  1. the flag                               --url http://broker:15672 --user ann --password secret
  2. the environment                        DEEPMQ_URL, DEEPMQ_USER, DEEPMQ_PASSWORD
  3. the file $DEEPMQ_CLIENT_CONFIG, or else $XDG_CONFIG_HOME/deepmq/client.toml, ~/.config/deepmq/client.toml:
       url = \"http://broker:15672\"
       user = \"ann\"
       password = \"secret\"
  4. guest with password guest on http://127.0.0.1:15672
Their exit codes: 0 done, 1 refused or not there, 2 the command line is wrong, 3 no broker answers.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the broker until it is told to stop
    ///
    /// Prints one line per listener on standard output once it accepts connections; logs go to standard error.
    /// SIGTERM and SIGINT close every connection properly and stop the broker; a second one stops it at once.
    #[command(after_help = SERVE_AFTER_HELP, allow_negative_numbers = true)]
    Serve(Box<Settings>),
    /// Look at what a broker keeps on disk
    #[command(subcommand)]
    Log(log::Task),
    #[command(flatten)]
    Manage(manage::Manage),
    /// Print a script that completes this program's command line in a shell
    Completions {
        #[arg(value_enum)]
        shell: Shell,
    },
}

const SERVE_AFTER_HELP: &str = "\
Every setting can be given in three ways; the first one found counts:
  1. the flag                               --data-dir /var/lib/deepmq
  2. the environment, in capitals           DEEPMQ_DATA_DIR=/var/lib/deepmq
  3. the configuration file (TOML)          data-dir = \"/var/lib/deepmq\"
Limits go into the file's section [limits]. Users and vhosts can only be given in the file:
  [[vhost]]
  name = \"/\"

  [[user]]
  name = \"ann\"
  password = \"secret\"                       or password-hash = \"$argon2id$...\"
  tags = [\"administrator\"]
  vhosts = [\"/\"]                            default: all
  loopback-only = false
Without any [[user]] there is guest, with password guest, from this machine only; without any [[vhost]], \"/\".

Examples:
  deepmq serve                              A broker on 127.0.0.1:5672 with its data in ./data
  deepmq serve --amqp 0.0.0.0:5672          Reachable from other machines
  deepmq serve --config /etc/deepmq.toml    Configured by a file
  DEEPMQ_LOG=debug deepmq serve --amqp 127.0.0.1:0
                                            On any free port, telling more

Exit codes: 0 stopped as told, 1 failed to start or to go on, 2 a setting is wrong,
130 or 143 stopped at once by a second signal.";

/// Why the program ends, and with which code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) reason: anyhow::Error,
    pub(crate) exit_code: ExitCode,
}

/// The exit code of a command line or setting that is wrong, as clap has it; and of a directory that is not what it should be.
const EXIT_MISCONFIGURED: u8 = 2;

/// Runs what the command line asks for. Wrong flags, `--help` and `--version` end the process from within.
pub(crate) fn run() -> Result<(), Failure> {
    let misconfigured = |reason| Failure { reason, exit_code: ExitCode::from(EXIT_MISCONFIGURED) };
    let failed = |reason| Failure { reason, exit_code: ExitCode::FAILURE };
    match Cli::parse().verb {
        Verb::Serve(flags) => {
            let config = Config::load(*flags, &Machine::inspect()).map_err(misconfigured)?;
            serve::run(config).map_err(failed)
        }
        Verb::Log(task) => match log::run(&task).map_err(misconfigured)? {
            Outcome::Sound => Ok(()),
            Outcome::Damaged(reason) => Err(failed(reason)),
        },
        Verb::Manage(verb) => manage::run(verb),
        Verb::Completions { shell } => {
            generate(shell, &mut Cli::command(), "deepmq", &mut std::io::stdout());
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
