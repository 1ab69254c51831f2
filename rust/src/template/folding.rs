// SPDX-License-Identifier: Apache-2.0
//! Constant folding as in jinja2. In a folded expression a slice of a value without items is undefined; evaluated at
//! run time it is an error. A constant that is undefined itself is folded only in `{{ }}`.

use super::syntax::{Call, Expr};

/// The place of an expression.
#[derive(Clone, Copy, PartialEq)]
pub enum Standing {
    Printed,
    Elsewhere,
}

fn of_call<'a>(call: &'a mut Call, all: &mut Vec<&'a mut Expr>) {
    all.extend(call.positional.iter_mut());
    all.extend(call.named.iter_mut().map(|(_, value)| value));
    all.extend(call.splat.iter_mut().chain(&mut call.splat_named));
}

fn children(expr: &mut Expr) -> Vec<&mut Expr> {
    let mut all = Vec::new();
    match expr {
        Expr::Constant(_) | Expr::Name(_) => {}
        Expr::Tuple(items) | Expr::List(items) | Expr::Concat(items) => all.extend(items),
        Expr::Dict(pairs) => pairs.iter_mut().for_each(|(key, value)| all.extend([key, value])),
        Expr::Negative(inner) | Expr::Positive(inner) | Expr::Not(inner) | Expr::Attribute(inner, _) => all.push(inner),
        Expr::And(both) | Expr::Or(both) | Expr::Binary(_, both) | Expr::Item(both) => {
            all.extend([&mut both.0, &mut both.1]);
        }
        Expr::Compare(first, others) => {
            all.push(first);
            all.extend(others.iter_mut().map(|(_, other)| other));
        }
        Expr::Slice(parts, _) => all.extend(parts.iter_mut().flatten()),
        Expr::Filter(value, _, call) => {
            all.extend(value.as_deref_mut());
            of_call(call, &mut all);
        }
        Expr::Test(value, _, call) | Expr::Call(value, call) => {
            all.push(value);
            of_call(call, &mut all);
        }
        Expr::Condition(parts) => {
            all.extend([&mut parts.0, &mut parts.1]);
            all.extend(&mut parts.2);
        }
    }
    all
}

/// Marks the slices in a constant as folded. A slice that is the whole constant is marked only if it is printed.
fn fold(expr: &mut Expr, standing: Standing) {
    if let (Expr::Item(both), Standing::Printed) = (&mut *expr, standing) {
        if let Expr::Slice(_, is_folded) = &mut both.1 {
            *is_folded = true;
        }
    }
    children(expr).into_iter().for_each(|child| fold(child, Standing::Printed));
}

/// Finds the largest constants in an expression; returns true if the expression is one itself.
fn settle(expr: &mut Expr) -> bool {
    let reads = matches!(expr, Expr::Name(_) | Expr::Call(..) | Expr::Filter(None, ..));
    let mut constants = Vec::new();
    let mut others = 0;
    for child in children(expr) {
        match settle(child) {
            true => constants.push(child),
            false => others += 1,
        }
    }
    if !reads && others == 0 {
        return true;
    }
    constants.into_iter().for_each(|constant| fold(constant, Standing::Elsewhere));
    false
}

/// Decides for each slice in a whole expression whether it is folded.
pub fn fold_constants(expr: &mut Expr, standing: Standing) {
    if settle(expr) {
        fold(expr, standing);
    }
}
