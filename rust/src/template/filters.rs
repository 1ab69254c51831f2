// SPDX-License-Identifier: Apache-2.0
//! The filters and tests of a template, in tables. The engine's own have no bounds and differ from Python's.

use super::arguments::{invalid, Arguments};
use super::budget::check_time;
use super::operators::COMPARISONS;
use super::python::{is_float, to_text};
use super::strings::Method as TextFilter;
use super::{lists, methods, numbers, percent, python, strings, texts, wrap};
use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, State, Value};

type Filter = fn(&mut State, &Value, &Arguments) -> Result<Value, Error>;

/// Name, arguments, function.
const FILTERS: &[(&str, &[&str], Filter)] = &[
    ("abs", &[], numbers::abs),
    ("attr", &["name"], |_, value, arguments| methods::only_attribute(value, arguments.required_text(0)?)),
    ("batch", &["linecount", "fill_with"], lists::batch),
    ("count", &[], lists::length),
    ("d", &["default_value", "boolean"], default),
    ("default", &["default_value", "boolean"], default),
    ("dictsort", &["case_sensitive", "by", "reverse"], lists::dictsort),
    ("e", &[], texts::escape),
    ("escape", &[], texts::escape),
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
    ("reverse", &[], lists::reverse),
    ("round", &["precision", "method"], numbers::round),
    ("safe", &[], texts::safe),
    ("slice", &["slices", "fill_with"], lists::slice),
    ("sort", &["reverse", "case_sensitive", "attribute"], lists::sort),
    ("string", &[], texts::string),
    ("sum", &["attribute", "start"], lists::sum),
    ("tojson", &["ensure_ascii", "indent", "separators", "sort_keys"], python::tojson),
    ("truncate", &["length", "killwords", "end", "leeway"], texts::truncate),
    ("unique", &["case_sensitive", "attribute"], lists::unique),
    ("urlencode", &[], texts::urlencode),
    ("wordwrap", &["width", "break_long_words", "wrapstring", "break_on_hyphens"], wrap::wordwrap),
    ("xmlattr", &["autospace"], texts::xmlattr),
];

/// Filters that take any value as its text.
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

type Test = fn(&Value) -> Result<bool, Error>;

const TESTS: &[(&str, Test)] = &[
    ("boolean", |value| Ok(value.kind() == ValueKind::Bool)),
    ("callable", |value| Ok(is_callable(value))),
    ("defined", |value| Ok(!value.is_undefined())),
    ("escaped", |value| Ok(value.is_safe())),
    ("even", |value| Ok(remainder(value, 2)? == 0)),
    ("false", |value| Ok(value.kind() == ValueKind::Bool && !value.is_true())),
    ("float", |value| Ok(is_float(value))),
    ("integer", |value| Ok(value.is_integer())),
    ("iterable", |value| Ok(is_sequence(value) || value.kind() == ValueKind::Iterable)),
    ("lower", |value| Ok(strings::is_lower(&to_text(value)?))),
    ("mapping", |value| Ok(value.kind() == ValueKind::Map)),
    ("none", |value| Ok(value.is_none())),
    ("number", |value| Ok(matches!(value.kind(), ValueKind::Number | ValueKind::Bool))),
    ("odd", |value| Ok(remainder(value, 2)? == 1)),
    ("sequence", |value| Ok(is_sequence(value))),
    ("string", |value| Ok(value.as_str().is_some())),
    ("true", |value| Ok(value.kind() == ValueKind::Bool && value.is_true())),
    ("undefined", |value| Ok(value.is_undefined())),
    ("upper", |value| Ok(strings::is_upper(&to_text(value)?))),
];

fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Undefined)
}

/// Functions, methods and macros; an undefined value is callable in name only.
fn is_callable(value: &Value) -> bool {
    let callable = |name: &str| ["BoxedFunction", "Macro", "Bound", "Joiner"].iter().any(|kind| name.ends_with(kind));
    value.is_undefined() || value.as_object().is_some_and(|object| callable(object.type_name()))
}

fn remainder(value: &Value, divisor: i128) -> Result<i128, Error> {
    // What is no whole number has no remainder that a test asks for.
    let number = if is_float(value) { f64::try_from(value.clone())? } else { 0.0 };
    if number.fract() != 0.0 {
        return Ok(-1);
    }
    let number = if is_float(value) { number as i128 } else { i128::try_from(value.clone())? };
    number.checked_rem_euclid(divisor).ok_or_else(|| invalid("a division by 0"))
}

/// `default(value, default_value="", boolean=False)`.
fn default(_: &mut State, value: &Value, arguments: &Arguments) -> Result<Value, Error> {
    let is_missing = value.is_undefined() || (arguments.flag(1, false) && !value.is_true());
    let default = || arguments.given(0).cloned().unwrap_or_else(|| Value::from(""));
    Ok(if is_missing { default() } else { value.clone() })
}

pub fn add_filters(environment: &mut Environment) {
    for &(name, names, filter) in FILTERS {
        environment.add_filter(name, move |state: &mut State, value: Value, given: Rest<ValueOrKwargs>| {
            check_time()?;
            filter(state, &value, &Arguments::bind(names, &given.into_values())?)
        });
    }
    for &(name, names, filter) in TEXT_FILTERS {
        environment.add_filter(name, move |value: Value, given: Rest<ValueOrKwargs>| {
            filter(&to_text(&value)?, &Arguments::bind(names, &given.into_values())?)
        });
    }
    for (name, selection) in SELECTIONS {
        environment.add_filter(name, move |state: &mut State, value: Value, given: Rest<ValueOrKwargs>| {
            lists::select(state, &value, &given.into_values(), selection)
        });
    }
    environment.add_filter("map", lists::map);
    environment.add_filter("format", percent::format_filter);
}

pub fn add_tests(environment: &mut Environment) {
    for &(name, test) in TESTS {
        environment.add_test(name, move |value: Value| test(&value));
    }
    for (names, comparison) in COMPARISON_NAMES.iter().zip(COMPARISONS) {
        for name in *names {
            environment.add_test(*name, move |a: Value, b: Value| comparison(&a, &b));
        }
    }
    environment.add_test("divisibleby", |value: Value, divisor: i128| Ok::<_, Error>(remainder(&value, divisor)? == 0));
    environment.add_test("filter", minijinja::tests::is_filter);
    environment.add_test("sameas", minijinja::tests::is_sameas);
    environment.add_test("test", minijinja::tests::is_test);
}
