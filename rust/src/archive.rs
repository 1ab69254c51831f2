// SPDX-License-Identifier: Apache-2.0
//! Zip archives in memory: their entries, read with a limit and verified by checksum.

use crate::ffi::{borrow, free, guard, shield, SakerRsBytes};
use std::io::{Cursor, Read};
use zip::ZipArchive;

pub struct SakerRsZip(ZipArchive<Cursor<&'static [u8]>>);

/// One entry's place and size.
struct Span {
    begin: u64,
    end: u64,
    size: u64,
}

const MOST_ENTRIES: usize = 1 << 16;

impl SakerRsZip {
    fn open(bytes: &'static [u8], most_bytes: u64) -> Result<Self, String> {
        let mut zip = SakerRsZip(ZipArchive::new(Cursor::new(bytes)).map_err(|e| e.to_string())?);
        if zip.0.len() > MOST_ENTRIES {
            return Err(format!("{} entries, expected at most {MOST_ENTRIES}", zip.0.len()));
        }
        zip.check(most_bytes)?;
        Ok(zip)
    }

    /// Refuses entries that share bytes: they would be counted once and unpacked often.
    fn check(&mut self, most_bytes: u64) -> Result<(), String> {
        let mut spans = Vec::with_capacity(self.0.len());
        for index in 0..self.0.len() {
            spans.push(self.span(index)?);
        }
        spans.sort_by_key(|span| span.begin);
        if spans.windows(2).any(|pair| pair[1].begin < pair[0].end) {
            return Err("entries overlap".to_owned());
        }
        let total = spans.iter().fold(0u64, |sum, span| sum.saturating_add(span.size));
        if total > most_bytes {
            return Err(format!("unpacks to {total} bytes, expected at most {most_bytes}"));
        }
        Ok(())
    }

    fn span(&mut self, index: usize) -> Result<Span, String> {
        let entry = self.0.by_index_raw(index).map_err(|e| e.to_string())?;
        let data = entry.data_start().ok_or("an entry has no data")?;
        let end = data.checked_add(entry.compressed_size()).ok_or("an entry is too long")?;
        Ok(Span { begin: entry.header_start(), end, size: entry.size() })
    }

    fn name(&mut self, index: usize) -> Result<String, String> {
        let entry = self.0.by_index_raw(index).map_err(|e| e.to_string())?;
        Ok(entry.name().to_owned())
    }

    /// An entry may not unpack to more bytes than it declares.
    fn read(&mut self, index: usize) -> Result<Vec<u8>, String> {
        let mut entry = self.0.by_index(index).map_err(|e| e.to_string())?;
        let size = entry.size();
        let mut bytes = Vec::new();
        entry.by_ref().take(size.saturating_add(1)).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
        if bytes.len() as u64 != size {
            return Err(format!("unpacks to other than its {size} bytes"));
        }
        Ok(bytes)
    }
}

/// # Safety
/// `data` is valid for its size until the archive is freed, `out` and `error` take a value.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_zip_open(
    data: *const u8,
    size: usize,
    most_bytes: u64,
    out: *mut *mut SakerRsZip,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        let zip = SakerRsZip::open(borrow(data, size), most_bytes)?;
        out.write(Box::into_raw(Box::new(zip)));
        Ok(())
    })
}

/// # Safety
/// `zip` came from `saker_rs_zip_open` and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_zip_free(zip: *mut SakerRsZip) {
    free(zip);
}

/// # Safety
/// `zip` is alive.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_zip_count(zip: *const SakerRsZip) -> usize {
    shield(0, || (*zip).0.len())
}

/// # Safety
/// `zip` is alive, `out` and `error` take a value.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_zip_name(
    zip: *mut SakerRsZip,
    index: usize,
    out: *mut SakerRsBytes,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        out.write((*zip).name(index)?.into_bytes().into());
        Ok(())
    })
}

/// # Safety
/// `zip` is alive, `out` and `error` take a value.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_zip_read(
    zip: *mut SakerRsZip,
    index: usize,
    out: *mut SakerRsBytes,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        out.write((*zip).read(index)?.into());
        Ok(())
    })
}
