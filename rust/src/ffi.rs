// SPDX-License-Identifier: Apache-2.0
//! What every function of the C ABI shares: owned buffers, borrowed input, errors, panics stopped at the border.

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

/// Bytes owned by Rust; given back with `saker_rs_bytes_free`.
#[repr(C)]
pub struct SakerRsBytes {
    data: *mut u8,
    size: usize,
}

/// Token ids owned by Rust; given back with `saker_rs_ids_free`.
#[repr(C)]
pub struct SakerRsIds {
    data: *mut u32,
    size: usize,
}

fn into_raw<T>(items: Vec<T>) -> (*mut T, usize) {
    let items = items.into_boxed_slice();
    let size = items.len();
    (Box::into_raw(items).cast(), size)
}

unsafe fn free_raw<T>(data: *mut T, size: usize) {
    if !data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(data, size)));
    }
}

impl From<Vec<u8>> for SakerRsBytes {
    fn from(bytes: Vec<u8>) -> Self {
        let (data, size) = into_raw(bytes);
        SakerRsBytes { data, size }
    }
}

impl From<Vec<u32>> for SakerRsIds {
    fn from(ids: Vec<u32>) -> Self {
        let (data, size) = into_raw(ids);
        SakerRsIds { data, size }
    }
}

/// # Safety
/// `bytes` came from this library and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_bytes_free(bytes: SakerRsBytes) {
    free_raw(bytes.data, bytes.size);
}

/// # Safety
/// `ids` came from this library and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_ids_free(ids: SakerRsIds) {
    free_raw(ids.data, ids.size);
}

/// A borrowed C array; `data` may be null when `size` is 0.
pub unsafe fn borrow<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if size == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(data, size)
    }
}

/// Borrowed UTF-8 text; the error names the first bad byte.
pub unsafe fn borrow_text<'a>(data: *const u8, size: usize) -> Result<&'a str, String> {
    std::str::from_utf8(borrow(data, size)).map_err(|e| format!("invalid UTF-8 at byte {}", e.valid_up_to()))
}

pub fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("unknown panic")
}

/// Runs `body`; an `Err` or a panic becomes text in `error` and `false`.
pub unsafe fn guard(error: *mut SakerRsBytes, body: impl FnOnce() -> Result<(), String>) -> bool {
    // Panics are reported through `error`, so the default hook's print to stderr is noise.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let result = catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|payload| Err(format!("unexpected failure: {}", panic_text(&*payload))));
    match result {
        Ok(()) => true,
        Err(text) => {
            error.write(text.into_bytes().into());
            false
        }
    }
}
