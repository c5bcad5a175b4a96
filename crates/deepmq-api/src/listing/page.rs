//! Pages: which items are on one, and what is said of all.
//!
//! Owns RabbitMQ's envelope. Must not know the items.

use super::wrong;
use crate::error::{ApiError, ApiResult};
use axum::http::StatusCode;
use serde::Serialize;
use std::ops::Range;
use utoipa::ToSchema;

const PAGE_SIZE: usize = 100;
const PAGE_SIZE_MAX: usize = 500;

/// A list: an array, or a page of it if `page` was given
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes what is written piece by piece")]
pub(crate) enum Listing<T> {
    All(Vec<T>),
    Page(Page<T>),
}

/// A page of a list
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are RabbitMQ's")]
pub(crate) struct Page<T> {
    /// Items there are
    total_count: usize,
    /// Items on this page
    item_count: usize,
    /// Items that match the filter
    filtered_count: usize,
    /// This page, from 1
    page: usize,
    /// Items of a page
    page_size: usize,
    /// Pages
    page_count: usize,
    items: Vec<T>,
}

/// A page of so many items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Paging {
    number: usize,
    size: usize,
    count: usize,
}

/// The page asked for, if there is one.
pub(super) fn checked(page: usize, page_size: Option<usize>, items: usize) -> ApiResult<Paging> {
    let page_size = page_size.unwrap_or(PAGE_SIZE);
    if page == 0 {
        return Err(wrong("page", "pages are counted from 1"));
    }
    if !(1..=PAGE_SIZE_MAX).contains(&page_size) {
        return Err(wrong("page_size", "it must be between 1 and 500"));
    }
    let page_count = items.div_ceil(page_size).max(1);
    if page > page_count {
        let reason = format!("Page out of range, page: {page} page size: {page_size}, len: {items}");
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "page_out_of_range", reason));
    }
    Ok(Paging { number: page, size: page_size, count: page_count })
}

impl Paging {
    /// The places of its items among `items`.
    pub(super) fn range(&self, items: usize) -> Range<usize> {
        let start = (self.number - 1) * self.size;
        start..(start + self.size).min(items)
    }

    /// The envelope up to the first item.
    pub(super) fn head(&self, total: usize, filtered: usize, items: usize) -> String {
        let Self { number: page, size: page_size, count: page_count } = self;
        format!(
            "{{\"total_count\":{total},\"item_count\":{items},\"filtered_count\":{filtered},\"page\":{page},\
             \"page_size\":{page_size},\"page_count\":{page_count},\"items\":["
        )
    }
}
