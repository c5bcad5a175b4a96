//! The header every record starts with, and its checksum.
//!
//! Owns the 40 bytes and who fills in which. Must not know payloads.

use super::Draft;
use crate::bytes::{Input, length, size};

/// Bytes before the payload.
pub(crate) const HEADER_BYTES: usize = 40;
/// A record, header included, is no longer than this. Far more than a batch takes; a bound for who reads.
pub(crate) const RECORD_BYTES_MAX: usize = 1 << 30;
/// Version of records; a later one is not read.
const VERSION: u8 = 1;
const ALIGNMENT: usize = 8;
/// The checksum is over the payload and the header's bytes from here on.
const SUMMED_FROM: usize = 4;

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The data directory's own random number: bytes of another directory, or made up by a peer, are no record here.
    pub(crate) tag: u64,
    /// The number of the file it was written to: what a recycled file still holds of its former life is no record.
    pub(crate) file: u64,
    pub(crate) lsn: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    pub(crate) stamp: Stamp,
    pub(crate) kind: u8,
    version: u8,
    crc: u32,
    /// Bytes of the payload.
    length: u32,
}

impl Header {
    /// Reads the fields without a check.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        let (crc, length) = (input.u32()?, input.u32()?);
        let stamp = Stamp { tag: input.u64()?, file: input.u64()?, lsn: input.u64()? };
        let [kind, version, ..] = input.array::<8>()?;
        Some(Self { stamp, kind, version, crc, length })
    }

    fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.crc.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.stamp.tag.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.stamp.file.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.stamp.lsn.to_le_bytes());
        bytes[32] = self.kind;
        bytes[33] = self.version;
        bytes
    }

    /// Bytes of the whole record, if the header says something possible.
    pub(crate) fn record_bytes(&self) -> Option<usize> {
        let bytes = size(self.length).checked_add(HEADER_BYTES)?;
        (bytes <= RECORD_BYTES_MAX && bytes.is_multiple_of(ALIGNMENT) && self.version == VERSION)
            .then_some(bytes)
    }
}

/// Begins a draft: room for the header. `finish` completes it.
pub(super) fn begin(draft: &mut Vec<u8>) {
    draft.clear();
    draft.resize(HEADER_BYTES, 0);
}

/// Completes a draft: padding, and a header whose checksum covers the payload alone until it is stamped.
pub(super) fn finish(draft: &mut Vec<u8>, kind: u8) -> Draft<'_> {
    draft.resize(draft.len().next_multiple_of(ALIGNMENT), 0);
    let payload = draft.get(HEADER_BYTES..).unwrap_or_default();
    let header = Header {
        stamp: Stamp { tag: 0, file: 0, lsn: 0 },
        kind,
        version: VERSION,
        crc: crc32c::crc32c(payload),
        // One that is too long is refused by the journal, by its real length.
        length: length(payload.len().min(RECORD_BYTES_MAX)),
    };
    write(draft, &header);
    Draft { bytes: draft }
}

/// Stamps a copy of a draft, which thereby becomes a record.
pub(crate) fn stamp(record: &mut [u8], stamp: Stamp) {
    let Some(mut header) = Header::parse(record) else { return };
    header.stamp = stamp;
    header.crc = sum(header.crc, &header.bytes());
    write(record, &header);
}

fn write(record: &mut [u8], header: &Header) {
    if let Some(start) = record.first_chunk_mut() {
        *start = header.bytes();
    }
}

fn sum(payload_crc: u32, header: &[u8; HEADER_BYTES]) -> u32 {
    crc32c::crc32c_append(payload_crc, &header[SUMMED_FROM..])
}

/// Whether the header's checksum is that of the bytes.
pub(crate) fn verify(record: &[u8]) -> bool {
    let (Some(start), Some(payload)) = (record.first_chunk(), record.get(HEADER_BYTES..)) else {
        return false;
    };
    Header::parse(start).is_some_and(|header| header.crc == sum(crc32c::crc32c(payload), start))
}
