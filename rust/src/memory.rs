// SPDX-License-Identifier: Apache-2.0
//! The allocator of this library. It counts the memory of each thread and enforces bounds on memory and time of the
//! thread's present work. An allocation beyond the bounds fails, as if the system refused it. A failed allocation
//! unwinds as a panic to the place that set the bounds (docs/adr/0040-bounds-by-the-allocator.md).
//!
//! Counters are thread-local. A thread that frees another one's memory counts below zero. Time is the thread's
//! processor time, so that a busy machine fails nothing.

use crate::reserve;
use std::alloc::{set_alloc_error_hook, GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::resume_unwind;
use std::time::Duration;

/// Limits of a piece of work.
#[derive(Clone, Copy)]
pub struct Bounds {
    pub bytes: usize,
    pub time: Duration,
}

/// Why an allocation failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shortage {
    /// The work holds more than its bounds allow.
    Bytes,
    /// The work took longer than its bounds allow.
    Time,
    /// The system has no more.
    System,
}

/// The payload of the panic of a failed allocation.
pub struct Failed;

/// Number of allocations, or of their pages, between two looks at the clock.
const CLOCK_TICKS: usize = 512;
const PAGE_BITS: u32 = 12;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(isize::MAX) };
    static END: Cell<Duration> = const { Cell::new(Duration::MAX) };
    static TICKS: Cell<usize> = const { Cell::new(0) };
    static SHORTAGE: Cell<Option<Shortage>> = const { Cell::new(None) };
    static UNWINDS: Cell<bool> = const { Cell::new(false) };
}

struct Bounded;

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;

fn fail(shortage: Shortage) -> bool {
    SHORTAGE.set(Some(shortage));
    false
}

/// The time on a clock of processor time.
pub fn time_on(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable. It stays zero where there is no such clock.
    unsafe { libc::clock_gettime(clock, &mut time) };
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Processor time of this thread.
pub fn thread_time() -> Duration {
    time_on(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// True if the time of the bounds is up.
pub fn time_is_up() -> bool {
    let end = END.get();
    end != Duration::MAX && thread_time() > end
}

/// True if the bounds allow `size` more bytes. Always true while a failure unwinds: freeing may need memory first.
fn admits(size: usize) -> bool {
    if UNWINDS.get() {
        return true;
    }
    if HELD.get().saturating_add_unsigned(size) > MOST.get() {
        return fail(Shortage::Bytes);
    }
    let ticks = TICKS.get() + 1 + (size >> PAGE_BITS);
    if ticks < CLOCK_TICKS {
        TICKS.set(ticks);
        return true;
    }
    TICKS.set(0);
    !time_is_up() || fail(Shortage::Time)
}

fn count(bytes: isize) {
    HELD.set(HELD.get().wrapping_add(bytes));
}

/// `memory`, or a block of the reserve if the system has none.
fn or_reserve(memory: *mut u8, layout: Layout) -> *mut u8 {
    if !memory.is_null() {
        return memory;
    }
    if UNWINDS.get() {
        return reserve::take(layout);
    }
    fail(Shortage::System);
    memory
}

// SAFETY: the system's allocator and the reserve do the work; counting allocates nothing.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !admits(layout.size()) {
            return std::ptr::null_mut();
        }
        let memory = or_reserve(System.alloc(layout), layout);
        if !memory.is_null() {
            count(layout.size() as isize);
        }
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !admits(layout.size()) {
            return std::ptr::null_mut();
        }
        let mut memory = System.alloc_zeroed(layout);
        if memory.is_null() {
            memory = or_reserve(memory, layout);
            if memory.is_null() {
                return memory;
            }
            memory.write_bytes(0, layout.size());
        }
        count(layout.size() as isize);
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        if !reserve::give_back(memory) {
            System.dealloc(memory, layout);
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > layout.size() && !admits(size - layout.size()) {
            return std::ptr::null_mut();
        }
        // The reserve is used through `alloc`, so that the first of two failures does not lose `memory`.
        let larger = if reserve::holds(memory) { std::ptr::null_mut() } else { System.realloc(memory, layout, size) };
        if !larger.is_null() {
            count(size as isize - layout.size() as isize);
            return larger;
        }
        let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
        if !moved.is_null() {
            moved.copy_from_nonoverlapping(memory, size.min(layout.size()));
            self.dealloc(memory, layout);
        }
        moved
    }
}

/// A block of the reserve, whatever the bounds are; null if it has no room. It is given back like any other block.
pub fn from_reserve(layout: Layout) -> *mut u8 {
    let memory = reserve::take(layout);
    if !memory.is_null() {
        count(layout.size() as isize);
    }
    memory
}

/// Bytes that this thread holds.
pub fn held() -> isize {
    HELD.get()
}

fn unwind(_: Layout) {
    // A second failure while unwinding can't be handled: the caller aborts.
    if !UNWINDS.replace(true) {
        resume_unwind(Box::new(Failed));
    }
}

/// Turns failed allocations into panics, for the life of the process.
pub fn install() {
    set_alloc_error_hook(unwind);
}

/// The reason of the last failed allocation since the previous call, if any. The thread is ready for other work.
pub fn recover() -> Option<Shortage> {
    UNWINDS.set(false);
    SHORTAGE.take()
}

/// Runs `body` without bounds: it frees the work's memory and may need memory for that. It must not panic.
pub fn unbounded<T>(body: impl FnOnce() -> T) -> T {
    let before = UNWINDS.replace(true);
    let result = body();
    UNWINDS.set(before);
    result
}

/// Sets the bounds of the work on this thread while it lives.
pub struct Scope {
    most: isize,
    end: Duration,
}

impl Scope {
    pub fn new(bounds: Bounds) -> Scope {
        let before = Scope { most: MOST.get(), end: END.get() };
        MOST.set(HELD.get().saturating_add_unsigned(bounds.bytes));
        END.set(thread_time().saturating_add(bounds.time));
        SHORTAGE.set(None);
        before
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        MOST.set(self.most);
        END.set(self.end);
    }
}
