// SPDX-License-Identifier: Apache-2.0
//! Bounds on what one rendering may build. Each rendering has its own thread, so the counter is thread-local.

use minijinja::{Error, ErrorKind};
use std::cell::Cell;

/// One text: far above any prompt that a model can read.
pub const MAX_TEXT: usize = 64 << 20;
/// All texts that one rendering makes, copies included.
const MAX_TOTAL: usize = 2 << 30;
/// Items of one list.
pub const MAX_ITEMS: usize = 1 << 20;

thread_local! {
    static USED: Cell<usize> = const { Cell::new(0) };
}

pub struct TooLarge;

impl From<TooLarge> for Error {
    fn from(_: TooLarge) -> Error {
        Error::new(ErrorKind::InvalidOperation, "the text or list grows beyond all bounds")
    }
}

/// Claims `bytes` of the budget for a text of `size` bytes.
pub fn claim(size: usize) -> Result<(), TooLarge> {
    let used = USED.get().saturating_add(size);
    if size > MAX_TEXT || used > MAX_TOTAL {
        return Err(TooLarge);
    }
    USED.set(used);
    Ok(())
}

/// A text under construction that pays for each byte.
#[derive(Default)]
pub struct Text(String);

impl Text {
    pub fn push(&mut self, text: &str) -> Result<(), TooLarge> {
        if self.0.len() + text.len() > MAX_TEXT {
            return Err(TooLarge);
        }
        claim(text.len())?;
        self.0.push_str(text);
        Ok(())
    }

    pub fn push_repeated(&mut self, text: &str, times: usize) -> Result<(), TooLarge> {
        if text.len().checked_mul(times).is_none_or(|size| size > MAX_TEXT) {
            return Err(TooLarge);
        }
        (0..times).try_for_each(|_| self.push(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }
}
