//! Precedence, defaults and what wrong settings are answered with.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use deepmq_broker::users::VhostAccess;
use deepmq_storage::Durability;

use super::*;

#[derive(Debug, Parser)]
struct Flags {
    #[command(flatten)]
    settings: Settings,
}

fn machine() -> Machine {
    Machine { cores: 3, memory_bytes: 1000, host_name: "box".into() }
}

fn flags(arguments: &[&str]) -> Settings {
    Flags::try_parse_from(["deepmq"].iter().chain(arguments)).unwrap().settings
}

fn environment(variables: &[(&str, &str)]) -> anyhow::Result<Settings> {
    environment::read(|name| {
        variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| OsString::from(value))
    })
}

fn resolve(settings: Settings) -> Config {
    Config::resolve(settings, &machine()).unwrap()
}

fn refusal(toml: &str) -> String {
    match file::parse(toml) {
        Err(wrong) => wrong.sentence,
        Ok(settings) => format!("{:#}", Config::resolve(settings, &machine()).unwrap_err()),
    }
}

#[test]
fn a_flag_counts_before_the_environment_and_that_before_the_file_and_that_before_the_default() {
    let amqp = |flag: &[&str], env: &[(&str, &str)], toml: &str| {
        let layers = flags(flag).or(environment(env).unwrap()).or(file::parse(toml).unwrap());
        resolve(layers).amqp
    };
    let on = |port: u16| Listen::On(format!("127.0.0.1:{port}"));
    let flag = &["--amqp", "127.0.0.1:1"][..];
    let env = &[("DEEPMQ_AMQP", "127.0.0.1:2")][..];
    let toml = "amqp = '127.0.0.1:3'";
    assert_eq!(amqp(flag, env, toml), on(1));
    assert_eq!(amqp(&[], env, toml), on(2));
    assert_eq!(amqp(&[], &[], toml), on(3));
    assert_eq!(amqp(&[], &[], ""), on(5672));
}

#[test]
fn a_limit_follows_the_same_precedence_one_by_one() {
    let layers = flags(&["--table-depth-max", "5"])
        .or(environment(&[("DEEPMQ_TABLE_DEPTH_MAX", "6"), ("DEEPMQ_HANDSHAKE_TIMEOUT", "500ms")]).unwrap())
        .or(file::parse("[limits]\nhandshake-timeout = '3s'\nframe-bytes-max = '8KiB'\nconnections-max = 7")
            .unwrap());
    let limits = resolve(layers).broker.limits;
    let expected = Limits {
        table_depth_max: 5,
        handshake_timeout: Duration::from_millis(500),
        frame_bytes_max: 8192,
        connections_max: 7,
        ready_memory_bytes_max: 400,
        ..Limits::default()
    };
    assert_eq!(limits, expected);
}

#[test]
fn every_default_the_help_names_is_the_default() {
    let untouched = resolve(Settings::default());
    let mut compared = 0;
    for argument in Flags::command().get_arguments() {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let Some((_, default)) = help.rsplit_once("[default: ") else { continue };
        let flag = argument.get_long().unwrap();
        let config = resolve(flags(&[&format!("--{flag}={}", default.trim_end_matches(']'))]));
        assert_eq!(config.amqp, untouched.amqp);
        assert_eq!((&config.http, &config.metrics), (&untouched.http, &untouched.metrics));
        assert_eq!(config.api.open_probes, untouched.api.open_probes);
        assert_eq!(config.api.metrics_queues_max, untouched.api.metrics_queues_max);
        assert_eq!(config.data_dir.file_name(), untouched.data_dir.file_name());
        assert_eq!(config.log, untouched.log);
        assert_eq!(config.broker.durability, untouched.broker.durability);
        assert_eq!(config.broker.product, untouched.broker.product);
        assert_eq!(config.broker.auth_mechanisms, untouched.broker.auth_mechanisms);
        assert_eq!(config.broker.default_consumer_prefetch, untouched.broker.default_consumer_prefetch);
        assert_eq!(config.broker.consumer_timeout, untouched.broker.consumer_timeout);
        assert_eq!(config.broker.limits, untouched.broker.limits, "{flag}");
        compared += 1;
    }
    assert_eq!(compared, 31);
}

