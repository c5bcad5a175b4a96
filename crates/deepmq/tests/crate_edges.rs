//! The shape of the house: which crate may use which, and what every source file looks like.

#![expect(clippy::unwrap_used, reason = "a function that helps a test fails with it")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

/// What each crate may depend on among ours. A crate that is not listed may not exist.
const ALLOWED: [(&str, &[&str]); 7] = [
    ("deepmq-model", &[]),
    ("deepmq-storage", &[]),
    ("deepmq-broker", &["deepmq-model", "deepmq-storage"]),
    ("deepmq-amqp", &["deepmq-broker", "deepmq-model", "deepmq-storage"]),
    ("deepmq-api", &["deepmq-broker", "deepmq-model", "deepmq-storage"]),
    ("deepmq-testkit", &["deepmq-amqp", "deepmq-broker", "deepmq-model", "deepmq-storage"]),
    ("deepmq", &["deepmq-amqp", "deepmq-api", "deepmq-broker", "deepmq-model", "deepmq-storage"]),
];

/// What the pure and the simulated parts must never get at: a runtime.
const WITHOUT_RUNTIME: [&str; 2] = ["deepmq-model", "deepmq-storage"];
/// For tests alone.
const DEV_ONLY: &str = "deepmq-testkit";
const LINES_MAX: usize = 600;

fn workspace() -> (PathBuf, BTreeMap<String, Package>) {
    let metadata = MetadataCommand::new().no_deps().other_options(["--offline".to_owned()]).exec().unwrap();
    let packages = metadata.packages.into_iter().map(|package| (package.name.to_string(), package)).collect();
    (metadata.workspace_root.into(), packages)
}

fn dependencies(package: &Package, dev: bool) -> BTreeSet<&str> {
    let of_kind = |kind| dev == (kind == DependencyKind::Development);
    package.dependencies.iter().filter(|on| of_kind(on.kind)).map(|on| on.name.as_str()).collect()
}

#[test]
fn crates_depend_only_downwards() {
    let (_, packages) = workspace();
    let allowed = BTreeMap::from(ALLOWED);
    for (name, package) in &packages {
        let allowed = allowed.get(name.as_str()).unwrap_or_else(|| panic!("{name} has no place in the list"));
        for on in dependencies(package, false).into_iter().filter(|on| packages.contains_key(*on)) {
            assert!(allowed.contains(&on), "{name} must not depend on {on}");
        }
    }
    assert_eq!(packages.len(), ALLOWED.len(), "the list names crates that do not exist");
}

#[test]
fn the_testkit_is_for_tests_alone() {
    let (_, packages) = workspace();
    for (name, package) in &packages {
        assert!(!dependencies(package, false).contains(DEV_ONLY), "{name} ships the testkit");
    }
}

#[test]
fn model_and_storage_know_no_runtime() {
    let (_, packages) = workspace();
    for name in WITHOUT_RUNTIME {
        for dev in [false, true] {
            let runtime = dependencies(&packages[name], dev).into_iter().find(|on| on.starts_with("tokio"));
            assert_eq!(runtime, None, "of {name}");
        }
    }
}

#[test]
fn every_source_file_says_what_it_owns_is_short_and_is_no_mod_rs() {
    let (root, _) = workspace();
    let mut files = Vec::new();
    collect_sources(&root.join("crates"), &mut files);
    assert!(files.len() > 20, "only {} files found below {}", files.len(), root.display());
    let wrong: Vec<String> = files.iter().filter_map(|path| untidy(path)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn collect_sources(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            collect_sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn untidy(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().count();
    let shown = path.display();
    if path.ends_with("mod.rs") {
        Some(format!("{shown}: use the form foo.rs beside foo/"))
    } else if !text.starts_with("//!") {
        Some(format!("{shown}: open with //! and say what the file owns and must not know"))
    } else if lines > LINES_MAX {
        Some(format!("{shown}: {lines} lines; split what is over {LINES_MAX}"))
    } else {
        None
    }
}
