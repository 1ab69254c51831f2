// SPDX-License-Identifier: Apache-2.0
//! The filters and tests of a template, in tables. minijinja's own have no limits and differ from Python's.

use super::arguments::{invalid, Arguments};
use super::budget::work_on;
use super::compare;
use super::functions::is_callable;
use super::integers;
use super::python::{is_float, to_text};
use super::strings::Method as TextFilter;
use super::texts::keep_mark;
use super::{display, lists, methods, numbers, percent, python, strings, texts, wrap};
use minijinja::tests::is_sameas;
use minijinja::value::ValueKind;
use minijinja::{Error, Value};
use std::cell::RefCell;
use std::collections::HashMap;

type Filter = fn(&Value, &Arguments) -> Result<Value, Error>;

/// Name, arguments, function.
const FILTERS: &[(&str, &[&str], Filter)] = &[
    ("abs", &[], numbers::abs),
    ("attr", &["name"], |value, arguments| methods::only_attribute(value, arguments.required_text(0)?)),
    ("batch", &["linecount", "fill_with"], lists::batch),
    ("count", &[], lists::length),
    ("d", &["default_value", "boolean"], default),
    ("default", &["default_value", "boolean"], default),
    ("dictsort", &["case_sensitive", "by", "reverse"], lists::dictsort),
    ("e", &[], texts::escape),
    ("escape", &[], texts::escape),
    ("filesizeformat", &["binary"], display::filesizeformat),
    ("first", &[], lists::first),
    ("float", &["default"], numbers::float),
    ("forceescape", &[], texts::force_escape),
    ("groupby", &["attribute", "default", "case_sensitive"], lists::groupby),
    ("indent", &["width", "first", "blank"], texts::indent),
    ("int", &["default", "base"], numbers::int),
    ("items", &[], lists::items),
    ("join", &["d", "attribute"], lists::join),
    ("last", &[], lists::last),
    ("length", &[], lists::length),
    ("list", &[], lists::list),
    ("max", &["case_sensitive", "attribute"], lists::max),
    ("min", &["case_sensitive", "attribute"], lists::min),
    ("pprint", &[], display::pprint),
    ("random", &[], display::random),
    ("reverse", &[], lists::reverse),
    ("round", &["precision", "method"], numbers::round),
    ("safe", &[], texts::safe),
    ("slice", &["slices", "fill_with"], lists::slice),
    ("sort", &["reverse", "case_sensitive", "attribute"], lists::sort),
    ("string", &[], texts::string),
    ("striptags", &[], display::striptags),
    ("sum", &["attribute", "start"], lists::sum),
    ("tojson", &["ensure_ascii", "indent", "separators", "sort_keys"], python::tojson),
    ("truncate", &["length", "killwords", "end", "leeway"], texts::truncate),
    ("unique", &["case_sensitive", "attribute"], lists::unique),
    ("urlencode", &[], texts::urlencode),
    ("urlize", &["trim_url_limit", "nofollow", "target", "rel", "extra_schemes"], display::urlize),
    ("wordwrap", &["width", "break_long_words", "wrapstring", "break_on_hyphens"], wrap::wordwrap),
    ("xmlattr", &["autospace"], texts::xmlattr),
];

/// Filters that convert any value to text first.
const TEXT_FILTERS: &[(&str, &[&str], TextFilter)] = &[
    ("capitalize", &[], strings::capitalize),
    ("center", &["width"], strings::center),
    ("lower", &[], strings::lower),
    ("replace", &["old", "new", "count"], texts::replace),
    ("title", &[], texts::title),
    ("trim", &["chars"], strings::trim),
    ("upper", &[], strings::upper),
    ("wordcount", &[], texts::wordcount),
];

const SELECTIONS: [(&str, lists::Selection); 4] = [
    ("select", lists::Selection { by_attribute: false, keeps: true }),
    ("selectattr", lists::Selection { by_attribute: true, keeps: true }),
    ("reject", lists::Selection { by_attribute: false, keeps: false }),
    ("rejectattr", lists::Selection { by_attribute: true, keeps: false }),
];

/// The names of `COMPARISONS`, in their order.
const COMPARISON_NAMES: [&[&str]; 7] = [
    &["==", "eq", "equalto"],
    &["!=", "ne"],
    &["<", "lt", "lessthan"],
    &["<=", "le"],
    &[">", "gt", "greaterthan"],
    &[">=", "ge"],
    &["in"],
];

type Comparison = fn(&Value, &Value) -> Result<bool, Error>;

const COMPARISONS: [Comparison; 7] = [
    compare::equal,
    |a, b| Ok(!compare::equal(a, b)?),
    |a, b| compare::holds(a, b, |order| order.is_lt()),
    |a, b| compare::holds(a, b, |order| order.is_le()),
    |a, b| compare::holds(a, b, |order| order.is_gt()),
    |a, b| compare::holds(a, b, |order| order.is_ge()),
    |item, container| compare::contains(container, item),
];

/// Tests with an argument of another kind.
const OTHER_TESTS: [&str; 4] = ["divisibleby", "filter", "sameas", "test"];

type Test = fn(&Value) -> Result<bool, Error>;

