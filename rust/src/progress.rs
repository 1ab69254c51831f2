// SPDX-License-Identifier: Apache-2.0
//! Progress bars on stderr (indicatif), hidden when stderr is no terminal. A bar that fails is none: null, which all
//! functions take.

use crate::ffi::{borrow, free, shield};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

pub struct SakerRsProgress(ProgressBar);

/// Bars one below the other.
pub struct SakerRsProgressGroup(MultiProgress);

fn style(total: u64, bytes: bool) -> ProgressStyle {
    let (position, rate) = if bytes { ("{bytes}", "{bytes_per_sec}") } else { ("{pos}", "{per_sec}") };
    let text = match (total, bytes) {
        (0, _) => format!("{{spinner}} {{msg}} {position} {rate}"),
        (_, true) => format!("{{msg}} [{{wide_bar}}] {position}/{{total_bytes}} {rate} {{eta}}"),
        (_, false) => format!("{{msg}} [{{wide_bar}}] {position}/{{len}} {rate} {{eta}}"),
    };
    ProgressStyle::with_template(&text).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

/// # Safety
/// `label` is valid for `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_progress_new(
    total: u64,
    label: *const u8,
    size: usize,
    bytes: bool,
) -> *mut SakerRsProgress {
    shield(std::ptr::null_mut(), || {
        let length = (total > 0).then_some(total);
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
        bar.set_style(style(total, bytes));
        bar.set_message(String::from_utf8_lossy(borrow(label, size)).into_owned());
        Box::into_raw(Box::new(SakerRsProgress(bar)))
    })
}

#[no_mangle]
pub extern "C" fn saker_rs_progress_group_new() -> *mut SakerRsProgressGroup {
    shield(std::ptr::null_mut(), || {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        Box::into_raw(Box::new(SakerRsProgressGroup(bars)))
    })
}

/// # Safety
/// `group` is null or alive, and `label` is valid for `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_progress_group_add(
    group: *mut SakerRsProgressGroup,
    total: u64,
    label: *const u8,
    size: usize,
) -> *mut SakerRsProgress {
    let Some(group) = group.as_ref() else { return std::ptr::null_mut() };
    shield(std::ptr::null_mut(), || {
        let bar = group.0.add(ProgressBar::new(total));
        bar.set_style(style(total.max(1), true));
        bar.set_message(String::from_utf8_lossy(borrow(label, size)).into_owned());
        Box::into_raw(Box::new(SakerRsProgress(bar)))
    })
}

/// # Safety
/// `group` is null or came from `saker_rs_progress_group_new` and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_progress_group_free(group: *mut SakerRsProgressGroup) {
    if let Some(bars) = group.as_ref() {
        shield((), || drop(bars.0.clear()));
    }
    free(group);
}

/// # Safety
/// `progress` is null or alive.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_progress_set_total(progress: *mut SakerRsProgress, total: u64) {
    if let Some(bar) = progress.as_ref() {
        shield((), || bar.0.set_length(total));
    }
}

/// # Safety
/// `progress` is null or alive.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_progress_set(progress: *mut SakerRsProgress, position: u64) {
    if let Some(bar) = progress.as_ref() {
        shield((), || bar.0.set_position(position));
    }
}

/// # Safety
/// `progress` is null or came from `saker_rs_progress_new` and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_progress_free(progress: *mut SakerRsProgress) {
    if let Some(bar) = progress.as_ref() {
        shield((), || bar.0.finish_and_clear());
    }
    free(progress);
}
