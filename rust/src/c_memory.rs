// SPDX-License-Identifier: Apache-2.0
//! malloc and its kin for the C code in this library (Oniguruma), from the bounded allocator: memory of a regular
//! expression counts as its request's, and a request without time left gets no more. rust/.cargo/config.toml sets the
//! names.

use crate::memory;
use std::alloc::{alloc, alloc_zeroed, dealloc, realloc, Layout};
use std::ffi::{c_int, c_ulong, c_void};

extern "C" {
    fn onig_set_retry_limit_in_search(count: c_ulong) -> c_int;
}

/// Maximum backtracking steps of one search, over all places of a text: some seconds. Oniguruma itself limits those of
/// one place.
const MAX_STEPS_BACK: c_ulong = 200_000_000;

/// Applies to all later searches. So a search that nobody waits for any more ends at some time.
pub fn limit_searches() {
    // SAFETY: it sets a number.
    unsafe { onig_set_retry_limit_in_search(MAX_STEPS_BACK) };
}

/// The crate onig does not check whether there was memory for the parameters of a search, which have fewer bytes.
const MAX_UNCHECKED: usize = 128;

/// A block's size is stored before it.
const HEADER: usize = 16;

fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(HEADER)?, HEADER).ok()
}

unsafe fn with_header(block: *mut u8, size: usize) -> *mut c_void {
    if block.is_null() {
        return std::ptr::null_mut();
    }
    block.cast::<usize>().write(size);
    block.add(HEADER).cast()
}

unsafe fn block_of(memory: *mut c_void) -> (*mut u8, usize) {
    let block = memory.cast::<u8>().sub(HEADER);
    (block, block.cast::<usize>().read())
}

/// # Safety
/// None: what is given is freed by `saker_rs_free`.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_malloc(size: usize) -> *mut c_void {
    let Some(layout) = layout(size) else {
        return std::ptr::null_mut();
    };
    let block = alloc(layout);
    let refused = block.is_null() && size <= MAX_UNCHECKED;
    with_header(if refused { memory::from_reserve(layout) } else { block }, size)
}

/// # Safety
/// None: what is given is freed by `saker_rs_free`.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_calloc(count: usize, size: usize) -> *mut c_void {
    let size = count.checked_mul(size);
    let wanted = size.and_then(|size| Some((size, layout(size)?)));
    wanted.map_or(std::ptr::null_mut(), |(size, layout)| with_header(alloc_zeroed(layout), size))
}

/// # Safety
/// `memory` is null or came from these functions.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_realloc(memory: *mut c_void, size: usize) -> *mut c_void {
    if memory.is_null() {
        return saker_rs_malloc(size);
    }
    let (block, old) = block_of(memory);
    match (layout(old), layout(size)) {
        (Some(before), Some(after)) => with_header(realloc(block, before, after.size()), size),
        _ => std::ptr::null_mut(),
    }
}

/// # Safety
/// `memory` is null or came from these functions.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_free(memory: *mut c_void) {
    if memory.is_null() {
        return;
    }
    let (block, size) = block_of(memory);
    if let Some(layout) = layout(size) {
        dealloc(block, layout);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{held, Bounds, Scope};
    use std::time::Duration;

    #[test]
    fn parameters_of_a_search_have_memory_beyond_the_bounds() {
        let before = held();
        let scope = Scope::new(Bounds { bytes: 0, time: Duration::MAX });
        // SAFETY: both are freed by `saker_rs_free`.
        let (small, large) = unsafe { (saker_rs_malloc(MAX_UNCHECKED), saker_rs_malloc(MAX_UNCHECKED + 1)) };
        assert!(!small.is_null() && large.is_null());
        unsafe { saker_rs_free(small) };
        drop(scope);
        assert_eq!(held(), before);
    }
}
