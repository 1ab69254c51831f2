// SPDX-License-Identifier: Apache-2.0
//! Line editing with history for the chat prompt (rustyline).

use crate::ffi::{borrow_text, guard, shield, SakerRsBytes};
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};
use std::io::ErrorKind;

pub struct SakerRsEditor {
    editor: DefaultEditor,
    history: Option<String>,
}

#[repr(C)]
pub enum SakerRsLine {
    Text = 0,
    Interrupted = 1,
    End = 2,
    Error = 3,
    NotUtf8 = 4,
}

const MAX_HISTORY: usize = 1000;

/// # Safety
/// Pointers are valid for their sizes; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_editor_new(
    history_path: *const u8,
    size: usize,
    out: *mut *mut SakerRsEditor,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        let history = Some(borrow_text(history_path, size)?).filter(|path| !path.is_empty());
        let config = Config::builder().auto_add_history(false).max_history_size(MAX_HISTORY);
        let config = config.map_err(|e| e.to_string())?.build();
        let mut editor = DefaultEditor::with_config(config).map_err(|e| e.to_string())?;
        if let Some(path) = history {
            // A missing or unreadable history is an empty one.
            let _ = editor.load_history(path);
        }
        let history = history.map(str::to_owned);
        out.write(Box::into_raw(Box::new(SakerRsEditor { editor, history })));
        Ok(())
    })
}

/// # Safety
/// `editor` came from `saker_rs_editor_new` and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_editor_free(editor: *mut SakerRsEditor) {
    if editor.is_null() {
        return;
    }
    shield((), || {
        let mut owned = Box::from_raw(editor);
        if let Some(path) = owned.history.take() {
            // Losing the history must not fail the chat.
            let _ = owned.editor.save_history(&path);
        }
    });
}

/// # Safety
/// `editor` is alive and not used elsewhere at the same time; pointers are valid for their sizes.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_editor_read(
    editor: *mut SakerRsEditor,
    prompt: *const u8,
    size: usize,
    out: *mut SakerRsBytes,
    error: *mut SakerRsBytes,
) -> SakerRsLine {
    let mut kind = SakerRsLine::Error;
    guard(error, || {
        let editor = &mut (*editor).editor;
        kind = match editor.readline(borrow_text(prompt, size)?) {
            Ok(line) => {
                if !line.trim().is_empty() {
                    editor.add_history_entry(&line).map_err(|e| e.to_string())?;
                }
                out.write(line.into_bytes().into());
                SakerRsLine::Text
            }
            Err(ReadlineError::Interrupted) => SakerRsLine::Interrupted,
            Err(ReadlineError::Eof) => SakerRsLine::End,
            Err(ReadlineError::Io(e)) if e.kind() == ErrorKind::InvalidData => SakerRsLine::NotUtf8,
            Err(other) => return Err(other.to_string().into()),
        };
        Ok(())
    });
    kind
}
