//! The file that says what a data directory is.
//!
//! Owns its two equal lines: format version, the directory's own random number, checksum. One that is intact is enough.
//! Must not know the rest of the directory.

use std::io;

use crate::layout::Layout;
use crate::seam::{Disk, OpenMode};

/// The version of the directory as a whole; a later one is not opened.
pub(crate) const VERSION: u32 = 1;
const NAME: &str = "deepmq-data";
const BYTES_MAX: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// There is no such file.
    Missing,
    /// A version that is not ours.
    Newer(u32),
    /// Neither line is intact.
    Damaged,
    /// The directory's number; and whether both lines are intact.
    Known { tag: u64, whole: bool },
}

pub(crate) fn encode(tag: u64) -> Vec<u8> {
    let line = format!("{NAME} {VERSION} {tag:016x}");
    let line = format!("{line} {:08x}\n", crc32c::crc32c(line.as_bytes()));
    line.repeat(2).into_bytes()
}

pub(crate) fn read(disk: &dyn Disk, layout: &Layout) -> io::Result<Format> {
    let file = match disk.open(&layout.format(), OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Format::Missing),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; BYTES_MAX];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(decode(&bytes))
}

fn decode(bytes: &[u8]) -> Format {
    // The lines are equally long: that is how they are told apart, so that each byte is in one of them.
    let (one, other) = bytes.split_at(bytes.len() / 2);
    if let Some(tag) = decode_line(one).or_else(|| decode_line(other)) {
        return Format::Known { tag, whole: bytes == encode(tag) };
    }
    let text = String::from_utf8_lossy(bytes);
    let version =
        text.strip_prefix(NAME).and_then(|rest| rest.split_whitespace().next()?.parse::<u32>().ok());
    version.filter(|version| *version > VERSION).map_or(Format::Damaged, Format::Newer)
}

fn decode_line(line: &[u8]) -> Option<u64> {
    let line = str::from_utf8(line.split_last()?.1).ok()?;
    let (said, crc) = line.rsplit_once(' ')?;
    let sound = u32::from_str_radix(crc, 16).is_ok_and(|crc| crc == crc32c::crc32c(said.as_bytes()));
    let tag = said.strip_prefix(NAME)?.strip_prefix(' ')?.strip_prefix(&format!("{VERSION} "))?;
    if sound { u64::from_str_radix(tag, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_intact_line_is_enough_and_a_newer_version_is_told() {
        let bytes = encode(0xfeed);
        assert_eq!(decode(&bytes), Format::Known { tag: 0xfeed, whole: true });
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(decode(&changed), Format::Known { tag: 0xfeed, whole: false }, "byte {at}");
        }
        assert_eq!(decode(b"deepmq-data 2 anything\n"), Format::Newer(2));
        assert_eq!(decode(b"deepmq-data 1 0 0\n"), Format::Damaged);
        assert_eq!(decode(b""), Format::Damaged);
    }
}