const TESTS: &[(&str, Test)] = &[
    ("boolean", |value| Ok(value.kind() == ValueKind::Bool)),
    ("callable", |value| Ok(is_callable(value))),
    ("defined", |value| Ok(!value.is_undefined())),
    ("escaped", |value| Ok(value.is_safe())),
    ("even", |value| has_remainder(value, 0)),
    ("false", |value| Ok(value.kind() == ValueKind::Bool && !value.is_true())),
    ("float", |value| Ok(is_float(value))),
    ("integer", |value| Ok(integers::is_integer(value))),
    ("iterable", |value| Ok(is_sequence(value) || value.kind() == ValueKind::Iterable)),
    ("lower", |value| Ok(strings::is_lower(&to_text(value)?))),
    ("mapping", |value| Ok(value.kind() == ValueKind::Map)),
    ("none", |value| Ok(value.is_none())),
    ("number", |value| Ok(integers::is_number(value))),
    ("odd", |value| has_remainder(value, 1)),
    ("sequence", |value| Ok(is_sequence(value))),
    ("string", |value| Ok(value.as_str().is_some())),
    ("true", |value| Ok(value.kind() == ValueKind::Bool && value.is_true())),
    ("undefined", |value| Ok(value.is_undefined())),
    ("upper", |value| Ok(strings::is_upper(&to_text(value)?))),
];

fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Undefined)
}

/// True if `value % 2` equals `wanted`.
fn has_remainder(value: &Value, wanted: i64) -> Result<bool, Error> {
    let rest = super::operators::modulo(value, &Value::from(2))?;
    compare::equal(&rest, &Value::from(wanted))
}

/// `default(value, default_value="", boolean=False)`.
fn default(value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let is_missing = value.is_undefined() || (arguments.flag(1, false) && !value.is_true());
    let default = || arguments.given(0).cloned().unwrap_or_else(|| Value::from(""));
    Ok(if is_missing { default() } else { value.clone() })
}

fn filter_of(name: &str) -> Option<Filtering> {
    if let Some((_, names, filter)) = FILTERS.iter().find(|row| row.0 == name) {
        return Some(Filtering::Value(names, *filter));
    }
    if let Some((_, names, filter)) = TEXT_FILTERS.iter().find(|row| row.0 == name) {
        return Some(Filtering::Text(names, *filter));
    }
    if let Some((_, selection)) = SELECTIONS.iter().find(|row| row.0 == name) {
        return Some(Filtering::Selection(*selection));
    }
    match name {
        "map" => Some(Filtering::Any(lists::map)),
        "format" => Some(Filtering::Any(percent::format_filter)),
        _ => None,
    }
}

/// The kinds of filters, by their input.
#[derive(Clone, Copy)]
enum Filtering {
    Value(&'static [&'static str], Filter),
    Text(&'static [&'static str], TextFilter),
    Selection(lists::Selection),
    Any(fn(&Value, &[Value]) -> Result<Value, Error>),
}

thread_local! {
    // Looked up once for each name.
    static FOUND: RefCell<HashMap<String, Option<Filtering>>> = RefCell::new(HashMap::new());
}

pub fn has_filter(name: &str) -> bool {
    filter_of(name).is_some()
}

/// `value|name(...)`.
pub fn apply_filter(name: &str, value: &Value, given: &[Value]) -> Result<Value, Error> {
    work_on(value)?;
    let known = FOUND.with_borrow(|found| found.get(name).copied());
    let filtering = known.unwrap_or_else(|| {
        let filtering = filter_of(name);
        FOUND.with_borrow_mut(|found| found.insert(name.to_owned(), filtering));
        filtering
    });
    match filtering {
        Some(Filtering::Value(names, filter)) => filter(value, &Arguments::bind(names, given)?),
        Some(Filtering::Text(names, filter)) => {
            let made = filter(&to_text(value)?, &Arguments::bind(names, given)?)?;
            // The other filters make a new text.
            Ok(if ["replace", "title"].contains(&name) { made } else { keep_mark(value, made) })
        }
        Some(Filtering::Selection(selection)) => lists::select(value, given, selection),
        Some(Filtering::Any(filter)) => filter(value, given),
        None => Err(invalid(format!("the filter {name} is unknown"))),
    }
}

fn comparison_of(name: &str) -> Option<usize> {
    COMPARISON_NAMES.iter().position(|names| names.contains(&name))
}

pub fn has_test(name: &str) -> bool {
    TESTS.iter().any(|row| row.0 == name) || comparison_of(name).is_some() || OTHER_TESTS.contains(&name)
}

/// `value is name(...)`.
pub fn perform_test(name: &str, value: &Value, given: &[Value]) -> Result<bool, Error> {
    if let Some((_, test)) = TESTS.iter().find(|row| row.0 == name) {
        Arguments::bind(&[], given)?;
        return test(value);
    }
    if let Some(index) = comparison_of(name) {
        let arguments = Arguments::bind(&["other"], given)?;
        return COMPARISONS[index](value, arguments.required(0)?);
    }
    match name {
        "divisibleby" => {
            let arguments = Arguments::bind(&["num"], given)?;
            let rest = super::operators::modulo(value, arguments.required(0)?)?;
            Ok(!rest.is_true())
        }
        "sameas" => Ok(is_sameas(value, Arguments::bind(&["other"], given)?.required(0)?)),
        "filter" | "test" => {
            compare::check_key(value)?;
            Ok(value.as_str().is_some_and(if name == "filter" { has_filter } else { has_test }))
        }
        _ => Err(invalid(format!("the test {name} is unknown"))),
    }
}
