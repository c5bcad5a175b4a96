//! A disk in memory that forgets what was not synced.
//!
//! Owns the simulated directory tree, its locks and its faults. What a machine's crash may do, [`SimDisk::crash`] does:
//! un-synced writes are dropped, torn at 512 bytes or reordered, un-synced names are lost. Must not know what the files
//! mean.

mod inode;
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{Disk, DiskFile, Entry, LockError, LockGuard, OpenMode, Owner, PAGE_BYTES};
use crate::seam::SeededRandom;
use inode::{Change, Inode};
use names::{Names, Node};

/// A disk in memory: empty at first, gone with its last clone. Clones are handles to the same disk.
#[derive(Debug, Clone, Default)]
pub struct SimDisk {
    world: Arc<Mutex<World>>,
    syncs_go_on: Arc<Condvar>,
}

#[derive(Debug, Default)]
struct World {
    names: Names,
    /// Shared with the moments that are kept.
    inodes: BTreeMap<u64, Arc<Inode>>,
    locked: BTreeSet<PathBuf>,
    operations: u64,
    fail_at: Option<(u64, i32)>,
    crash_at: Option<u64>,
    read_only: bool,
    free_bytes: Option<u64>,
    owner: Option<Owner>,
    syncs_held: bool,
    /// The disk before each operation, while these are kept.
    moments: Option<Vec<SimDisk>>,
}

/// `EIO`, `ENOSPC`, `EROFS` and `EINVAL` as Linux numbers them; a simulation says the same everywhere.
const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
const EINVAL: i32 = 22;

impl World {
    /// Counts an operation that changes something, and refuses it where a fault was asked for.
    fn change(&mut self) -> io::Result<()> {
        if self.read_only {
            return Err(io::Error::from_raw_os_error(EROFS));
        }
        if self.crash_at.is_some_and(|last| self.operations >= last) {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        self.operations += 1;
        if let Some(mut moments) = self.moments.take() {
            moments.push(SimDisk::of(self.names.clone(), self.inodes.clone()));
            self.moments = Some(moments);
        }
        match self.fail_at {
            Some((at, errno)) if at == self.operations => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }
    }

    /// Takes or gives back what a file's length changes by, if it is a disk that fills up.
    fn take_space(&mut self, from: usize, to: usize) -> io::Result<()> {
        let Some(free) = self.free_bytes else { return Ok(()) };
        let left = (free + from as u64).checked_sub(to as u64);
        self.free_bytes = Some(left.ok_or_else(|| io::Error::from_raw_os_error(ENOSPC))?);
        Ok(())
    }

    /// The file of this name is about to lose it.
    fn give_space_back(&mut self, path: &Path) {
        if let Some(Node::File(number)) = self.names.node(path) {
            let length = self.inode(number).live().len();
            self.free_bytes = self.free_bytes.map(|free| free + length as u64);
        }
    }

    fn inode(&mut self, number: u64) -> &mut Inode {
        Arc::make_mut(self.inodes.entry(number).or_default())
    }

    fn create(&mut self, path: &Path) -> u64 {
        let number = self.inodes.last_key_value().map_or(0, |(last, _)| last + 1);
        self.inodes.insert(number, Arc::default());
        self.names.add(path, Node::File(number));
        number
    }
}

impl SimDisk {
    /// The process id that holds every simulated lock: nothing in a simulation depends on the process it runs in.
    pub const PID: u32 = 1;

    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many operations have changed something or tried to: creating, writing, allocating, cutting, syncing,
    /// renaming, removing.
    pub fn operations(&self) -> u64 {
        self.world().operations
    }

    /// Makes the `n`-th operation of [`SimDisk::operations`]' count fail with an error number; it changes nothing.
    pub fn fail_at(&self, n: u64, errno: i32) {
        self.world().fail_at = Some((n, errno));
    }

    /// Lets `n` operations happen and refuses all after them, as if the machine had stopped.
    pub fn crash_at(&self, n: u64) {
        self.world().crash_at = Some(n);
    }

    /// Refuses every change, as a file system mounted read-only does, or takes that back.
    pub fn set_read_only(&self, read_only: bool) {
        self.world().read_only = read_only;
    }

