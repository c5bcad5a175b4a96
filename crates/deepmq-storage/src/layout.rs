//! Where everything lies in a data directory.
//!
//! Owns all names below it; nothing else builds a path. Must not know what the files hold.

use std::path::{Path, PathBuf};

/// The paths of one data directory.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("deepmq.lock")
    }

    pub(crate) fn format(&self) -> PathBuf {
        self.root.join("format")
    }

    pub(crate) fn reserve(&self) -> PathBuf {
        self.root.join("reserve")
    }

    pub(crate) fn topology_dir(&self) -> PathBuf {
        self.root.join("topology")
    }

    pub(crate) fn snapshot(&self) -> PathBuf {
        self.topology_dir().join("snapshot.json")
    }

    pub(crate) fn journal_dir(&self) -> PathBuf {
        self.root.join("journal")
    }

    pub(crate) fn journal(&self, number: u64) -> PathBuf {
        self.journal_dir().join(format!("{number:020}.log"))
    }

    pub(crate) fn queues_dir(&self) -> PathBuf {
        self.root.join("queues")
    }

    pub(crate) fn queue_dir(&self, queue: u64) -> PathBuf {
        self.queues_dir().join(format!("{queue:016x}"))
    }

    pub(crate) fn segment(&self, queue: u64, segment: u64) -> PathBuf {
        self.queue_dir(queue).join(format!("{segment:020}.seg"))
    }

    pub(crate) fn checkpoint(&self, queue: u64) -> PathBuf {
        self.queue_dir(queue).join("checkpoint.dat")
    }
}

/// The name under which a file is written before it takes its place.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}

/// The number of the journal file of this name.
pub(crate) fn journal_number(name: &str) -> Option<u64> {
    decimal(name.strip_suffix(".log")?)
}

/// The number of the segment of this name.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    decimal(name.strip_suffix(".seg")?)
}

/// The queue whose directory has this name.
pub(crate) fn queue_id(name: &str) -> Option<u64> {
    let id = u64::from_str_radix(name, 16).ok()?;
    (format!("{id:016x}") == name).then_some(id)
}

fn decimal(digits: &str) -> Option<u64> {
    let number = digits.parse().ok()?;
    (format!("{number:020}") == digits).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_back_and_no_other_is_taken_for_one() {
        let layout = Layout::new(Path::new("/d"));
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(journal_number(&name(layout.journal(u64::MAX))), Some(u64::MAX));
        assert_eq!(segment_number(&name(layout.segment(1, 77))), Some(77));
        assert_eq!(queue_id(&name(layout.queue_dir(0xabc))), Some(0xabc));
        assert_eq!(layout.journal(3), Path::new("/d/journal/00000000000000000003.log"));
        assert_eq!(layout.checkpoint(18), Path::new("/d/queues/0000000000000012/checkpoint.dat"));
        for strange in
            ["1.log", "+0000000000000000001.log", "0000000000000000001x.log", "00000000000000000001.seg"]
        {
            assert_eq!(journal_number(strange), None, "{strange}");
        }
        assert_eq!(queue_id("ABC0000000000000"), None);
    }
}
