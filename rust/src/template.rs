// SPDX-License-Identifier: Apache-2.0
//! Chat templates: minijinja set up to render what transformers' jinja2 environment renders.
//!
//! Templates come with models from strangers, so each one is compiled and rendered on its own thread, with a stack
//! for deep nesting, a deadline, and bounds on instructions (FUEL), texts, lists and time (budget.rs).

mod arguments;
mod braces;
mod budget;
mod compare;
mod compile;
mod filters;
mod functions;
mod lists;
mod macros;
mod methods;
mod namespace;
mod numbers;
mod operators;
mod percent;
mod python;
mod rewrite;
mod spec;
mod split;
mod strftime;
mod strings;
mod texts;
mod wrap;

use crate::ffi::{borrow, borrow_text, guard, panic_text, SakerRsBytes};
use arguments::invalid;
use budget::{check_time, claim_output, Text};
use compile::{compile, Compiled};
use minijinja::value::{Rest, Tuple, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value};
use rewrite::rewrite;
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::sync::Arc;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(10);
/// Instructions of one rendering; a long conversation needs some ten thousand.
const FUEL: u64 = 4_000_000;
/// Address space, not memory: pages are touched only as deep as the template nests.
const STACK: usize = 512 << 20;

pub struct SakerRsTemplate {
    program: Arc<Program>,
}

/// Fields drop in this order: the instructions borrow from the source.
struct Program {
    compiled: Compiled<'static>,
    environment: Environment<'static>,
    _source: Box<str>,
}

/// What a loop runs over: the engine would take none as an empty list.
fn iterate(value: Value) -> Result<Value, Error> {
    check_time()?;
    match value.kind() {
        ValueKind::None => Err(invalid("a loop over none")),
        // The loop knows the length of a list alone.
        ValueKind::String => lists::collect(&value).map(Value::from),
        _ => Ok(value),
    }
}

/// What the instructions of compile.rs call.
fn add_operators(environment: &mut Environment) {
    environment.add_function(compile::ADD, operators::add);
    environment.add_function(compile::ATTRIBUTE, methods::attribute);
    environment.add_function(compile::CHANGED, operators::changed);
    environment.add_function(compile::CONCAT, python::concat);
    environment.add_function(compile::ITEM, |value: &Value, key: &Value| methods::item(value, key));
    environment.add_function(compile::ITERATE, iterate);
    environment.add_function(compile::MAP, |given: Rest<Value>| methods::map_of(&given));
    environment.add_function(compile::MODULO, operators::modulo);
    environment.add_function(compile::MULTIPLY, operators::multiply);
    environment.add_function(compile::OPEN_MACRO, macros::open);
    environment.add_function(compile::SET, namespace::set);
    environment.add_function(compile::SLICE, operators::slice);
    environment.add_function(compile::SPLAT, operators::splat);
    environment.add_function(compile::SPLAT_NAMED, operators::splat_named);
    for (i, comparison) in operators::COMPARISONS.into_iter().enumerate() {
        environment.add_function(compile::COMPARE[i], move |a: &Value, b: &Value| comparison(a, b));
        environment.add_function(compile::COMPARE_AND_KEEP[i], move |a: Value, b: Value| {
            comparison(&a, &b).map(|result| Value::from(Tuple::from([Value::from(result), b])))
        });
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_unknown_method_callback(methods::call);
    environment.set_fuel(Some(FUEL));
    environment.set_formatter(|out, state, value| {
        let mut text = Text::default();
        if matches!(state.auto_escape(), AutoEscape::None) || value.is_safe() {
            python::write_str(&mut text, value)?;
        } else {
            texts::push_escaped(&mut text, &python::to_text(value)?)?;
        }
        claim_output(text.as_str().len())?;
        Ok(out.write_str(text.as_str())?)
    });
    add_operators(&mut environment);
    functions::add_functions(&mut environment);
    filters::add_filters(&mut environment);
    filters::add_tests(&mut environment);
    environment
}

/// One line that says what failed and where.
fn describe(error: &Error) -> String {
    let what = match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => "the template runs for too long".to_owned(),
        (ErrorKind::InvalidOperation, Some(detail)) => detail.to_owned(),
        (kind, Some(detail)) => format!("{kind}: {detail}"),
        (kind, None) => kind.to_string(),
    };
    match error.line() {
        Some(line) => format!("line {line}: {what}"),
        None => what,
    }
}

/// Runs `body` on its own thread. After the deadline the thread is left alone: it ends at its next step that
/// costs time, or when its fuel does.
fn bounded<T: Send + 'static>(body: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    let (sender, receiver) = sync_channel(1);
    let thread = std::thread::Builder::new().name("template".into()).stack_size(STACK);
    let handle = thread.spawn(move || {
        budget::start_clock(DEADLINE);
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

fn load(source: &str) -> Result<Program, String> {
    let source: Box<str> = rewrite(source).map_err(|e| describe(&e))?.into();
    // SAFETY: the text is on the heap, lives in the same Program, is never changed and is dropped last.
    let text: &'static str = unsafe { &*std::ptr::from_ref::<str>(&source) };
    let compiled = compile(text).map_err(|e| describe(&e))?;
    let environment = environment();
    Ok(Program { compiled, environment, _source: source })
}

fn render(program: &Program, variables: &[u8]) -> Result<String, String> {
    let variables: serde_json::Value = serde_json::from_slice(variables).map_err(|e| e.to_string())?;
    let root = Value::from(minijinja::value::Serde(&variables));
    let mut text = String::new();
    let mut out = minijinja::machinery::make_string_output(&mut text);
    let Compiled { instructions, blocks, .. } = &program.compiled;
    let result =
        minijinja::machinery::eval(&program.environment, instructions, root, blocks, &mut out, AutoEscape::None);
    match result {
        Ok(_) => Ok(text),
        Err(error) => Err(describe(&error)),
    }
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
        let program = Arc::new(bounded(move || load(&source))?);
        out.write(Box::into_raw(Box::new(SakerRsTemplate { program })));
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
        let program = (*template).program.clone();
        let variables = borrow(variables, size).to_vec();
        out.write(bounded(move || render(&program, &variables))?.into_bytes().into());
        Ok(())
    })
}
