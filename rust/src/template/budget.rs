// SPDX-License-Identifier: Apache-2.0
//! Limits on time, memory and depth of one rendering, but not on the number of its steps: long conversations take
//! millions. Each rendering has its own thread, so the counters are thread-local.

use crate::memory::{held, time_is_up};
use minijinja::{Error, ErrorKind, Value};
use std::cell::Cell;

/// Maximum bytes of one text: far above any prompt that a model can read.
pub const MAX_TEXT: usize = 64 << 20;
/// Maximum bytes that a rendering may hold at one time, beside its variables.
const MAX_HELD: usize = 128 << 20;
/// Bytes that a text, a list or an object takes beside its content.
pub const OVERHEAD: usize = 96;
/// Bytes of a pair in a dict, whose table may be half empty.
pub const PAIR_SIZE: usize = 128;
/// Work between two looks at the clock, which ask the system: bytes that are read or written, or what takes as long.
const CLOCK_WORK: usize = 1 << 16;
/// Work of a statement or expression beside what it claims.
const STEP_WORK: usize = 64;
/// Work of an item of a list that is looked at.
const ITEM_WORK: usize = 8;
/// Bytes that are repeated at once.
const BLOCK: usize = 4096;
/// Maximum items of one list.
pub const MAX_ITEMS: usize = 1 << 20;
/// Maximum depth of nested statements and expressions, including macros that call each other.
const MAX_DEPTH: u32 = 5_000;
/// Maximum depth of macros and loops that call each other. Python's recursion ends there.
const MAX_CALLS: u32 = 198;

thread_local! {
    static WORKED: Cell<usize> = const { Cell::new(0) };
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static CALLS: Cell<u32> = const { Cell::new(0) };
    static HELD_BEFORE: Cell<isize> = const { Cell::new(0) };
}

pub enum Exceeded {
    Size,
    Time,
    Depth,
}

impl From<Exceeded> for Error {
    fn from(exceeded: Exceeded) -> Error {
        let text = match exceeded {
            Exceeded::Size => "the text or list grows beyond all bounds",
            Exceeded::Time => "the template runs for too long",
            Exceeded::Depth => "the template calls itself too often or is nested too deeply",
        };
        Error::new(ErrorKind::InvalidOperation, text)
    }
}

/// Starts counting this thread's memory.
pub fn start() {
    HELD_BEFORE.set(held());
}

/// Fails when the time of the thread's bounds is up.
pub fn check_time() -> Result<(), Exceeded> {
    if time_is_up() {
        Err(Exceeded::Time)
    } else {
        Ok(())
    }
}

/// Counts work that claims nothing, and now and then checks the time.
pub fn work(size: usize) -> Result<(), Exceeded> {
    let before = WORKED.get();
    let worked = before.wrapping_add(size);
    WORKED.set(worked);
    if worked / CLOCK_WORK == before / CLOCK_WORK {
        return Ok(());
    }
    check_time()
}

/// The work that this thread has counted.
#[cfg(test)]
pub fn worked() -> usize {
    WORKED.get()
}

/// Counts the work of an operation that may read the whole of a text or list.
pub fn work_on(value: &Value) -> Result<(), Exceeded> {
    let extent = value.as_str().map_or_else(|| ITEM_WORK * value.len().unwrap_or(0), str::len);
    work(STEP_WORK + extent)
}

/// One level of a depth counter; dropping it decrements the counter.
pub struct Level(&'static std::thread::LocalKey<Cell<u32>>);

impl Drop for Level {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

fn enter(count: &'static std::thread::LocalKey<Cell<u32>>, most: u32) -> Result<Level, Exceeded> {
    if count.get() >= most {
        return Err(Exceeded::Depth);
    }
    count.set(count.get() + 1);
    Ok(Level(count))
}

/// Enters a statement or expression, while the level lives.
pub fn step() -> Result<Level, Exceeded> {
    work(STEP_WORK)?;
    enter(&DEPTH, MAX_DEPTH)
}

/// Enters a call of a macro or a recursive loop, while the level lives.
pub fn enter_call() -> Result<Level, Exceeded> {
    enter(&CALLS, MAX_CALLS)
}

/// Claims `size` more bytes, and now and then checks the time.
pub fn claim(size: usize) -> Result<(), Exceeded> {
    work(size)?;
    let held = usize::try_from(held() - HELD_BEFORE.get()).unwrap_or(0);
    if size > MAX_TEXT || held.saturating_add(size) > MAX_HELD {
        return Err(Exceeded::Size);
    }
    Ok(())
}

/// Counts a text that is at most a few times as long as one counted before.
pub fn paid(text: String) -> Result<String, Exceeded> {
    claim(text.len() + OVERHEAD)?;
    Ok(text)
}

/// A text under construction that counts each byte.
pub struct Text(String);

impl Default for Text {
    fn default() -> Self {
        // An excess by the overhead alone is not worth an error.
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
        // In blocks, since each push claims memory.
        let block = (BLOCK / text.len().max(1)).clamp(1, times.max(1));
        let many = text.repeat(block);
        (0..times / block).try_for_each(|_| self.push(&many))?;
        (0..times % block).try_for_each(|_| self.push(text))
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

/// A list under construction that counts each item.
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

    /// Adds a part of a text as an item: the copy is counted, too.
    pub fn push_text(&mut self, text: &str) -> Result<(), Exceeded> {
        claim(text.len() + OVERHEAD)?;
        self.push(Value::from(text))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn into_vec(mut self) -> Vec<Value> {
        // Spare capacity was not claimed.
        self.0.shrink_to_fit();
        self.0
    }
}

impl From<List> for Value {
    fn from(list: List) -> Value {
        super::values::list(list.into_vec())
    }
}
