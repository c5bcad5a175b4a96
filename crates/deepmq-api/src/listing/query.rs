//! The query parameters of lists and single objects.
//!
//! Owns their names, bounds and defaults. Must not know what is listed.

use super::page::{Paging, checked};
use super::{Columns, wrong};
use crate::error::ApiResult;
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use utoipa::IntoParams;

/// The longest pattern, in bytes, and the largest program it may become.
const PATTERN_BYTES_MAX: usize = 1024;
const PROGRAM_BYTES_MAX: usize = 1 << 20;

/// What a list may be asked for.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// The page, from 1. Without it the whole list comes as an array
    page: Option<usize>,
    /// Items of a page, 1 to 500; 100 if not given
    page_size: Option<usize>,
    /// Only items with this in their name, in upper or lower case
    name: Option<String>,
    /// `name` is a regular expression
    use_regex: Option<bool>,
    /// Sorted by this field; a dot leads into an object
    sort: Option<String>,
    /// In descending order
    sort_reverse: Option<bool>,
    /// Only these fields, divided by commas; a dot leads into an object
    columns: Option<String>,
}

/// What a single object may be asked for.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub(crate) struct ColumnsQuery {
    /// Only these fields, divided by commas; a dot leads into an object
    columns: Option<String>,
}

impl ColumnsQuery {
    pub(super) fn columns(&self) -> Columns {
        Columns::read(self.columns.as_deref())
    }
}

impl ListQuery {
    pub(super) fn columns(&self) -> Columns {
        Columns::read(self.columns.as_deref())
    }

    pub(super) fn sort_field(&self) -> Option<&str> {
        // Every list comes in the order of names.
        self.sort.as_deref().filter(|field| !matches!(*field, "" | "name"))
    }

    pub(super) fn is_reversed(&self) -> bool {
        self.sort_reverse.unwrap_or_default()
    }

    /// What names must match.
    pub(super) fn filter(&self) -> ApiResult<Option<Regex>> {
        let Some(name) = self.name.as_deref().filter(|name| !name.is_empty()) else { return Ok(None) };
        if name.len() > PATTERN_BYTES_MAX {
            return Err(wrong("name", "it is longer than 1024 bytes"));
        }
        let pattern = if self.use_regex.unwrap_or_default() { name.to_owned() } else { regex::escape(name) };
        let built = RegexBuilder::new(&pattern).case_insensitive(true).size_limit(PROGRAM_BYTES_MAX).build();
        built.map(Some).map_err(|error| wrong("name", &error.to_string()))
    }

    /// Which part of so many items is wanted; none: all.
    pub(super) fn paging(&self, items: usize) -> ApiResult<Option<Paging>> {
        if self.page.is_none() && self.page_size.is_none() {
            return Ok(None);
        }
        checked(self.page.unwrap_or(1), self.page_size, items).map(Some)
    }
}
