// SPDX-License-Identifier: Apache-2.0
//! Chat templates, rendered as transformers' jinja2 environment renders them.
//!
//! Lexer, parser and expressions make a template's tree, scopes binds its variables, evaluate and expression_values run
//! it. Values are minijinja's, with lists, dicts and integers that behave as Python's.
//!
//! Templates come with models from strangers. So each one is compiled and rendered on its own thread, with a stack for
//! deep nesting, a deadline, and limits of memory and depth (budget.rs).

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
mod folding;
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

use crate::bounded::{apart, Result};
use crate::ffi::{borrow, borrow_text, free, guard, SakerRsBytes};
use crate::memory::Bounds;
use minijinja::Error;
use std::sync::Arc;
use std::time::Duration;
use syntax::Template;

/// Time to compile a template.
const COMPILE_TIME: Duration = Duration::from_millis(1500);
/// Address space, not memory: pages are touched only as deep as the template nests.
const STACK: usize = 16 << 20;
/// Maximum memory of a rendering at one time.
const MAX_MEMORY: usize = 160 << 20;
/// Memory of variables as values, in bytes per byte of their serialized form.
const VARIABLES_FACTOR: usize = 8;
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

/// Breaks references between namespaces, which would keep them alive, however the work ends.
struct Cleared;

impl Drop for Cleared {
    fn drop(&mut self) {
        namespace::clear_all();
    }
}

/// Runs `body` on its own thread, within `time`, and within one rendering's memory plus `more` bytes.
fn bounded<T: Send + 'static>(
    time: Duration,
    more: usize,
    body: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    apart("template", STACK, Bounds { bytes: MAX_MEMORY + more, time }, move || {
        let _cleared = Cleared;
        budget::start();
        body()
    })
}

fn load(source: &str) -> Result<Template> {
    if source.len() > MAX_SOURCE {
        return Err(format!("{} bytes of template, at most {MAX_SOURCE} expected", source.len()).into());
    }
    Ok(evaluate::compile(source).map_err(|e| describe(&e))?)
}

fn render(template: &Arc<Template>, variables: &[u8]) -> Result<String> {
    let variables = variables::read(variables).map_err(|e| describe(&e))?;
    budget::start();
    Ok(evaluate::render(template, variables).map_err(|e| describe(&e))?)
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
        let template = Arc::new(bounded(COMPILE_TIME, 0, move || load(&source))?);
        out.write(Box::into_raw(Box::new(SakerRsTemplate { template })));
        Ok(())
    })
}

/// # Safety
/// `template` came from `saker_rs_template_new` and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_template_free(template: *mut SakerRsTemplate) {
    free(template);
}

/// # Safety
/// Pointers are valid for their sizes; `out` and `error` are writable.
#[no_mangle]
pub unsafe extern "C" fn saker_rs_template_render(
    template: *const SakerRsTemplate,
    variables: *const u8,
    size: usize,
    milliseconds: u32,
    out: *mut SakerRsBytes,
    error: *mut SakerRsBytes,
) -> bool {
    guard(error, || {
        let template = (*template).template.clone();
        let variables = borrow(variables, size).to_vec();
        let more = VARIABLES_FACTOR * size;
        let time = Duration::from_millis(milliseconds.into());
        let text = bounded(time, more, move || render(&template, &variables))?;
        out.write(text.into_bytes().into());
        Ok(())
    })
}
