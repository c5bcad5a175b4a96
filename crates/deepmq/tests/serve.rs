//! The program as its user sees it: output, exit codes, files.

#![expect(clippy::unwrap_used, reason = "a function that helps a test fails with it")]

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A running broker; killed if a test fails before it stops.
struct Serving {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Serving {
    fn start(arguments: &[&str], data_dir: &Path) -> Self {
        let mut child = command()
            .args(["serve", "--amqp", "127.0.0.1:0", "--data-dir"])
            .arg(data_dir)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    /// The address of the line that says it listens.
    fn amqp_address(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().strip_prefix("listening amqp ").expect(&line).to_owned()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end: the status, the rest of standard output, and standard error.
    fn wait(mut self) -> (ExitStatus, String, String) {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap(), stdout, stderr)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Already gone if the test waited for it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("deepmq"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("DEEPMQ_")) {
        command.env_remove(name);
    }
    // Tests run at once, and there is one default port.
    command.env("DEEPMQ_HTTP", "off");
    command
}

/// Runs to the end, which must come by itself: exit code, standard output, standard error.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = command().args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The refusal to start with `arguments`, which must be one line.
fn refusal(arguments: &[&str], exit_code: i32) -> String {
    let (code, stdout, stderr) = run(arguments);
    let told = stderr.lines().find(|line| line.starts_with("deepmq: ")).unwrap_or_default().to_owned();
    assert_eq!((code, stdout.as_str()), (Some(exit_code), ""), "{stderr}");
    assert_eq!(stderr.lines().filter(|line| !line.contains("INFO")).count(), 1, "{stderr}");
    told
}

#[test]
fn version_and_help_go_to_standard_output() {
    let (code, stdout, _) = run(&["--version"]);
    assert_eq!((code, stdout.as_str()), (Some(0), concat!("deepmq ", env!("CARGO_PKG_VERSION"), "\n")));
    let (code, stdout, _) = run(&["serve", "--help"]);
    assert_eq!(code, Some(0));
    for part in ["--data-dir <DIR>", "DEEPMQ_DATA_DIR", "[[user]]", "--frame-bytes-max", "Examples:"] {
        assert!(stdout.contains(part), "{part} is missing in:\n{stdout}");
    }
}

#[test]
fn without_a_verb_or_with_an_unknown_flag_the_exit_code_is_2() {
    assert_eq!(run(&[]).0, Some(2));
    let (code, _, stderr) = run(&["serve", "--data-dri", "x"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("'--data-dri'") && stderr.contains("'--data-dir'"), "{stderr}");
}

#[test]
fn a_wrong_configuration_file_is_refused_naming_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deepmq.toml");
    let path = path.to_str().unwrap();
    let check = |content: &str, line: usize, what: &str| {
        std::fs::write(path, content).unwrap();
        let told = refusal(&["serve", "--config", path], 2);
        assert!(told.starts_with(&format!("deepmq: {path}:{line}: ")), "{told}");
        assert!(told.contains(what), "{told}");
    };
    check("amqp = 'off'\nfrobnicate = 1\n", 2, "there is no setting `frobnicate`");
    check("# one\n\n[limits]\nframe-bytes-max = '1MB'\n", 4, "write a size as");
    check("amqp = 'off'\namqp = ", 2, "");
    check("[[vhost]]\nname = 'a'\n\n[[user]]\nname = 'ann'\n", 4, "give one of password and password-hash");
}

#[test]
fn a_configuration_file_that_can_not_be_read_is_refused_naming_it() {
    let told = refusal(&["serve", "--config", "/nonexistent/deepmq.toml"], 2);
    assert!(told.contains("/nonexistent/deepmq.toml") && told.contains("--config"), "{told}");
}

#[test]
fn a_wrong_variable_of_the_environment_is_refused_naming_it() {
    let output = command().arg("serve").env("DEEPMQ_AMQP", "nowhere").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.starts_with("deepmq: DEEPMQ_AMQP: invalid value 'nowhere'"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1);
}

#[test]
fn a_variable_that_is_no_setting_is_warned_of_and_those_of_a_platform_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let output = command()
        .args(["serve", "--amqp", "nohost.invalid:1", "--log", "warn", "--data-dir"])
        .arg(dir.path())
        .env("DEEPMQ_DATA_DIRR", "x")
        .env("DEEPMQ_PORT", "tcp://10.0.0.1:5672")
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let warnings: Vec<_> = stderr.lines().filter(|line| line.contains("WARN")).collect();
    assert!(matches!(warnings[..], [one] if one.contains("DEEPMQ_DATA_DIRR")), "{stderr}");
}

#[test]
fn the_file_the_environment_names_configures_the_broker() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deepmq.toml");
    std::fs::write(&path, "data-dir = 7\n").unwrap();
    let output = command().arg("serve").env("DEEPMQ_CONFIG", &path).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("deepmq.toml:1: "), "{stderr}");
}

#[test]
fn a_taken_port_is_refused_naming_the_address_and_the_flag() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let told = refusal(&["serve", "--amqp", &address, "--data-dir", dir.path().to_str().unwrap()], 1);
    assert!(told.contains(&address) && told.contains("--amqp"), "{told}");
}

#[test]
fn a_data_directory_below_a_file_is_refused_naming_it_and_the_flag() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("data");
    let told = refusal(&["serve", "--amqp", "127.0.0.1:0", "--data-dir", below.to_str().unwrap()], 1);
    assert!(told.contains(below.to_str().unwrap()) && told.contains("--data-dir"), "{told}");
}

#[test]
fn a_second_broker_on_one_data_directory_is_refused_naming_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = Serving::start(&[], dir.path());
    first.amqp_address();
    let told = refusal(&["serve", "--amqp", "127.0.0.1:0", "--data-dir", dir.path().to_str().unwrap()], 1);
    assert!(told.contains(&format!("process {}", first.child.id())) && told.contains("--data-dir"), "{told}");
}

#[test]
fn a_data_directory_is_free_again_after_its_broker_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = Serving::start(&[], dir.path());
    first.amqp_address();
    first.signal(Signal::KILL);
    first.wait();
    let mut second = Serving::start(&[], dir.path());
    second.amqp_address();
}

#[test]
fn the_broker_says_once_where_it_listens_accepts_there_and_stops_on_sigterm_or_sigint_with_0() {
    for signal in [Signal::TERM, Signal::INT] {
        let dir = tempfile::tempdir().unwrap();
        let mut broker = Serving::start(&[], &dir.path().join("new/data"));
        let address = broker.amqp_address();
        assert!(!address.ends_with(":0"), "{address}");
        drop(TcpStream::connect(&address).unwrap());
        broker.signal(signal);
        let (status, stdout, stderr) = broker.wait();
        assert_eq!((status.code(), stdout.as_str()), (Some(0), ""), "{stderr}");
    }
}

#[test]
fn logs_are_lines_without_colour_on_standard_error_of_the_level_asked_for() {
    let stop = |log: &str| {
        let dir = tempfile::tempdir().unwrap();
        let mut broker = Serving::start(&["--log", log], dir.path());
        broker.amqp_address();
        broker.signal(Signal::TERM);
        broker.wait().2
    };
    let told = stop("info");
    assert!(told.lines().any(|line| line.contains("INFO") && line.contains("stopped")), "{told}");
    assert!(!told.contains('\u{1b}'), "{told}");
    assert_eq!(stop("error"), "");
}
