// SPDX-License-Identifier: Apache-2.0
//! Evaluates a template's expressions.

use super::arguments::{invalid, split};
use super::budget::{claim, step, Text, OVERHEAD, PAIR_SIZE};
use super::compare;
use super::evaluate::{is_escaping, Frame};
use super::filters::{apply_filter, perform_test};
use super::functions::call_value;
use super::integers;
use super::lists::items_of;
use super::methods;
use super::operators;
use super::python::{kind_name, write_str};
use super::syntax::{Call, Comparison, Expr, Operator};
use super::texts::push_escaped;
use super::values::{dict_of, list, tuple, Dict};
use minijinja::value::Kwargs;
use minijinja::{Error, Value};
use std::borrow::Cow;

fn compare_values(comparison: Comparison, a: &Value, b: &Value) -> Result<bool, Error> {
    match comparison {
        Comparison::Equal => compare::equal(a, b),
        Comparison::NotEqual => Ok(!compare::equal(a, b)?),
        Comparison::Less => compare::holds(a, b, |order| order.is_lt()),
        Comparison::LessOrEqual => compare::holds(a, b, |order| order.is_le()),
        Comparison::Greater => compare::holds(a, b, |order| order.is_gt()),
        Comparison::GreaterOrEqual => compare::holds(a, b, |order| order.is_ge()),
        Comparison::In => compare::contains(b, a),
        Comparison::NotIn => Ok(!compare::contains(b, a)?),
    }
}

fn binary(operator: Operator, a: &Value, b: &Value) -> Result<Value, Error> {
    match operator {
        Operator::Add => operators::add(a, b),
        Operator::Multiply => operators::multiply(a, b),
        Operator::Modulo => operators::modulo(a, b),
        _ => operators::numbers(operator, a, b),
    }
}

/// `a ~ b ~ c`.
fn concat(parts: &[Value]) -> Result<Value, Error> {
    let mut out = Text::default();
    if !is_escaping() {
        parts.iter().try_for_each(|part| write_str(&mut out, part))?;
        return Ok(Value::from(out.into_string()));
    }
    for part in parts {
        if part.is_safe() {
            write_str(&mut out, part)?;
        } else {
            push_escaped(&mut out, &super::python::to_text(part)?)?;
        }
    }
    Ok(Value::from_safe_string(out.into_string()))
}

