// SPDX-License-Identifier: Apache-2.0
//! Chat templates, rendered as transformers' jinja2 environment renders them.
//!
//! Lexer, parser and expressions make a tree of a template, scopes says where its variables live, evaluate and
//! expression_values run it. Values are minijinja's, with lists, dicts and integers that behave as Python's.
//!
//! Templates come with models from strangers, so each one is compiled and rendered on its own thread, with a stack
//! for deep nesting, a deadline, and bounds on memory and depth (budget.rs).

mod arguments;
mod braces;
mod budget;
mod compare;
mod display;
mod escapes;
mod evaluate;
mod expression_values;
mod expressions;
mod filters;
mod functions;
mod integers;
mod lexer;
mod lists;
mod loops;
mod macros;
mod methods;
mod names;
mod namespace;
mod numbers;
mod operators;
mod parser;
mod percent;
mod python;
mod scopes;
mod spec;
mod split;
mod strftime;
mod strings;
mod syntax;
mod texts;
mod values;
mod variables;
mod wrap;

use crate::ffi::{borrow, borrow_text, guard, panic_text, SakerRsBytes};
use minijinja::Error;
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::sync::Arc;
use std::time::Duration;
use syntax::Template;

const DEADLINE: Duration = Duration::from_secs(10);
/// Address space, not memory: pages are touched only as deep as the template nests.
const STACK: usize = 64 << 20;
/// The largest real template is about 100 kB.
const MAX_SOURCE: usize = 1 << 18;

pub struct SakerRsTemplate {
    template: Arc<Template>,
}

/// One line that says what failed and where.
fn describe(error: &Error) -> String {
    let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match arguments::line() {
        0 => what,
        line => format!("line {line}: {what}"),
    }
}

/// Runs `body` on its own thread. After the deadline the thread is left alone: it ends at its next step.
fn bounded<T: Send + 'static>(body: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    let (sender, receiver) = sync_channel(1);
    let thread = std::thread::Builder::new().name("template".into()).stack_size(STACK);
    let handle = thread.spawn(move || {
        budget::start(DEADLINE);
        let result = body();
        namespace::clear_all();
        // The receiver is gone after the deadline.
        let _ = sender.send(result);
    });
    let handle = handle.map_err(|e| format!("no thread for the template: {e}"))?;
    match receiver.recv_timeout(DEADLINE) {
        Ok(result) => handle.join().map_err(|e| panic_text(&*e).to_owned()).and(result),
        Err(RecvTimeoutError::Timeout) => Err(format!("the template runs for more than {DEADLINE:?}")),
        Err(RecvTimeoutError::Disconnected) => {
            Err(handle.join().err().map_or_else(String::new, |e| panic_text(&*e).to_owned()))
        }
    }
}

fn load(source: &str) -> Result<Template, String> {
    if source.len() > MAX_SOURCE {
        return Err(format!("{} bytes of template, at most {MAX_SOURCE} expected", source.len()));
    }
    evaluate::compile(source).map_err(|e| describe(&e))
}

fn render(template: &Arc<Template>, variables: &[u8]) -> Result<String, String> {
    let variables = variables::read(variables).map_err(|e| describe(&e))?;
    budget::start(DEADLINE);
    evaluate::render(template, variables).map_err(|e| describe(&e))
}

/// # Safety
/// Pointers are valid for their sizes; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_template_new(
    source: *const u8,
    size: usize,
    out: *mut *mut SakerRsTemplate,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        let source = borrow_text(source, size)?.to_owned();
        let template = Arc::new(bounded(move || load(&source))?);
        out.write(Box::into_raw(Box::new(SakerRsTemplate { template })));
        Ok(())
    })
}

/// # Safety
/// `template` came from `saker_rs_template_new` and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_template_free(template: *mut SakerRsTemplate) {
    if !template.is_null() {
        drop(Box::from_raw(template));
    }
}

/// # Safety
/// Pointers are valid for their sizes; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_template_render(
    template: *const SakerRsTemplate,
    variables: *const u8,
    size: usize,
    out: *mut SakerRsBytes,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        let template = (*template).template.clone();
        let variables = borrow(variables, size).to_vec();
        out.write(bounded(move || render(&template, &variables))?.into_bytes().into());
        Ok(())
    })
}
