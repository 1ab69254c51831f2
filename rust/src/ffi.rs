// SPDX-License-Identifier: Apache-2.0
//! Shared code of the C ABI's functions: owned buffers, borrowed input, errors, and panics that stop at the border.
//! Each function runs its body in `guard` or `shield`, and frees objects with `free`.

use crate::bounded::{caught, Result};

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
    free(std::ptr::slice_from_raw_parts_mut(data, size));
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
pub unsafe fn borrow_text<'a>(data: *const u8, size: usize) -> Result<&'a str> {
    let text = std::str::from_utf8(borrow(data, size));
    Ok(text.map_err(|e| format!("invalid UTF-8 at byte {}", e.valid_up_to()))?)
}

/// Writes `text` to the caller's error. Without memory for it the error stays empty, which callers understand.
unsafe fn write_error(error: *mut SakerRsBytes, text: &str) {
    let mut bytes = Vec::new();
    if bytes.try_reserve_exact(text.len()).is_ok() {
        bytes.extend_from_slice(text.as_bytes());
    }
    error.write(bytes.into());
}

/// Runs `body`. An `Err` or a panic, also of a failed allocation, becomes text in `error`, and the result is `false`.
pub unsafe fn guard(error: *mut SakerRsBytes, body: impl FnOnce() -> Result<()>) -> bool {
    match caught(body) {
        Ok(()) => true,
        Err(failure) => {
            let text = caught(|| Ok(failure.text())).unwrap_or_default();
            write_error(error, &text);
            false
        }
    }
}

/// For functions without an error: returns `body`'s result, or `otherwise` after a panic.
pub fn shield<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    caught(|| Ok(body())).unwrap_or(otherwise)
}

/// Destroys an object; a panic in its destructor leaks the rest.
///
/// # Safety
/// `object` is null or came from `Box::into_raw`, once.
pub unsafe fn free<T: ?Sized>(object: *mut T) {
    if !object.is_null() {
        shield((), || drop(Box::from_raw(object)));
    }
}
