// SPDX-License-Identifier: Apache-2.0
//! Finds the names that a part of a template reads.

use super::syntax::{Call, Expr, If, Macro, Node, Stmt, Target};

/// Calls `see` with each name that an expression reads.
pub fn walk(expr: &Expr, see: &mut dyn FnMut(&str)) {
    let mut all = |items: &[Expr]| items.iter().for_each(|item| walk(item, see));
    match expr {
        Expr::Constant(_) => {}
        Expr::Name(variable) => see(&variable.name),
        Expr::Tuple(items) | Expr::List(items) | Expr::Concat(items) => all(items),
        Expr::Dict(pairs) => pairs.iter().for_each(|(key, value)| {
            walk(key, see);
            walk(value, see);
        }),
        Expr::Negative(inner) | Expr::Positive(inner) | Expr::Not(inner) | Expr::Attribute(inner, _) => {
            walk(inner, see)
        }
        Expr::And(both) | Expr::Or(both) | Expr::Binary(_, both) | Expr::Item(both) => {
            walk(&both.0, see);
            walk(&both.1, see);
        }
        Expr::Compare(first, others) => {
            walk(first, see);
            others.iter().for_each(|(_, other)| walk(other, see));
        }
        Expr::Slice(parts, _) => parts.iter().flatten().for_each(|part| walk(part, see)),
        Expr::Filter(value, _, call) => {
            value.iter().for_each(|value| walk(value, see));
            walk_call(call, see);
        }
        Expr::Test(value, _, call) | Expr::Call(value, call) => {
            walk(value, see);
            walk_call(call, see);
        }
        Expr::Condition(parts) => {
            walk(&parts.0, see);
            walk(&parts.1, see);
            parts.2.iter().for_each(|other| walk(other, see));
        }
    }
}

fn walk_call(call: &Call, see: &mut dyn FnMut(&str)) {
    call.positional.iter().for_each(|item| walk(item, see));
    call.named.iter().for_each(|(_, item)| walk(item, see));
    call.splat.iter().chain(&call.splat_named).for_each(|item| walk(item, see));
}

/// Finds the special names that are read before they are set.
struct Special<'a> {
    macros: &'a [Option<Macro>],
    names: Vec<&'static str>,
    found: Vec<&'static str>,
}

impl Special<'_> {
    fn read(&mut self, expr: &Expr) {
        let Special { names, found, .. } = self;
        walk(expr, &mut |name| {
            found.extend(names.iter().find(|known| **known == name && !found.contains(known)).copied());
        });
    }

    fn set(&mut self, name: &str) {
        self.names.retain(|known| *known != name);
    }

    fn set_target(&mut self, target: &Target) {
        match target {
            Target::Name(variable) => self.set(&variable.name),
            Target::Attribute(..) => {}
            Target::Tuple(targets) => targets.iter().for_each(|target| self.set_target(target)),
        }
    }

    fn in_macro(&mut self, index: usize) {
        let macros = self.macros;
        let Some(node) = &macros[index] else { return };
        node.parameters.iter().for_each(|parameter| self.set(&parameter.name));
        node.defaults.iter().for_each(|default| self.read(default));
        self.in_all(&node.body);
    }

    fn in_if(&mut self, node: &If) {
        self.read(&node.test);
        self.in_all(&node.body);
        node.others.iter().for_each(|other| self.in_if(other));
        self.in_all(&node.otherwise);
    }

    fn in_all(&mut self, nodes: &[Node]) {
        for node in nodes {
            match &node.stmt {
                Stmt::Emit(expr) => self.read(expr),
                Stmt::If(node) => self.in_if(node),
                Stmt::For(node) => {
                    self.set_target(&node.target);
                    self.read(&node.iterable);
                    self.in_all(&node.body);
                    self.in_all(&node.otherwise);
                    node.test.iter().for_each(|test| self.read(test));
                }
                Stmt::With(node) => {
                    node.targets.iter().for_each(|target| self.set_target(target));
                    node.values.iter().for_each(|value| self.read(value));
                    self.in_all(&node.body);
                }
                Stmt::Set(target, expr) => {
                    self.set_target(target);
                    self.read(expr);
                }
                Stmt::SetBlock(node) => {
                    node.target.iter().for_each(|target| self.set_target(target));
                    node.filter.iter().for_each(|filter| self.read(filter));
                    self.in_all(&node.body);
                }
                Stmt::FilterBlock(node) => {
                    self.in_all(&node.body);
                    node.filter.iter().for_each(|filter| self.read(filter));
                }
                Stmt::AutoEscape(enabled, body, _) => {
                    self.read(enabled);
                    self.in_all(body);
                }
                Stmt::Macro(index) | Stmt::Generation(index) => self.in_macro(*index),
                Stmt::CallBlock(call, index) => {
                    self.read(call);
                    self.in_macro(*index);
                }
                _ => {}
            }
        }
    }
}

/// Returns those of `names` that the statements, macros included, read somewhere before they are set.
pub fn read_before_set(macros: &[Option<Macro>], nodes: &[Node], names: &[&'static str]) -> Vec<&'static str> {
    let mut special = Special { macros, names: names.to_vec(), found: Vec::new() };
    special.in_all(nodes);
    special.found
}
