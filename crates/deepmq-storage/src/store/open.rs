//! Opening a data directory.
//!
//! Owns what is refused, in an order in which nothing is changed before everything is checked, and what a crash left to
//! tidy up. Must not know what was found.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use super::Store;
use crate::data_dir::{DataDir, Handle};
use crate::failure::{Latch, StorageFailure};
use crate::format::{self, Format};
use crate::journal::{Journal, Outline, Resume};
use crate::layout::Layout;
use crate::record::{Mark, Stamp};
use crate::recover::{Damage, Found, Recovered, find};
use crate::seam::{Clock, Disk, LockError, LockGuard, OpenMode, Owner, PAGE_BYTES, Seam};
use crate::segment::{FileCache, QueueSegments};

/// The user who may write anywhere, and so does not notice that a directory is not his.
const ROOT: u32 = 0;

/// Sizes.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of a journal file; a record that is longer gets a longer one.
    pub journal_file_bytes: u64,
    /// The journal is written through the system's cache: records are handed over sooner and synced later. For where it is
    /// seldom asked for a sync.
    pub journal_cached: bool,
    /// A segment takes no further block once it has so many bytes.
    pub segment_bytes: u64,
    /// Segment files that are open at once.
    pub open_files_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            journal_file_bytes: 64 * 1024 * 1024,
            journal_cached: false,
            segment_bytes: 16 * 1024 * 1024,
            open_files_max: 64,
        }
    }
}

impl Options {
    /// How the journal's files are opened to be written.
    pub(crate) fn journal_mode(&self) -> OpenMode {
        if self.journal_cached { OpenMode::Write } else { OpenMode::Direct }
    }

    /// The room a journal file is given, which is whole pages.
    pub(crate) fn journal_file_room(&self) -> u64 {
        self.journal_file_bytes.next_multiple_of(PAGE_BYTES as u64)
    }
}

/// Why a directory was not opened. But for [`OpenError::Failed`], nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process, or this one, has it open.
    #[error("{} is in use by {}", root.display(), pid.map_or("another process".to_owned(), |pid| format!("process {pid}")))]
    InUse {
        /// The directory.
        root: PathBuf,
        /// The process that has it open, if it is known.
        pid: Option<u32>,
    },
    /// The file system is mounted read-only.
    #[error("{} is read-only", root.display())]
    ReadOnly {
        /// The directory.
        root: PathBuf,
    },
    /// The process may not write there: most often the directory belongs to another user.
    #[error("{} is not permitted to {}", path.display(), Users(*owner))]
    NotPermitted {
        /// What was tried first.
        path: PathBuf,
        /// Who asks, and whose it or the directory around it is.
        owner: Option<Owner>,
    },
    /// The process is root's and the data another user's, who could not open the directory any more after it.
    #[error("{} is not for {}", root.display(), Users(Some(*owner)))]
    OfAnotherUser {
        /// The directory.
        root: PathBuf,
        /// Who asks, and whose it is.
        owner: Owner,
    },
    /// It, or a part of the path to it, is something else.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// What is not.
        path: PathBuf,
    },
    /// A later release wrote it.
    #[error("{} has format version {version}, this release knows {}", root.display(), format::VERSION)]
    NewerFormat {
        /// The directory.
        root: PathBuf,
        /// Its version.
        version: u32,
    },
    /// There is data, but the file that tells its format is missing or not readable.
    #[error("{} is missing or damaged, and there is data beside it", path.display())]
    UnknownFormat {
        /// The format file.
        path: PathBuf,
    },
    /// The snapshot of the topology is not readable: nobody would know whose messages these are.
    #[error("{} is damaged; put back a copy of it", path.display())]
    SnapshotDamaged {
        /// The snapshot.
        path: PathBuf,
    },
    /// The file system refused to read.
    #[error("can not read {}: {source}", path.display())]
    Io {
        /// What was read.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// A write failed while the directory was being tidied up. It can be opened again later.
    #[error(transparent)]
    Failed(#[from] StorageFailure),
}

/// The two users of a refusal, in words.
struct Users(Option<Owner>);

impl fmt::Display for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(Owner { of_file, of_process }) => {
                write!(f, "user {of_process}, whom this broker runs as, for it belongs to user {of_file}")
            }
            None => write!(f, "this user"),
        }
    }
}