#[test]
fn what_a_confirm_means_is_set_in_each_source() {
    let durability = |settings| resolve(settings).broker.durability;
    assert_eq!(durability(flags(&["--durability", "os"])), Durability::Os);
    assert_eq!(durability(environment(&[("DEEPMQ_DURABILITY", "os")]).unwrap()), Durability::Os);
    assert_eq!(durability(file::parse("durability = 'os'").unwrap()), Durability::Os);
    assert_eq!(durability(Settings::default()), Durability::Fsync);
}

#[test]
fn defaults_come_from_the_machine_where_it_knows_better() {
    let config = resolve(Settings::default());
    assert_eq!(config.worker_threads, 3);
    assert_eq!(&*config.broker.node_name, "deepmq@box");
    assert_eq!(config.broker.limits.ready_memory_bytes_max, 400);
}

#[test]
fn every_flag_is_read_from_its_variable_too() {
    for argument in Flags::command().get_arguments() {
        let flag = argument.get_long().unwrap();
        let settings = environment(&[(&environment::variable_of(flag), "\u{7}")]);
        let read = settings.map(|settings| settings != Settings::default());
        assert!(read.unwrap_or(true), "{flag} is ignored");
    }
    assert_eq!(environment::variable_of("data-dir"), "DEEPMQ_DATA_DIR");
}

#[test]
fn a_wrong_variable_is_named() {
    let error = environment(&[("DEEPMQ_AMQP", "5672")]).unwrap_err().to_string();
    assert!(error.starts_with("DEEPMQ_AMQP: invalid value '5672': write an address as"), "{error}");
    assert_eq!(error.lines().count(), 1);
    let error = environment(&[("DEEPMQ_CONNECTIONS_MAX", "x")]).unwrap_err().to_string();
    assert_eq!(
        error,
        "DEEPMQ_CONNECTIONS_MAX: invalid value 'x': write a whole number, as 1000; correct or unset the variable"
    );
    let error = environment(&[("DEEPMQ_CONFIG", "")]).unwrap_err().to_string();
    assert_eq!(error, "DEEPMQ_CONFIG is empty; correct or unset the variable");
    let broken = environment::read(|name| (name == "DEEPMQ_AMQP").then(|| OsString::from_vec(vec![0xff])));
    assert_eq!(broken.unwrap_err().to_string(), "DEEPMQ_AMQP is not in UTF-8; correct or unset the variable");
}

#[test]
fn a_variable_that_looks_like_a_setting_and_is_none_is_known_as_such() {
    let all = [
        "DEEPMQ_DATA_DIRR",
        "DEEPMQ_DATA_DIR",
        "PATH",
        "DEEPMQ_PORT",
        "DEEPMQ_PORT_5672_TCP",
        "DEEPMQ_SERVICE_HOST",
    ];
    assert_eq!(environment::unknown(all.into_iter().map(str::to_owned)), ["DEEPMQ_DATA_DIRR"]);
}

#[test]
fn users_and_vhosts_of_the_file_replace_the_default_ones() {
    let config = resolve(
        file::parse(
            "[[user]]\nname = 'ann'\npassword = 'secret'\ntags = ['monitoring']\nvhosts = ['blue']\n\
             [[user]]\nname = 'guest'\npassword = 'guest'\nloopback-only = true\n\
             [[vhost]]\nname = 'blue'\n",
        )
        .unwrap(),
    );
    let [ann, guest] = &config.broker.users[..] else { panic!("{:?}", config.broker.users) };
    assert_eq!((&*ann.name, ann.loopback_only), ("ann", false));
    assert_eq!(ann.vhosts, VhostAccess::Only(vec!["blue".into()]));
    assert_eq!(ann.tags, ["monitoring".into()]);
    assert_eq!((&*guest.name, guest.loopback_only, &guest.vhosts), ("guest", true, &VhostAccess::All));
    assert_eq!(config.broker.vhosts, ["blue".into()]);
    let untouched = resolve(Settings::default()).broker;
    assert_eq!((&*untouched.users[0].name, untouched.vhosts), ("guest", vec!["/".into()]));
}

