// SPDX-License-Identifier: Apache-2.0
//! A small reserve of memory for when the system has none: a failed allocation unwinds, and unwinding allocates. Blocks
//! are cut one after the other; the whole reserve is free again once the last block is given back. Thread-safe, without
//! locks.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};

const SIZE: usize = 1 << 16;

#[repr(align(64))]
struct Room(UnsafeCell<[u8; SIZE]>);

// SAFETY: each byte belongs to the one block that `STATE` gave out.
unsafe impl Sync for Room {}

static ROOM: Room = Room(UnsafeCell::new([0; SIZE]));
/// The number of blocks in use in the upper half, used bytes in the lower one.
static STATE: AtomicU64 = AtomicU64::new(0);
const ONE_BLOCK: u64 = 1 << 32;

fn start() -> *mut u8 {
    ROOM.0.get().cast()
}

/// Null if the reserve has no room.
pub fn take(layout: Layout) -> *mut u8 {
    let end_of = |state: u64| {
        let begin = ((state as u32) as usize).next_multiple_of(layout.align());
        begin.checked_add(layout.size()).filter(|end| *end <= SIZE && layout.align() <= 64).map(|end| (begin, end))
    };
    let add = |state: u64| {
        let (_, end) = end_of(state)?;
        Some((state & !u64::from(u32::MAX)) + ONE_BLOCK + end as u64)
    };
    match STATE.fetch_update(Ordering::AcqRel, Ordering::Acquire, add) {
        Ok(before) => end_of(before).map_or(std::ptr::null_mut(), |(begin, _)| start().wrapping_add(begin)),
        Err(_) => std::ptr::null_mut(),
    }
}

pub fn holds(memory: *const u8) -> bool {
    (memory as usize).wrapping_sub(start() as usize) < SIZE
}

/// True if `memory` was a block of the reserve; it is given back.
pub fn give_back(memory: *const u8) -> bool {
    if !holds(memory) {
        return false;
    }
    let less = |state: u64| {
        let rest = state - ONE_BLOCK;
        Some(if rest < ONE_BLOCK { 0 } else { rest })
    };
    let _ = STATE.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back() {
        let layout = |size, align| Layout::from_size_align(size, align).unwrap();
        assert!(take(layout(SIZE + 1, 1)).is_null());
        for _ in 0..3 {
            let small = take(layout(3, 1));
            let large = take(layout(SIZE - 64, 64));
            assert!(holds(small) && holds(large) && (large as usize) % 64 == 0);
            assert!(take(layout(64, 1)).is_null());
            assert!(give_back(small) && give_back(large));
        }
        assert!(!give_back(std::ptr::from_ref(&SIZE).cast()));
    }
}