/// What an error of the file system says of the directory.
fn refusal(disk: &dyn Disk, path: &Path, source: io::Error) -> OpenError {
    match source.kind() {
        io::ErrorKind::ReadOnlyFilesystem => OpenError::ReadOnly { root: path.to_owned() },
        io::ErrorKind::PermissionDenied => {
            // What is missing, or in a directory that may not be looked into, is as permitted as what is around it.
            let around =
                path.ancestors().map(|dir| if dir.as_os_str().is_empty() { Path::new(".") } else { dir });
            let owner = around.into_iter().find_map(|around| disk.owner(around).ok());
            OpenError::NotPermitted { path: path.to_owned(), owner }
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            let is_no_directory = |path: &&Path| {
                disk.owner(path).is_ok()
                    && disk.list(path).is_err_and(|error| error.kind() == io::ErrorKind::NotADirectory)
            };
            let path = path.ancestors().find(is_no_directory).unwrap_or(path);
            OpenError::NotADirectory { path: path.to_owned() }
        }
        _ => OpenError::Io { path: path.to_owned(), source },
    }
}

impl Store {
    /// Opens a data directory, or begins one where there is none. What is found is handed over with it; nothing is
    /// written until a thread runs the journal.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(seam: &Seam, root: &Path, options: Options) -> Result<(Self, Recovered), OpenError> {
        let layout = Layout::new(root);
        let disk = Arc::clone(&seam.disk);
        // Asked before the lock, which leaves a file behind.
        check_format(seam, &layout)?;
        disk.create_dir_all(root).map_err(|error| refusal(disk.as_ref(), root, error))?;
        let lock = take_lock(seam, &layout)?;
        let (tag, whole) = check_format(seam, &layout)?.unwrap_or_else(|| (new_tag(seam), true));
        let dir = DataDir { disk, layout, latch: Latch::default(), tag };
        let mut found = match dir.disk.list(&dir.layout.journal_dir()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => begin(&dir)?,
            Err(error) => return Err(refusal(dir.disk.as_ref(), &dir.layout.journal_dir(), error)),
            Ok(_) => find(&dir).map_err(|error| refusal(dir.disk.as_ref(), root, error))?,
        };
        if found.recovered.damage.iter().any(|damage| matches!(damage, Damage::Snapshot { .. })) {
            return Err(OpenError::SnapshotDamaged { path: dir.layout.snapshot() });
        }
        if !whole {
            found.recovered.damage.push(Damage::Format { file: dir.layout.format() });
            dir.replace(&dir.layout.format(), &[&format::encode(tag)])?;
        }
        Self::tidy_up(dir, Arc::clone(&seam.clock), options, found, lock)
    }

    fn tidy_up(
        dir: DataDir,
        clock: Arc<dyn Clock>,
        options: Options,
        found: Found,
        lock: LockGuard,
    ) -> Result<(Self, Recovered), OpenError> {
        let Found { recovered, files, segments, orphans } = found;
        remove_orphans(&dir, &orphans)?;
        let resume = resume(&dir, &recovered.outline, &options)?;
        let cache = Arc::new(FileCache::new(options.open_files_max, OpenMode::Write));
        let adopt = |(queue, segments)| {
            let mut adopted =
                QueueSegments::new(dir.clone(), Arc::clone(&cache), options.segment_bytes, queue);
            adopted.adopt(segments);
            (queue, Arc::new(Mutex::new(adopted)))
        };
        let queues = segments.into_iter().map(adopt).collect();
        let journal = Journal::new(dir.clone(), clock, &options, resume, files);
        let store = Self {
            journal: Arc::new(journal),
            cache,
            queues: Mutex::new(queues),
            retired: Mutex::default(),
            removed: AtomicBool::new(true),
            options,
            dir,
            _lock: lock,
        };
        Ok((store, recovered))
    }
}

/// The directory's number and whether the file is whole; `None` where a directory is to begin.
fn check_format(seam: &Seam, layout: &Layout) -> Result<Option<(u64, bool)>, OpenError> {
    let disk = seam.disk.as_ref();
    let refuse = |path: PathBuf| move |error| refusal(disk, &path, error);
    match format::read(disk, layout).map_err(refuse(layout.format()))? {
        Format::Known { tag, whole } => {
            let owner = disk.owner(&layout.format()).map_err(refuse(layout.format()))?;
            if owner.of_process == ROOT && owner.of_file != ROOT {
                return Err(OpenError::OfAnotherUser { root: layout.root().to_owned(), owner });
            }
            Ok(Some((tag, whole)))
        }
        Format::Newer(version) => Err(OpenError::NewerFormat { root: layout.root().to_owned(), version }),
        Format::Damaged => Err(OpenError::UnknownFormat { path: layout.format() }),
        Format::Missing => match disk.list(&layout.journal_dir()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(refusal(disk, &layout.journal_dir(), error)),
            Ok(_) => Err(OpenError::UnknownFormat { path: layout.format() }),
        },
    }
}

