//! The latch: after the first write or sync that failed, nothing is written any more.
//!
//! Owns the first failure and who may see it. A sync is never tried again, for a second one may succeed although the
//! first lost data. A write for which there was no space is another matter: it lost nothing, and may be tried again once
//! there is. Must not know what was being written.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Why nothing is written any more: the first operation that failed. Cheap to clone.
#[derive(Clone)]
pub struct StorageFailure {
    what: Arc<What>,
}

struct What {
    operation: &'static str,
    subject: String,
    kind: io::ErrorKind,
    errno: Option<i32>,
    message: String,
}

impl StorageFailure {
    pub(crate) fn new(operation: &'static str, subject: &Path, error: &io::Error) -> Self {
        Self {
            what: Arc::new(What {
                operation,
                subject: subject.display().to_string(),
                kind: error.kind(),
                errno: error.raw_os_error(),
                message: error.to_string(),
            }),
        }
    }

    /// The operating system's number of the error, if it was its error.
    pub fn errno(&self) -> Option<i32> {
        self.what.errno
    }

    /// The kind of the error.
    pub fn kind(&self) -> io::ErrorKind {
        self.what.kind
    }

    /// What was tried, e.g. `sync`.
    pub fn operation(&self) -> &'static str {
        self.what.operation
    }

    /// Whether there was no space, and nothing is lost: what failed is not done, and may be tried again. Every other
    /// failure is the last.
    pub fn is_out_of_space(&self) -> bool {
        let full = matches!(self.what.kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        full && matches!(self.what.operation, "create" | "allocate" | "write")
    }
}

impl fmt::Display for StorageFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "can not {} {}: {}", self.what.operation, self.what.subject, self.what.message)
    }
}

impl fmt::Debug for StorageFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StorageFailure({self})")
    }
}

impl std::error::Error for StorageFailure {}

/// Shared by all that writes below one data directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Latch {
    first: Arc<OnceLock<StorageFailure>>,
}

impl Latch {
    pub(crate) fn failure(&self) -> Option<&StorageFailure> {
        self.first.get()
    }

    /// Refuses if anything failed before.
    pub(crate) fn check(&self) -> Result<(), StorageFailure> {
        self.first.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Runs one operation unless one failed before; its failure is the last, but for want of space.
    pub(crate) fn run<T>(
        &self,
        operation: &'static str,
        subject: &Path,
        run: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, StorageFailure> {
        self.check()?;
        run().map_err(|error| {
            let failure = StorageFailure::new(operation, subject, &error);
            if failure.is_out_of_space() { failure } else { self.first.get_or_init(|| failure).clone() }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_failure_is_told_and_nothing_runs_after_it() {
        let latch = Latch::default();
        let fail =
            |errno| latch.run("write", Path::new("a"), || Err::<(), _>(io::Error::from_raw_os_error(errno)));
        assert_eq!(latch.run("write", Path::new("a"), || Ok(7)).unwrap(), 7);
        assert_eq!(fail(5).unwrap_err().errno(), Some(5));
        assert_eq!(fail(6).unwrap_err().errno(), Some(5));
        let refused = latch.clone().run("sync", Path::new("b"), || -> io::Result<()> { unreachable!() });
        assert!(refused.unwrap_err().to_string().starts_with("can not write a: "));
    }

    #[test]
    fn a_write_without_space_may_be_tried_again_but_a_sync_may_not() {
        let latch = Latch::default();
        let full = |operation| {
            latch.run(operation, Path::new("a"), || Err::<(), _>(io::Error::from_raw_os_error(28)))
        };
        for operation in ["create", "allocate", "write"] {
            assert!(full(operation).unwrap_err().is_out_of_space(), "{operation}");
        }
        assert!(latch.failure().is_none());
        assert!(!full("sync").unwrap_err().is_out_of_space());
        assert_eq!(full("write").unwrap_err().operation(), "sync");
    }
}
