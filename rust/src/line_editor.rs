// SPDX-License-Identifier: Apache-2.0
//! Line editing with history and completion for the chat prompt (rustyline).

use crate::chat_line::{candidates, is_incomplete, Words};
use crate::ffi::{borrow_text, guard, shield, SakerRsBytes};
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Cmd, CompletionType, Config, Context, Editor, Helper, KeyCode, KeyEvent, Modifiers};
use std::borrow::Cow;
use std::io::ErrorKind;

pub struct SakerRsEditor {
    editor: Editor<ChatHelper, DefaultHistory>,
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

/// Alt-Enter, which begins another line. The second is what it becomes when it is typed ahead: the terminal makes a line feed
/// of each return then. So a line feed alone is Enter, and Ctrl-J cannot be told from it.
const ALT_ENTER: [KeyEvent; 2] =
    [KeyEvent(KeyCode::Enter, Modifiers::ALT), KeyEvent(KeyCode::Char('J'), Modifiers::CTRL_ALT)];

/// The chat's knowledge in the editor: its commands, and which lines continue.
#[derive(Default)]
struct ChatHelper {
    words: Words,
    colored: bool,
}

impl Completer for ChatHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, context: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..pos];
        // Anything else is a question: a tab in it, maybe a pasted one, stays a tab.
        if self.words.files.iter().any(|command| typed.starts_with(command.as_str())) {
            return FilenameCompleter::new().complete(line, pos, context);
        }
        if !typed.starts_with('/') {
            return Ok((pos, vec![Pair { display: "\t".to_owned(), replacement: "\t".to_owned() }]));
        }
        let (start, found) = candidates(&self.words.phrases, typed);
        let pair = |text: String| Pair { display: text.trim_end().to_owned(), replacement: text };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}

impl Hinter for ChatHelper {
    type Hint = String;
}

impl Highlighter for ChatHelper {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        if self.colored {
            Cow::Owned(format!("\x1b[1;36m{prompt}\x1b[0m"))
        } else {
            Cow::Borrowed(prompt)
        }
    }
}

impl Validator for ChatHelper {
    fn validate(&self, context: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        let incomplete = is_incomplete(context.input());
        Ok(if incomplete { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Helper for ChatHelper {}

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
        let config = Config::builder().auto_add_history(false).completion_type(CompletionType::List);
        let config = config.max_history_size(MAX_HISTORY).map_err(|e| e.to_string())?.build();
        let mut editor = Editor::with_config(config).map_err(|e| e.to_string())?;
        editor.set_helper(Some(ChatHelper::default()));
        for key in ALT_ENTER {
            editor.bind_sequence(key, Cmd::Newline);
        }
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
/// `editor` is alive and not used elsewhere at the same time; pointers are valid for their sizes.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_editor_prepare(
    editor: *mut SakerRsEditor,
    phrases: *const u8,
    phrases_size: usize,
    files: *const u8,
    files_size: usize,
    colored: bool,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        let lines = |text: &str| text.lines().map(str::to_owned).collect();
        let phrases = lines(borrow_text(phrases, phrases_size)?);
        let files = lines(borrow_text(files, files_size)?);
        (*editor).editor.set_helper(Some(ChatHelper { words: Words { phrases, files }, colored }));
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

/// Columns of a terminal that the text takes.
///
/// # Safety
/// `text` is valid for `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_text_width(text: *const u8, size: usize) -> usize {
    shield(0, || {
        let text = String::from_utf8_lossy(crate::ffi::borrow(text, size));
        unicode_width::UnicodeWidthStr::width(text.as_ref())
    })
}
