// SPDX-License-Identifier: Apache-2.0
//! Progress bars on stderr (indicatif), hidden if stderr is no terminal. A bar that can't be made is null, which all
//! functions accept.

use crate::ffi::{borrow, free, shield};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;

pub struct SakerRsProgress(ProgressBar);

/// Bars one below the other.
pub struct SakerRsProgressGroup(MultiProgress);

/// The unit of a bar; `saker::cli::Progress::Unit` has the same numbers.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Pieces,
    Bytes,
    /// Weights of a model, shown in millions.
    Weights,
}

impl From<u8> for Unit {
    fn from(number: u8) -> Self {
        match number {
            1 => Unit::Bytes,
            2 => Unit::Weights,
            _ => Unit::Pieces,
        }
    }
}

fn millions(count: u64) -> f64 {
    count as f64 / 1e6
}

fn style(total: u64, unit: Unit) -> ProgressStyle {
    let text = match (total, unit) {
        (0, Unit::Bytes) => "{spinner} {msg} {bytes} {bytes_per_sec}",
        (0, _) => "{spinner} {msg} {pos}",
        (_, Unit::Bytes) => "{msg} [{wide_bar}] {bytes}/{total_bytes} {bytes_per_sec} {eta}",
        (_, Unit::Pieces) => "{msg} [{wide_bar}] {pos}/{len}, {eta} left",
        (_, Unit::Weights) => "{msg} [{wide_bar}] {done}/{all} M weights, {eta} left",
    };
    ProgressStyle::with_template(text)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("done", |state: &ProgressState, out: &mut dyn Write| {
            let _ = write!(out, "{:.1}", millions(state.pos()));
        })
        .with_key("all", |state: &ProgressState, out: &mut dyn Write| {
            let _ = write!(out, "{:.1}", millions(state.len().unwrap_or(0)));
        })
        .progress_chars("=> ")
}

/// # Safety
/// `label` is valid for `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_progress_new(
    total: u64,
    label: *const u8,
    size: usize,
    unit: u8,
) -> *mut SakerRsProgress {
    shield(std::ptr::null_mut(), || {
        let length = (total > 0).then_some(total);
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
        bar.set_style(style(total, unit.into()));
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
        bar.set_style(style(total.max(1), Unit::Bytes));
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
