//! Memory that a disk takes as it is: whole pages, at addresses that are multiples of theirs.
//!
//! Owns the alignment. Must not know what is in it.

use std::ops::Range;

use crate::seam::PAGE_BYTES;

/// Bytes that grow at their end. What was never written is zero or from a use before.
#[derive(Debug, Default)]
pub(super) struct Pages {
    memory: Vec<u8>,
    /// Where in the memory the first page starts.
    base: usize,
    length: usize,
}

/// How far into its page an offset is.
pub(super) fn into_page(offset: u64) -> usize {
    usize::try_from(offset % PAGE_BYTES as u64).unwrap_or(0)
}

impl Pages {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Adds bytes at the end.
    pub(super) fn extend_from_slice(&mut self, bytes: &[u8]) {
        let start = self.length;
        self.grow_to(start + bytes.len());
        self.get_mut(start..start + bytes.len()).copy_from_slice(bytes);
    }

    /// Makes room for so many bytes in all, whatever is in them.
    pub(super) fn grow_to(&mut self, length: usize) {
        self.length = self.length.max(length);
        let needed = self.length.next_multiple_of(PAGE_BYTES);
        if self.capacity() < needed {
            self.move_to(needed.max(2 * self.capacity()));
        }
    }

    /// Begins a new page at the end.
    pub(super) fn begin_page(&mut self) {
        self.grow_to(self.length.next_multiple_of(PAGE_BYTES));
    }

    pub(super) fn get(&self, range: Range<usize>) -> &[u8] {
        self.memory.get(self.base + range.start..self.base + range.end).unwrap_or_default()
    }

    pub(super) fn get_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        self.memory.get_mut(self.base + range.start..self.base + range.end).unwrap_or_default()
    }

    /// The pages a range touches, with zeros behind it.
    pub(super) fn whole(&mut self, range: Range<usize>) -> &[u8] {
        let start = range.start - range.start % PAGE_BYTES;
        let end = range.end.next_multiple_of(PAGE_BYTES);
        self.get_mut(range.end..end).fill(0);
        self.get(start..end)
    }

    /// Forgets the bytes; keeps memory for up to `keep` of them.
    pub(super) fn clear(&mut self, keep: usize) {
        self.length = 0;
        if self.capacity() > keep {
            self.move_to(keep);
        }
    }

    fn capacity(&self) -> usize {
        self.memory.len().saturating_sub(PAGE_BYTES)
    }

    fn move_to(&mut self, capacity: usize) {
        let memory = vec![0; capacity + PAGE_BYTES];
        let base = memory.as_ptr().align_offset(PAGE_BYTES);
        let before = std::mem::replace(self, Self { memory, base, length: self.length });
        let kept = before.length.min(before.capacity()).min(capacity);
        self.get_mut(0..kept).copy_from_slice(before.get(0..kept));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_aligned(pages: &mut Pages, range: Range<usize>) -> bool {
        let whole = pages.whole(range);
        whole.as_ptr().addr().is_multiple_of(PAGE_BYTES) && whole.len().is_multiple_of(PAGE_BYTES)
    }

    #[test]
    fn bytes_are_in_whole_aligned_pages_however_often_they_grow() {
        let mut pages = Pages::default();
        let mut expected = Vec::new();
        for round in 0..100 {
            let bytes = vec![round; 977];
            pages.extend_from_slice(&bytes);
            expected.extend_from_slice(&bytes);
            let end = pages.len();
            assert!(is_aligned(&mut pages, end - 977..end));
        }
        assert_eq!(pages.get(0..pages.len()), expected);
    }

    #[test]
    fn what_follows_the_last_byte_in_its_page_is_zero_also_in_memory_used_before() {
        let mut pages = Pages::default();
        pages.extend_from_slice(&[7; 3 * PAGE_BYTES]);
        pages.clear(PAGE_BYTES);
        pages.extend_from_slice(&[8; 10]);
        let whole = pages.whole(2..10);
        assert_eq!(whole.len(), PAGE_BYTES);
        assert!(whole.iter().skip(10).all(|&byte| byte == 0));
        assert!(whole.iter().take(10).all(|&byte| byte == 8));
    }

    #[test]
    fn a_new_page_begins_after_the_last() {
        let mut pages = Pages::default();
        pages.begin_page();
        assert_eq!(pages.len(), 0);
        pages.extend_from_slice(b"x");
        pages.begin_page();
        assert_eq!(pages.len(), PAGE_BYTES);
        pages.begin_page();
        assert_eq!(pages.len(), PAGE_BYTES);
    }
}
