//! The snapshot of the topology.
//!
//! Owns the line before the caller's bytes: checksum, length, and the last change they tell. It is JSON, so the file is
//! a sequence of JSON values if the bytes are. Must not know what they say.

use std::io;

use crate::data_dir::DataDir;
use crate::failure::StorageFailure;
use crate::record::Lsn;
use crate::seam::OpenMode;

/// A snapshot as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Snapshot {
    Missing,
    Damaged,
    Known { covers: Lsn, bytes: Vec<u8> },
}

fn head(covers: Lsn, bytes: &[u8]) -> String {
    let said = format!("{:020} {:020}", covers.0, bytes.len());
    let crc = crc32c::crc32c_append(crc32c::crc32c(said.as_bytes()), bytes);
    format!("{{\"deepmq_snapshot\":1,\"covers_and_bytes\":\"{said}\",\"crc32c\":\"{crc:08x}\"}}\n")
}

pub(crate) fn write(dir: &DataDir, covers: Lsn, bytes: &[u8]) -> Result<(), StorageFailure> {
    if dir.disk.list(&dir.layout.topology_dir()).is_err() {
        dir.create_dir(&dir.layout.topology_dir())?;
    }
    dir.replace(&dir.layout.snapshot(), &[head(covers, bytes).as_bytes(), bytes])
}

pub(crate) fn read(dir: &DataDir) -> io::Result<Snapshot> {
    let file = match dir.disk.open(&dir.layout.snapshot(), OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Snapshot::Missing),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; usize::try_from(file.size()?).unwrap_or(usize::MAX)];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(decode(&bytes).unwrap_or(Snapshot::Damaged))
}

fn decode(bytes: &[u8]) -> Option<Snapshot> {
    let line_end = bytes.iter().position(|byte| *byte == b'\n')? + 1;
    let (line, bytes) = bytes.split_at_checked(line_end)?;
    let line = str::from_utf8(line).ok()?;
    let covers = Lsn(line.split('"').nth(5)?.split(' ').next()?.parse().ok()?);
    (head(covers, bytes) == line).then(|| Snapshot::Known { covers, bytes: bytes.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_of_a_snapshot_is_noticed() {
        let content = b"{\"queues\":[]}";
        let bytes = [head(Lsn(12), content).as_bytes(), content].concat();
        assert_eq!(decode(&bytes), Some(Snapshot::Known { covers: Lsn(12), bytes: content.to_vec() }));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(decode(&changed), None, "byte {at}");
            assert_eq!(decode(&bytes[..at]), None, "cut at {at}");
        }
    }
}