    /// Gives the disk so much free space from now on, which files take as they grow and give back as they go; a write that
    /// finds too little fails and writes nothing. At first there is no end to it.
    pub fn set_free_bytes(&self, bytes: u64) {
        self.world().free_bytes = Some(bytes);
    }

    /// Lets every sync of a file wait until this is taken back, as a disk that is busy does.
    pub fn hold_syncs(&self, hold: bool) {
        self.world().syncs_held = hold;
        self.syncs_go_on.notify_all();
    }

    /// What [`Disk::owner`] says from now on; at first everything is root's.
    pub fn set_owner(&self, owner: Owner) {
        self.world().owner = Some(owner);
    }

    /// What the disk holds after a crash now: all that was synced, and of the rest what the seed says. Seeds that
    /// differ in the last two bits differ in kind: nothing, everything, a prefix of what was not synced with its last
    /// write torn, or any set of 512-byte sectors; the next two bits say the same of names. No lock is held.
    #[must_use]
    pub fn crash(&self, seed: u64) -> Self {
        let world = self.world();
        let random = SeededRandom::new(seed);
        let names = world.names.survivor((seed >> 2) % 4, &random);
        let survivor = |inode: &Inode| Arc::new(inode.survivor(seed % 4, &random));
        let inodes = world.inodes.iter().map(|(&number, inode)| (number, survivor(inode))).collect();
        Self::of(names, inodes)
    }

    /// A disk of these files, at rest.
    fn of(names: Names, inodes: BTreeMap<u64, Arc<Inode>>) -> Self {
        let world = World { names, inodes, ..World::default() };
        Self { world: Arc::new(Mutex::new(world)), ..Self::default() }
    }

    /// Keeps the disk as it is before each operation from now on, for crashes at every one of them; returns what was kept since
    /// this was last called. What comes after the last operation is the disk itself.
    pub fn keep_moments(&self, keep: bool) -> Vec<Self> {
        std::mem::replace(&mut self.world().moments, keep.then(Vec::new)).unwrap_or_default()
    }

    /// A copy of the disk as a process sees it now, synced or not: what a killed process leaves to the next.
    #[must_use]
    pub fn image(&self) -> Self {
        self.crash(0b0101)
    }

    /// Every file and its length.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let mut world = self.world();
        let files: Vec<_> = world.names.files().map(|(path, number)| (path.to_owned(), number)).collect();
        files.into_iter().map(|(path, number)| (path, world.inode(number).live().len() as u64)).collect()
    }

    /// Changes one byte of a file behind everyone's back, durably. Nothing happens beyond its end.
    pub fn flip(&self, path: &Path, offset: usize, mask: u8) {
        let mut world = self.world();
        if let Some(Node::File(number)) = world.names.node(path) {
            world.inode(number).flip(offset, mask);
        }
    }

