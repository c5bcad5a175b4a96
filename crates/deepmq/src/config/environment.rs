//! Settings from the environment: `--data-dir` is `DEEPMQ_DATA_DIR`.
//!
//! Owns the names of the variables. Must not know the settings: it asks the flags' definition for them.

use std::error::Error;
use std::ffi::OsString;

use anyhow::bail;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use super::settings::Settings;

const PREFIX: &str = "DEEPMQ_";

/// The flags alone, so that a value from the environment is read exactly as one from the command line.
#[derive(Debug, Parser)]
struct Flags {
    #[command(flatten)]
    settings: Settings,
}

/// The settings whose variables `lookup` finds. Others are no error, whatever their prefix: see [`unknown`].
pub(super) fn read(lookup: impl Fn(&str) -> Option<OsString>) -> anyhow::Result<Settings> {
    let mut settings = Settings::default();
    for flag in Flags::command().get_arguments().filter_map(clap::Arg::get_long) {
        let variable = variable_of(flag);
        if let Some(value) = lookup(&variable) {
            settings = settings.or(read_one(flag, &variable, &value)?);
        }
    }
    Ok(settings)
}

/// Variables that look like settings and are none, most likely misspelt. Kubernetes sets `DEEPMQ_PORT` and the like for a
/// service of that name; these are left alone.
pub(super) fn unknown(variables: impl Iterator<Item = String>) -> Vec<String> {
    let command = Flags::command();
    let known: Vec<_> = command.get_arguments().filter_map(clap::Arg::get_long).map(variable_of).collect();
    let of_platform =
        |name: &str| name == "PORT" || name.starts_with("PORT_") || name.starts_with("SERVICE_");
    let ours = variables.filter(|name| name.strip_prefix(PREFIX).is_some_and(|rest| !of_platform(rest)));
    ours.filter(|name| !known.contains(name)).collect()
}

/// The variable of a flag.
pub(super) fn variable_of(flag: &str) -> String {
    format!("{PREFIX}{}", flag.replace('-', "_").to_uppercase())
}

fn read_one(flag: &str, variable: &str, value: &OsString) -> anyhow::Result<Settings> {
    if value.is_empty() {
        bail!("{variable} is empty; correct or unset the variable");
    }
    let mut argument = OsString::from(format!("--{flag}="));
    argument.push(value);
    match Flags::try_parse_from(["deepmq".into(), argument]) {
        Ok(flags) => Ok(flags.settings),
        Err(error) if error.kind() == ErrorKind::InvalidUtf8 => {
            bail!("{variable} is not in UTF-8; correct or unset the variable")
        }
        Err(error) => {
            let why = error.source().map(ToString::to_string).unwrap_or_default();
            bail!(
                "{variable}: invalid value '{}': {why}; correct or unset the variable",
                value.to_string_lossy()
            )
        }
    }
}