impl Frame<'_> {
    pub fn value(&self, expr: &Expr) -> Result<Value, Error> {
        let _level = step()?;
        Ok(match expr {
            Expr::Constant(value) => value.clone(),
            Expr::Name(variable) => self.record.get(variable.slot).unwrap_or_default(),
            Expr::Tuple(items) => tuple(self.values(items)?),
            Expr::List(items) => list(self.values(items)?),
            Expr::Dict(pairs) => {
                claim(OVERHEAD + pairs.len() * PAIR_SIZE)?;
                let mut dict = Dict::default();
                for (key, value) in pairs {
                    dict.insert(self.value(key)?, self.value(value)?)?;
                }
                dict.into()
            }
            Expr::Negative(inner) => integers::negative(&self.value(inner)?)?,
            Expr::Positive(inner) => operators::positive(&self.value(inner)?)?,
            Expr::Not(inner) => Value::from(!self.holds(inner)?),
            Expr::And(both) => {
                let left = self.value(&both.0)?;
                if left.is_true() {
                    self.value(&both.1)?
                } else {
                    left
                }
            }
            Expr::Or(both) => {
                let left = self.value(&both.0)?;
                if left.is_true() {
                    left
                } else {
                    self.value(&both.1)?
                }
            }
            Expr::Binary(operator, both) => binary(*operator, &self.value(&both.0)?, &self.value(&both.1)?)?,
            Expr::Concat(parts) => concat(&self.values(parts)?)?,
            Expr::Compare(first, others) => Value::from(self.comparison(first, others)?),
            Expr::Attribute(inner, name) => self.attribute(inner, name)?,
            Expr::Item(both) => self.item(&both.0, &both.1)?,
            Expr::Slice(..) => return Err(invalid("a slice as a key")),
            Expr::Filter(Some(inner), name, call) => {
                let value = self.value(inner)?;
                apply_filter(name, &value, &self.arguments(call, None)?)?
            }
            Expr::Filter(None, ..) => return Err(invalid("a filter of nothing")),
            Expr::Test(inner, name, call) => {
                let value = self.value(inner)?;
                Value::from(perform_test(name, &value, &self.arguments(call, None)?)?)
            }
            Expr::Call(..) => self.call_with(expr, None)?,
            Expr::Condition(parts) => match (self.holds(&parts.0)?, &parts.2) {
                (true, _) => self.value(&parts.1)?,
                (false, Some(other)) => self.value(other)?,
                (false, None) => Value::UNDEFINED,
            },
        })
    }

    fn values(&self, items: &[Expr]) -> Result<Vec<Value>, Error> {
        claim(OVERHEAD + size_of_val(items).min(items.len() * size_of::<Value>()))?;
        items.iter().map(|item| self.value(item)).collect()
    }

    /// True if the expression's value counts as true; makes no value of comparisons.
    pub fn holds(&self, expr: &Expr) -> Result<bool, Error> {
        match expr {
            Expr::Compare(first, others) => {
                let _level = step()?;
                self.comparison(first, others)
            }
            Expr::And(both) => {
                let _level = step()?;
                Ok(self.holds(&both.0)? && self.holds(&both.1)?)
            }
            Expr::Or(both) => {
                let _level = step()?;
                Ok(self.holds(&both.0)? || self.holds(&both.1)?)
            }
            _ => Ok(self.value(expr)?.is_true()),
        }
    }

    fn comparison(&self, first: &Expr, others: &[(Comparison, Expr)]) -> Result<bool, Error> {
        let mut left = self.operand(first)?;
        for (comparison, other) in others {
            let right = self.operand(other)?;
            if !compare_values(*comparison, &left, &right)? {
                return Ok(false);
            }
            left = right;
        }
        Ok(true)
    }

    /// The value of an expression; a constant stays in the tree.
    fn operand<'e>(&self, expr: &'e Expr) -> Result<Cow<'e, Value>, Error> {
        match expr {
            Expr::Constant(value) => Ok(Cow::Borrowed(value)),
            _ => self.value(expr).map(Cow::Owned),
        }
    }

    fn attribute(&self, inner: &Expr, name: &str) -> Result<Value, Error> {
        if let Expr::Name(variable) = inner {
            if let Some(found) = self.record.member(variable.slot, name) {
                return Ok(found);
            }
        }
        methods::attribute(&self.value(inner)?, name)
    }

    fn item(&self, inner: &Expr, key: &Expr) -> Result<Value, Error> {
        let value = self.value(inner)?;
        let Expr::Slice(parts, is_folded) = key else {
            return methods::item(&value, &self.value(key)?);
        };
        if *is_folded && !operators::is_sliceable(&value) {
            return Ok(Value::UNDEFINED);
        }
        let [start, stop, step] =
            [0, 1, 2].map(|i| parts[i].as_ref().map_or(Ok(Value::from(())), |part| self.value(part)));
        operators::slice(&value, &start?, &stop?, &step?)
    }

    /// The arguments of a call; named ones come last, as one value.
    fn arguments(&self, call: &Call, caller: Option<Value>) -> Result<Vec<Value>, Error> {
        let mut given = Vec::with_capacity(call.positional.len() + 1);
        for argument in &call.positional {
            given.push(self.value(argument)?);
        }
        let mut named: Vec<(String, Value)> = Vec::new();
        for (name, argument) in &call.named {
            named.push((name.clone(), self.value(argument)?));
        }
        if let Some(splat) = &call.splat {
            for item in items_of(&self.value(splat)?)? {
                claim(size_of::<Value>())?;
                given.push(item?);
            }
        }
        named.extend(caller.map(|caller| ("caller".to_owned(), caller)));
        if let Some(splat) = &call.splat_named {
            let pairs = self.value(splat)?;
            let Some(pairs) = dict_of(&pairs) else {
                return Err(invalid(format!("** of {}, a dict expected", kind_name(&pairs))));
            };
            let known: std::collections::HashSet<String> = named.iter().map(|(name, _)| name.clone()).collect();
            for (key, value) in pairs.pairs() {
                let name = key.as_str().ok_or_else(|| invalid(format!("{} as an argument's name", kind_name(key))))?;
                if known.contains(name) {
                    return Err(invalid(format!("argument {name} is given twice")));
                }
                claim(name.len() + PAIR_SIZE)?;
                named.push((name.to_owned(), value.clone()));
            }
        }
        if !named.is_empty() {
            given.push(named.into_iter().collect::<Kwargs>().into());
        }
        Ok(given)
    }

    /// Evaluates a call; that of a call block has a caller.
    pub fn call_with(&self, expr: &Expr, caller: Option<Value>) -> Result<Value, Error> {
        let Expr::Call(callee, call) = expr else { return Err(invalid("a call expected")) };
        if let Expr::Attribute(inner, name) = callee.as_ref() {
            let value = self.value(inner)?;
            if methods::has_method(&value, name) {
                return methods::call(&value, name, &self.arguments(call, caller)?);
            }
            let callee = methods::attribute(&value, name)?;
            if callee.is_undefined() {
                return Err(invalid(format!("{name} of {} is undefined", kind_name(&value))));
            }
            return call_value(&callee, &self.arguments(call, caller)?);
        }
        let value = self.value(callee)?;
        if let (true, Expr::Name(variable)) = (value.is_undefined(), callee.as_ref()) {
            return Err(invalid(format!("{} is undefined", variable.name)));
        }
        call_value(&value, &self.arguments(call, caller)?)
    }

    /// Applies a chain of filters to a block's content.
    pub fn filtered(&self, expr: &Expr, content: Value) -> Result<Value, Error> {
        match expr {
            Expr::Filter(inner, name, call) => {
                let value =
                    inner.as_ref().map_or(Ok(content.clone()), |inner| self.filtered(inner, content.clone()))?;
                apply_filter(name, &value, &self.arguments(call, None)?)
            }
            _ => Err(invalid("a filter expected")),
        }
    }
}

/// The named arguments of a call, in order.
pub fn named_of(given: &[Value]) -> Result<(&[Value], Vec<(String, Value)>), Error> {
    let (positional, named) = split(given);
    let mut pairs = Vec::new();
    for name in named.iter().flat_map(Kwargs::args) {
        let value: Value = named.as_ref().map(|named| named.get(name)).transpose()?.unwrap_or_default();
        pairs.push((name.to_owned(), value));
    }
    Ok((positional, pairs))
}
