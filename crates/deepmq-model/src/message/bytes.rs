//! Reading and writing the primitive fields of the AMQP 0-9-1 data representation (specification, 4.2.5).
//!
//! Owns the byte order and the checks of lengths against what is there. Must not know what the fields mean.

/// Bytes that do not follow the encoding they claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Malformed {
    /// What is wrong, for a person to read.
    pub what: &'static str,
}

impl Malformed {
    /// An error that says `what`.
    pub const fn new(what: &'static str) -> Self {
        Self { what }
    }
}

const TRUNCATED: Malformed = Malformed::new("a field is longer than the data that holds it");

/// A cursor over borrowed bytes. It copies nothing and never reads past the end.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read yet.
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Refuses bytes that are left over.
    ///
    /// # Errors
    /// [`Malformed`] unless everything has been read.
    #[inline]
    pub const fn finish(&self) -> Result<(), Malformed> {
        if self.is_empty() { Ok(()) } else { Err(Malformed::new("bytes are left over after the last field")) }
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// [`Malformed`] if there are fewer.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes as an array.
    ///
    /// # Errors
    /// [`Malformed`] if there are fewer.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// An octet.
    ///
    /// # Errors
    /// [`Malformed`] at the end of the bytes.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    /// A short integer.
    ///
    /// # Errors
    /// [`Malformed`] if it is cut off.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    /// A long integer.
    ///
    /// # Errors
    /// [`Malformed`] if it is cut off.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// A long long integer.
    ///
    /// # Errors
    /// [`Malformed`] if it is cut off.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// Up to eight bits packed into one octet, the first in the lowest place.
    ///
    /// # Errors
    /// [`Malformed`] at the end of the bytes.
    #[inline]
    pub fn bits<const N: usize>(&mut self) -> Result<[bool; N], Malformed> {
        const { assert!(N <= 8, "one octet of bits") };
        let octet = self.u8()?;
        Ok(std::array::from_fn(|place| (octet >> place) & 1 == 1))
    }

    /// The bytes of a short string: one octet of length before them.
    ///
    /// # Errors
    /// [`Malformed`] if it is cut off.
    #[inline]
    pub fn short(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.u8()?;
        self.take(len.into())
    }

    /// A short string that must be UTF-8, as names must.
    ///
    /// # Errors
    /// [`Malformed`] if it is cut off or no UTF-8.
    #[inline]
    pub fn short_text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.short()?).map_err(|_| Malformed::new("a short string is not UTF-8"))
    }

    /// The bytes of a long string: four octets of length before them.
    ///
    /// # Errors
    /// [`Malformed`] if it is cut off.
    #[inline]
    pub fn long(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.u32()?;
        self.take(usize::try_from(len).map_err(|_| TRUNCATED)?)
    }
}

/// The longest short string, in bytes.
pub const SHORT_BYTES_MAX: usize = 255;

/// Appends primitive fields to a buffer.
#[derive(Debug)]
pub struct Writer<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> Writer<'o> {
    /// A writer at the end of `out`.
    pub const fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// An octet.
    pub fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    /// A short integer.
    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_be_bytes());
    }

    /// A long integer.
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_be_bytes());
    }

    /// A long long integer.
    pub fn u64(&mut self, value: u64) {
        self.raw(&value.to_be_bytes());
    }

    /// Up to eight bits in one octet, the first in the lowest place.
    pub fn bits<const N: usize>(&mut self, bits: [bool; N]) {
        const { assert!(N <= 8, "one octet of bits") };
        self.u8(bits.iter().rev().fold(0, |octet, &bit| (octet << 1) | u8::from(bit)));
    }

    /// A short string. What exceeds [`SHORT_BYTES_MAX`] is cut off, so that the encoding stays well formed.
    pub fn short(&mut self, bytes: &[u8]) {
        let kept = bytes.get(..SHORT_BYTES_MAX).unwrap_or(bytes);
        self.u8(u8::try_from(kept.len()).expect("cut to 255 bytes"));
        self.raw(kept);
    }

    /// A short string of text, cut like [`Self::short`] but between two characters.
    pub fn short_text(&mut self, text: &str) {
        self.short(text.get(..text.floor_char_boundary(SHORT_BYTES_MAX)).unwrap_or(text).as_bytes());
    }

    /// A long string.
    pub fn long(&mut self, bytes: &[u8]) {
        self.sized(|writer| writer.raw(bytes));
    }

    /// Whatever `write` appends, with four octets of its length before it.
    pub fn sized(&mut self, write: impl FnOnce(&mut Writer<'_>)) {
        let start = self.out.len();
        self.u32(0);
        write(&mut Writer::new(self.out));
        patch_u32(self.out, start);
    }
}

/// Sets the four octets at `start` to the number of bytes after them.
fn patch_u32(out: &mut [u8], start: usize) {
    let (len, bytes) = out
        .get_mut(start..)
        .and_then(<[u8]>::split_first_chunk_mut::<4>)
        .expect("the length was written there before");
    *len = u32::try_from(bytes.len()).expect("what is encoded fits in memory several times").to_be_bytes();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_fill_an_octet_from_the_lowest_place() {
        let mut out = Vec::new();
        Writer::new(&mut out).bits([true, false, true]);
        assert_eq!(out, [0b101]);
        assert_eq!(Reader::new(&out).bits::<3>(), Ok([true, false, true]));
    }

    #[test]
    fn a_short_string_is_cut_between_characters_at_its_limit() {
        for (text, kept) in [("a".repeat(255), 255), ("a".repeat(256), 255), ("ä".repeat(128), 254)] {
            let mut out = Vec::new();
            Writer::new(&mut out).short_text(&text);
            assert_eq!(Reader::new(&out).short_text(), Ok(&text[..kept]));
        }
    }

    #[test]
    fn a_length_beyond_the_data_is_malformed() {
        assert!(Reader::new(&[3, b'a', b'b']).short().is_err());
        assert!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0]).long().is_err());
        assert!(Reader::new(&[0, 0, 0]).u32().is_err());
        assert!(Reader::new(&[1, 0xff]).short_text().is_err());
    }
}
