// SPDX-License-Identifier: Apache-2.0
//! Bounds on what one rendering may build. Each rendering has its own thread, so the counter is thread-local.

use minijinja::{Error, ErrorKind, Value};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// One text: far above any prompt that a model can read.
pub const MAX_TEXT: usize = 64 << 20;
/// All texts and lists that one rendering makes, copies included.
const MAX_TOTAL: usize = 2 << 30;
/// What the template writes, with what it captures and writes again.
const MAX_OUTPUT: usize = 128 << 20;
/// What a text, a list or an object costs beside its content.
pub const OVERHEAD: usize = 96;
/// A pair in a dict, whose table may be half empty.
pub const PAIR_SIZE: usize = 128;
/// Bytes between two looks at the clock.
const CLOCK_STEP: usize = 4096;
/// Items of one list.
pub const MAX_ITEMS: usize = 1 << 20;

thread_local! {
    static USED: Cell<usize> = const { Cell::new(0) };
    static OUTPUT: Cell<usize> = const { Cell::new(0) };
    static END: Cell<Option<Instant>> = const { Cell::new(None) };
}

pub enum Exceeded {
    Size,
    Time,
}

impl From<Exceeded> for Error {
    fn from(exceeded: Exceeded) -> Error {
        match exceeded {
            Exceeded::Size => Error::new(ErrorKind::InvalidOperation, "the text or list grows beyond all bounds"),
            Exceeded::Time => ErrorKind::OutOfFuel.into(),
        }
    }
}

/// Gives this thread's rendering so much time.
pub fn start_clock(time: Duration) {
    END.set(Instant::now().checked_add(time));
}

/// Fails when time is up. Whatever may take long asks first.
pub fn check_time() -> Result<(), Exceeded> {
    if END.get().is_some_and(|end| Instant::now() > end) {
        Err(Exceeded::Time)
    } else {
        Ok(())
    }
}

/// Claims `bytes` of the budget for a text of `size` bytes.
pub fn claim(size: usize) -> Result<(), Exceeded> {
    let used = USED.get().saturating_add(size);
    if used / CLOCK_STEP != USED.get() / CLOCK_STEP {
        check_time()?;
    }
    if size > MAX_TEXT || used > MAX_TOTAL {
        return Err(Exceeded::Size);
    }
    USED.set(used);
    Ok(())
}

/// Claims room for a text in the output or in what is captured of it.
pub fn claim_output(size: usize) -> Result<(), Exceeded> {
    OUTPUT.set(OUTPUT.get().saturating_add(size));
    if OUTPUT.get() > MAX_OUTPUT {
        Err(Exceeded::Size)
    } else {
        Ok(())
    }
}

/// Pays for a text that is at most a few times as long as one that was paid for.
pub fn paid(text: String) -> Result<String, Exceeded> {
    claim(text.len() + OVERHEAD)?;
    Ok(text)
}

/// A text under construction that pays for each byte.
pub struct Text(String);

impl Default for Text {
    fn default() -> Self {
        // What it costs beside its content is not worth an error of its own.
        let _ = claim(OVERHEAD);
        Text(String::new())
    }
}

impl Text {
    pub fn push(&mut self, text: &str) -> Result<(), Exceeded> {
        if self.0.len() + text.len() > MAX_TEXT {
            return Err(Exceeded::Size);
        }
        claim(text.len())?;
        self.0.push_str(text);
        Ok(())
    }

    pub fn push_repeated(&mut self, text: &str, times: usize) -> Result<(), Exceeded> {
        if text.len().checked_mul(times).is_none_or(|size| size > MAX_TEXT) {
            return Err(Exceeded::Size);
        }
        (0..times).try_for_each(|_| self.push(text))
    }

    pub fn from_chars(chars: impl Iterator<Item = char>) -> Result<String, Exceeded> {
        let mut out = Text::default();
        for c in chars {
            out.push(c.encode_utf8(&mut [0; 4]))?;
        }
        Ok(out.0)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

/// A list under construction that pays for each item.
pub struct List(Vec<Value>);

impl Default for List {
    fn default() -> Self {
        let _ = claim(OVERHEAD);
        List(Vec::new())
    }
}

impl List {
    pub fn push(&mut self, item: Value) -> Result<(), Exceeded> {
        if self.0.len() >= MAX_ITEMS {
            return Err(Exceeded::Size);
        }
        claim(size_of::<Value>())?;
        self.0.push(item);
        Ok(())
    }

    /// A piece of a text as an item: the copy is paid for, too.
    pub fn push_text(&mut self, text: &str) -> Result<(), Exceeded> {
        claim(text.len() + OVERHEAD)?;
        self.push(Value::from(text))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn into_vec(mut self) -> Vec<Value> {
        // Room for items to come was not paid for.
        self.0.shrink_to_fit();
        self.0
    }
}

impl From<List> for Value {
    fn from(list: List) -> Value {
        Value::from(list.into_vec())
    }
}