#[test]
fn a_wrong_file_is_answered_with_what_is_wrong() {
    let check = |toml: &str, expected: &str| {
        let text = refusal(toml);
        assert!(text.contains(expected), "{toml:?}: {text}");
    };
    check("frobnicate = 1", "there is no setting `frobnicate` here, there are `data-dir`, `durability`");
    check("config = 'other.toml'", "there is no setting `config`");
    check("amqp = 'off", "this is not TOML (");
    check("amqp = 'off'\namqp = 'off'", "this is not TOML (duplicate key); correct or remove it");
    check("amqp = true", "invalid value \"true\": write an address as");
    check("data-dir = 7", "`7` is no text; write a text in quotes");
    check("node-name = ''", "write a name of 1 to 255 bytes");
    check("limits = 5", "`5` is no section; write its name in brackets, as in [limits]");
    check("[user]\nname = 'ann'", "write its name in double brackets, as in [[user]]");
    check("user = 5", "`5` is no list");
    check("worker-threads = 1.5", "invalid value \"1.5\": write a whole number from 1 to 1024");
    check("[limits]\nconnections-max = -1", "invalid value \"-1\": write a whole number");
    check("[limits]\ntable-depth-max = 99999999999999999999999", "the number has more than 64 bits");
    check("[limits]\nready-memory-bytes-max = 0.4", "invalid value \"0.4\": write a size as");
    check("[limits]\nframe-bytes-max = '1MB'", "write a size as");
    check("[limits]\nhandshake-timeout = 10", "write a time as");
    check("[limits]\nframe-bytes-max = 100", "frame-bytes-max must be at least 4096");
    check(
        "[limits]\nchannels-per-connection-max = 65536",
        "invalid value \"65536\": write a whole number from 1 to 65535",
    );
    check("durability = 'disk'", "write fsync or os");
    check("auth-mechanisms = 'EXTERNAL'", "write some of PLAIN, AMQPLAIN and RABBIT-CR-DEMO");
    check("worker-threads = 0", "write a whole number from 1 to 1024");
    check("worker-threads = 100000", "write a whole number from 1 to 1024");
    check("[[user]]\nname = 'ann'", "user \"ann\": give one of password and password-hash");
    check("[[user]]\nname = 'ann'\npassword = 'a'\npassword-hash = 'b'", "give one of");
    check("[[user]]\nname = 'ann'\npassword = ''", "user \"ann\": the password is empty");
    check("[[user]]\nname = 'ann'\npassword-hash = 'secret'", "user \"ann\": not a password hash");
    check("[[user]]\nname = 'ann'\npasswort = 'a'", "there is no setting `passwort`");
    check("[[user]]\npassword = 'a'", "`name` is missing; add it");
    check("[[user]]\nname = 'ann'\npassword = 5", "`5` is no text; write a text in quotes");
    check("[[user]]\nname = 'ann'\npassword = 'a'\ntags = 'b'", "\"b\" is no list; write a list, as in");
    check("[[user]]\nname = 'ann'\npassword = 'a'\nloopback-only = 'no'", "write true or false");
    check("[[vhost]]\nname = ''", "a name must have 1 to 255 bytes");
    check("[[vhost]]\nname = 'a'\n[[vhost]]\nname = 'a'", "the vhost \"a\" is given twice");
    let user = "[[user]]\nname = 'a'\npassword = 'a'\n";
    check(&user.repeat(2), "the user \"a\" is given twice");
}

#[test]
fn a_password_shows_in_no_debug_output() {
    let settings = file::parse("[[user]]\nname = 'ann'\npassword = 'hidden'").unwrap();
    assert!(!format!("{settings:?}").contains("hidden"));
    assert!(!format!("{:?}", resolve(settings)).contains("hidden"));
}
