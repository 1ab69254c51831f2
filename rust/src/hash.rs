// SPDX-License-Identifier: Apache-2.0
//! BLAKE2b (RFC 7693) of any digest size, without a key.

use crate::ffi::{borrow, free, shield};
use blake2b_simd::{Params, State};

pub struct SakerRsBlake2b(State);

/// # Safety
/// None: any size gives an object, one out of 1..=64 that of 64. Null without memory.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_blake2b_new(digest_size: usize) -> *mut SakerRsBlake2b {
    let size = if (1..=64).contains(&digest_size) { digest_size } else { 64 };
    let hash = || Box::into_raw(Box::new(SakerRsBlake2b(Params::new().hash_length(size).to_state())));
    shield(std::ptr::null_mut(), hash)
}

/// # Safety
/// `hash` came from `saker_rs_blake2b_new` and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_blake2b_free(hash: *mut SakerRsBlake2b) {
    free(hash);
}

/// # Safety
/// `hash` is alive, `data` is valid for its size.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_blake2b_add(hash: *mut SakerRsBlake2b, data: *const u8, size: usize) {
    shield((), || {
        (*hash).0.update(borrow(data, size));
    });
}

/// # Safety
/// `hash` is alive; `digest` takes as many bytes as the digest has.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_blake2b_digest(hash: *const SakerRsBlake2b, digest: *mut u8) {
    shield((), || {
        let result = (*hash).0.finalize();
        std::ptr::copy_nonoverlapping(result.as_bytes().as_ptr(), digest, result.as_bytes().len());
    });
}
