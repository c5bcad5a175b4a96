//! Settings from the environment: `--data-dir` is `DEEPMQ_DATA_DIR`.
//!
//! Owns the names of the variables. Must not know the settings: it asks the flags' definition for them.

use std::ffi::OsString;

use anyhow::bail;
use clap::{CommandFactory, Parser};

use super::settings::Settings;

/// The flags alone, so that a value from the environment is read exactly as one from the command line.
#[derive(Debug, Parser)]
struct Flags {
    #[command(flatten)]
    settings: Settings,
}

/// The settings whose variables `lookup` finds. Other variables are left alone, whatever their prefix: some platforms
/// set `DEEPMQ_PORT` and the like for a service of that name.
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

/// The variable of a flag.
pub(super) fn variable_of(flag: &str) -> String {
    format!("DEEPMQ_{}", flag.replace('-', "_").to_uppercase())
}

fn read_one(flag: &str, variable: &str, value: &OsString) -> anyhow::Result<Settings> {
    let mut argument = OsString::from(format!("--{flag}="));
    argument.push(value);
    match Flags::try_parse_from(["deepmq".into(), argument]) {
        Ok(flags) => Ok(flags.settings),
        Err(error) => {
            let text = error.to_string();
            let sentence = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            bail!("{variable}: {sentence}; correct or unset the variable")
        }
    }
}