fn take_lock(seam: &Seam, layout: &Layout) -> Result<LockGuard, OpenError> {
    seam.disk.lock(&layout.lock()).map_err(|error| match error {
        LockError::Held { pid, .. } => OpenError::InUse { root: layout.root().to_owned(), pid },
        LockError::Io { path, source } => refusal(seam.disk.as_ref(), &path, source),
    })
}

fn new_tag(seam: &Seam) -> u64 {
    let mut bytes = [0; 8];
    seam.random.fill(&mut bytes);
    u64::from_le_bytes(bytes) | 1 // never the zero an empty file would hold
}

/// A directory's first start: the format file comes first, then the directories that make it count.
fn begin(dir: &DataDir) -> Result<Found, OpenError> {
    dir.replace(&dir.layout.format(), &[&format::encode(dir.tag)])?;
    for made in [dir.layout.topology_dir(), dir.layout.queues_dir(), dir.layout.journal_dir()] {
        dir.create_dir(&made)?;
    }
    if let Some(parent) = dir.layout.root().parent().filter(|parent| !parent.as_os_str().is_empty()) {
        dir.sync_dir(parent)?;
    }
    find(dir).map_err(|error| refusal(dir.disk.as_ref(), dir.layout.root(), error))
}

fn remove_orphans(dir: &DataDir, orphans: &BTreeSet<(u64, Option<u64>)>) -> Result<(), StorageFailure> {
    for &(queue, segment) in orphans {
        match segment {
            Some(number) => dir.remove(&dir.layout.segment(queue, number))?,
            None => dir.remove_queue(queue)?,
        }
    }
    Ok(())
}

/// Cuts off what a crash has torn, removes what follows, and syncs what the process before left unsynced.
fn resume(dir: &DataDir, outline: &Outline, options: &Options) -> Result<Resume, StorageFailure> {
    let mut resume = Resume {
        next_lsn: outline.next_lsn,
        file: outline.numbers.last().map_or(0, |last| last + 1),
        offset: 0,
        recycled: outline.tail_recycled,
        current: None,
        page: Vec::new(),
        prepared: Vec::new(),
    };
    if let Some((file, offset)) = outline.tail {
        (resume.file, resume.offset) = (file, offset);
        resume.current = Some(open_tail(dir, outline, file, offset, options)?);
        resume.page = read_page(dir, file, offset)?;
    }
    write_lost_marks(dir, outline)?;
    let mut removed = false;
    let mut next = outline.tail.map(|(file, _)| file + 1);
    for number in outline.files_after_tail() {
        if next == Some(number) && !outline.has_records(number) {
            resume.prepared.push((number, dir.open(dir.layout.journal(number), options.journal_mode())?));
            next = Some(number + 1);
        } else {
            dir.remove(&dir.layout.journal(number))?;
            removed = true;
        }
    }
    if removed {
        dir.sync_dir(&dir.layout.journal_dir())?;
    }
    Ok(resume)
}

/// Writes marks again that are not readable, so that they are not found missing forever.
fn write_lost_marks(dir: &DataDir, outline: &Outline) -> Result<(), StorageFailure> {
    for &(file, offset, lsn) in &outline.lost_marks {
        let handle = dir.open(dir.layout.journal(file), OpenMode::Write)?;
        let mark = Mark { recycled: offset == 0, ..Mark::default() };
        dir.write(&handle, &[&mark.record(Stamp { tag: dir.tag, file, lsn })], offset)?;
        dir.sync(&handle)?;
    }
    Ok(())
}

fn open_tail(
    dir: &DataDir,
    outline: &Outline,
    file: u64,
    offset: u64,
    options: &Options,
) -> Result<Handle, StorageFailure> {
    let handle = dir.open(dir.layout.journal(file), OpenMode::Write)?;
    if outline.is_cut() || outline.torn_bytes > 0 {
        dir.truncate(&handle, offset)?;
        // A full disk is no reason not to start: the file then grows as it is written, or that fails.
        let _ = handle.file.preallocate(options.journal_file_room());
    }
    if !outline.closed {
        dir.sync(&handle)?;
        dir.sync_dir(&dir.layout.journal_dir())?;
    }
    dir.open(handle.path, options.journal_mode())
}

/// What a journal file holds from the start of a page up to an offset in it.
fn read_page(dir: &DataDir, file: u64, offset: u64) -> Result<Vec<u8>, StorageFailure> {
    let handle = dir.open(dir.layout.journal(file), OpenMode::Read)?;
    let bytes = offset % PAGE_BYTES as u64;
    let mut page = vec![0; usize::try_from(bytes).unwrap_or(0)];
    dir.read(&handle, &mut page, offset - bytes)?;
    Ok(page)
}