    /// Zeroes a range of a file behind everyone's back, durably.
    pub fn zero(&self, path: &Path, range: Range<usize>) {
        let mut world = self.world();
        if let Some(Node::File(number)) = world.names.node(path) {
            world.inode(number).zero(range);
        }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unlock(&self, path: &Path) {
        self.world().locked.remove(path);
    }
}

impl Disk for SimDisk {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        if path.ancestors().any(|dir| matches!(world.names.node(dir), Some(Node::File(_)))) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let mut missing: Vec<_> = path.ancestors().filter(|dir| world.names.node(dir).is_none()).collect();
        while let Some(dir) = missing.pop() {
            world.change()?;
            world.names.add(dir, Node::Dir);
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<LockGuard, LockError> {
        let mut world = self.world();
        let refuse = |source| LockError::Io { path: path.to_owned(), source };
        if world.locked.contains(path) {
            return Err(LockError::Held { path: path.to_owned(), pid: Some(Self::PID) });
        }
        world.names.must_have_parent(path).map_err(refuse)?;
        if world.names.node(path).is_none() {
            world.change().map_err(refuse)?;
            world.create(path);
        } else if world.read_only {
            return Err(refuse(io::Error::from_raw_os_error(EROFS)));
        }
        world.locked.insert(path.to_owned());
        Ok(LockGuard::new(SimLock { disk: self.clone(), path: path.to_owned() }))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut world = self.world();
        world.names.must_have_parent(path)?;
        if matches!(mode, OpenMode::Write | OpenMode::Direct) && world.read_only {
            return Err(io::Error::from_raw_os_error(EROFS));
        }
        let number = match (world.names.node(path), mode) {
            (Some(Node::Dir), _) => return Err(io::ErrorKind::IsADirectory.into()),
            (None, OpenMode::Read | OpenMode::Write | OpenMode::Direct) => {
                return Err(io::ErrorKind::NotFound.into());
            }
            (Some(Node::File(number)), OpenMode::Read | OpenMode::Write | OpenMode::Direct) => number,
            (Some(Node::File(number)), OpenMode::Create) => {
                world.change()?;
                let length = world.inode(number).live().len();
                world.take_space(length, 0)?;
                world.inode(number).apply(Change::Truncate(0));
                number
            }
            (None, OpenMode::Create) => {
                world.change()?;
                world.create(path)
            }
        };
        Ok(Arc::new(SimFile { disk: self.clone(), number, mode }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.names.must_have_parent(to)?;
        if world.names.node(from).is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        world.change()?;
        world.give_space_back(to);
        world.names.rename(from, to);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        match world.names.node(path) {
            Some(Node::File(_)) => world.change()?,
            Some(Node::Dir) => return Err(io::ErrorKind::IsADirectory.into()),
            None => return Err(io::ErrorKind::NotFound.into()),
        }
        world.give_space_back(path);
        world.names.remove(path);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        if !world.names.list(path)?.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        world.change()?;
        world.names.remove(path);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        self.world().names.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.names.list(dir)?;
        world.change()?;
        world.names.sync(dir);
        Ok(())
    }

    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(self.world().free_bytes.unwrap_or(1 << 40))
    }

    fn owner(&self, path: &Path) -> io::Result<Owner> {
        let world = self.world();
        world.names.node(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(world.owner.unwrap_or(Owner { of_file: 0, of_process: 0 }))
    }
}

struct SimLock {
    disk: SimDisk,
    path: PathBuf,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.unlock(&self.path);
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    number: u64,
    mode: OpenMode,
}

impl SimFile {
    /// Changes the file, whose length may become another.
    fn change(&self, length: impl FnOnce(usize) -> usize, change: impl FnOnce(&mut Inode)) -> io::Result<()> {
        if self.mode == OpenMode::Read {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut world = self.disk.world();
        world.change()?;
        let before = world.inode(self.number).live().len();
        world.take_space(before, length(before))?;
        change(world.inode(self.number));
        Ok(())
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut world = self.disk.world();
        let live = world.inode(self.number).live();
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(live.len());
        let bytes = live.get(from..).unwrap_or_default();
        let count = bytes.len().min(buffer.len());
        buffer.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Ok(count)
    }

    fn write_at(&self, parts: &[&[u8]], offset: u64) -> io::Result<()> {
        let aligned = parts.iter().all(|part| {
            part.as_ptr().addr().is_multiple_of(PAGE_BYTES) && part.len().is_multiple_of(PAGE_BYTES)
        });
        if self.mode == OpenMode::Direct && !(aligned && offset.is_multiple_of(PAGE_BYTES as u64)) {
            return Err(io::Error::from_raw_os_error(EINVAL));
        }
        let bytes = parts.concat();
        let end = usize::try_from(offset).unwrap_or(usize::MAX).saturating_add(bytes.len());
        self.change(|length| length.max(end), |inode| inode.apply(Change::Write { offset, bytes }))
    }

    fn sync_data(&self) -> io::Result<()> {
        let held = self.disk.syncs_go_on.wait_while(self.disk.world(), |world| world.syncs_held);
        drop(held);
        self.change(|length| length, Inode::sync)
    }

    fn preallocate(&self, bytes: u64) -> io::Result<()> {
        let end = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.change(|length| length.max(end), |inode| inode.apply(Change::Extend(bytes)))
    }

    fn punch_hole(&self, range: Range<u64>) -> io::Result<()> {
        let bytes = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let hole = Change::Write { offset: range.start, bytes: vec![0; bytes] };
        self.change(|length| length, |inode| inode.apply(hole))
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        let end = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.change(|_| end, |inode| inode.apply(Change::Truncate(bytes)))
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.world().inode(self.number).live().len() as u64)
    }
}
