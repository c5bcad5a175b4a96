//! Little-endian numbers in byte strings.
//!
//! Owns the cursor all decoders read with: it never reads beyond its input. Must not know any format.

/// What is still to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*array)
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A count of things that take at least `each` bytes: one that can not fit in the rest is refused before anyone
    /// allocates for it.
    pub(crate) fn count(&mut self, each: usize) -> Option<usize> {
        let count = size(self.u32()?);
        (count.checked_mul(each)? <= self.rest.len()).then_some(count)
    }
}

/// A length as memory counts.
pub(crate) fn size(len: u32) -> usize {
    usize::try_from(len).expect("memory is addressed with 32 bits or more")
}

/// A length as formats count. Callers bound it far below 4 GiB.
pub(crate) fn length(len: usize) -> u32 {
    u32::try_from(len).expect("bounded below 4 GiB by the caller")
}
