// SPDX-License-Identifier: Apache-2.0
//! The `regex` engine: linear in the text, whatever the pattern. Immutable; any number of threads may use it.

use crate::ffi::{borrow, borrow_text, free, guard, SakerRsBytes};
use regex::{Regex, RegexBuilder};

/// Maximum bytes of a compiled pattern; `a{1000}{1000}` would take a gigabyte.
const MAX_COMPILED: usize = 1 << 20;

pub struct SakerRsPattern(Regex);

/// # Safety
/// Pointers are valid for their sizes; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_pattern_new(
    text: *const u8,
    size: usize,
    out: *mut *mut SakerRsPattern,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        let built = RegexBuilder::new(borrow_text(text, size)?).size_limit(MAX_COMPILED).build();
        // The last line gives the reason; those before it draw the place.
        let regex = built.map_err(|e| e.to_string().lines().last().unwrap_or_default().trim().to_owned())?;
        out.write(Box::into_raw(Box::new(SakerRsPattern(regex))));
        Ok(())
    })
}

/// # Safety
/// `pattern` came from `saker_rs_pattern_new` and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_pattern_free(pattern: *mut SakerRsPattern) {
    free(pattern);
}

/// # Safety
/// `pattern` is alive, `text` is valid for its size; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_pattern_matches(
    pattern: *const SakerRsPattern,
    text: *const u8,
    size: usize,
    out: *mut bool,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        out.write(std::str::from_utf8(borrow(text, size)).is_ok_and(|text| (*pattern).0.is_match(text)));
        Ok(())
    })
}
