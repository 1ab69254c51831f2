// SPDX-License-Identifier: Apache-2.0
//! Chat templates: minijinja set up to render what transformers' jinja2 environment renders.
//!
//! Templates come with models from strangers, so each one is compiled and rendered on its own thread, with a stack
//! for deep nesting, a deadline, and bounds on instructions (compile.rs) and text (budget.rs).

mod budget;
mod compile;
mod methods;
mod operators;
mod python;

use crate::ffi::{borrow, borrow_text, guard, panic_text, SakerRsBytes};
use budget::{claim, Text};
use compile::{compile, Compiled};
use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, UndefinedBehavior, Value};
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

fn strftime_now(format: &str) -> Result<String, Error> {
    jiff::fmt::strtime::format(format, &jiff::Zoned::now())
        .map_err(|e| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: {e}")))
}

fn raise_exception(message: Value) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message.to_string()))
}

/// What a loop runs over: the engine would take none as an empty list.
fn iterate(value: Value) -> Result<Value, Error> {
    if value.is_none() {
        return Err(Error::new(ErrorKind::InvalidOperation, "a loop over none"));
    }
    Ok(value)
}

fn string_filter(value: Value) -> Result<Value, Error> {
    Ok(if value.as_str().is_some() { value } else { Value::from(python::to_text(&value)?) })
}

fn add_functions(environment: &mut Environment) {
    environment.add_function(compile::ADD, operators::add);
    environment.add_function(compile::MULTIPLY, operators::multiply);
    environment.add_function(compile::MODULO, operators::modulo);
    environment.add_function(compile::CONCAT, python::concat);
    environment.add_function(compile::ITERATE, iterate);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    environment.remove_global("debug");
}

fn add_filters(environment: &mut Environment) {
    environment.add_filter("tojson", python::tojson);
    environment.add_filter("string", string_filter);
    environment.add_filter("trim", |value: Value, chars: Option<&str>| -> Result<String, Error> {
        Ok(methods::strip(&python::to_text(&value)?, chars).to_owned())
    });
    environment.add_filter("upper", |value: Value| Ok::<_, Error>(python::to_text(&value)?.to_uppercase()));
    environment.add_filter("lower", |value: Value| Ok::<_, Error>(python::to_text(&value)?.to_lowercase()));
    environment.add_filter("join", operators::join_filter);
    environment.add_filter("replace", operators::replace_filter);
    environment.add_filter("indent", operators::indent_filter);
    environment.add_filter("int", operators::int_filter);
    environment.add_filter("float", operators::float_filter);
    environment.add_filter("format", operators::format_filter);
    environment.add_filter(operators::FORMAT, minijinja::filters::format);
    environment.add_filter("slice", |state: &State, value: Value, count: Value, fill: Option<Value>| {
        operators::check_count(&count)?;
        minijinja::filters::slice(state, value, count.as_usize().unwrap_or(0), fill)
    });
    environment.add_filter("batch", |state: &State, value: Value, count: Value, fill: Option<Value>| {
        operators::check_count(&count)?;
        minijinja::filters::batch(state, value, count.as_usize().unwrap_or(0), fill)
    });
}

/// Tests whose answer differs between Python's and Rust's types.
fn add_tests(environment: &mut Environment) {
    use ValueKind::{Bool, Iterable, Map, Number, Seq, String, Undefined};
    environment.add_test("iterable", |v: &Value| matches!(v.kind(), String | Seq | Map | Iterable | Undefined));
    environment.add_test("sequence", |v: &Value| matches!(v.kind(), String | Seq | Map | Undefined));
    environment.add_test("number", |v: &Value| matches!(v.kind(), Number | Bool));
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_unknown_method_callback(methods::call);
    environment.set_fuel(Some(FUEL));
    environment.set_formatter(|out, _state, value| match value.as_str() {
        Some(text) => {
            claim(text.len())?;
            Ok(out.write_str(text)?)
        }
        None => {
            let mut text = Text::default();
            python::write_str(&mut text, value)?;
            Ok(out.write_str(text.as_str())?)
        }
    });
    add_functions(&mut environment);
    add_filters(&mut environment);
    add_tests(&mut environment);
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

/// Runs `body` on its own thread. After the deadline the thread is left alone: it ends when its fuel does.
fn bounded<T: Send + 'static>(body: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    let (sender, receiver) = sync_channel(1);
    let thread = std::thread::Builder::new().name("template".into()).stack_size(STACK);
    let handle = thread.spawn(move || {
        let result = body();
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
    let source: Box<str> = compile::plain_generation_tags(source).into();
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
