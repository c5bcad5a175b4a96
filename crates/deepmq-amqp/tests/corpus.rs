//! Replays the fuzz corpus: what was once interesting to a decoder must stay harmless.

#[path = "../../../fuzz/checks.rs"]
mod checks;

use std::fs;
use std::path::Path;

fn replay(target: &str, check: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut replayed = 0;
    for entry in fs::read_dir(&corpus).expect("every target has a corpus") {
        let path = entry.expect("the corpus can be listed").path();
        let bytes = fs::read(&path).expect("the corpus can be read");
        check(&bytes);
        // The neighbours of a seed: every prefix, and every octet changed.
        for place in 0..bytes.len() {
            let (prefix, _) = bytes.split_at(place);
            check(prefix);
            let mut changed = bytes.clone();
            changed.iter_mut().skip(place).take(1).for_each(|octet| *octet ^= 0xff);
            check(&changed);
        }
        replayed += 1;
    }
    assert!(replayed > 0, "{} is empty", corpus.display());
}

#[test]
fn frames_are_harmless() {
    replay("frame", checks::frame);
}

#[test]
fn methods_are_harmless() {
    replay("method", checks::method);
}

#[test]
fn tables_are_harmless() {
    replay("table", checks::table);
}

#[test]
fn properties_are_harmless() {
    replay("properties", checks::properties);
}

#[test]
fn content_headers_are_harmless() {
    replay("content_header", checks::content_header);
}
