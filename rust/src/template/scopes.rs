// SPDX-License-Identifier: Apache-2.0
//! Gives each variable of a template its place, by jinja2's rules. jinja2 compiles a template to Python functions, and
//! its scopes follow from that. A scope decides before it begins which names are its own, so a name that is set
//! anywhere in it is never read from the caller. Loops, macros, call blocks, set blocks, filter blocks, `with` and the
//! `else` of a loop are scopes; `if` is none. Macros, call blocks and recursive loops have a record of their own for
//! each call, and share those further out.

use super::arguments::{invalid, set_line};
use super::filters::{has_filter, has_test};
use super::folding::{fold_constants, Standing};
use super::names::{read_before_set, walk};
use super::syntax::{
    Call, Captured, Expr, For, If, Load, Macro, Node, Scope, Slot, Stmt, Target, Template, Variable, With,
};
use minijinja::Error;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// A variable's place: the depth of its function and its index there.
#[derive(Clone, Copy)]
struct Place {
    depth: u32,
    index: u32,
}

#[derive(Clone)]
enum First {
    Parameter,
    Resolve(String),
    Alias(Place),
    Missing,
}

/// The names of a scope that are known so far.
#[derive(Clone, Default)]
struct Symbols {
    places: HashMap<String, Place>,
    first: BTreeMap<u32, First>,
    stores: HashSet<String>,
}

struct Frame {
    symbols: Symbols,
    parent: Option<usize>,
    function: usize,
    /// A name has one place in all branches.
    indices: HashMap<String, u32>,
}

struct Function {
    depth: u32,
    slots: u32,
}

struct Resolver {
    frames: Vec<Frame>,
    functions: Vec<Function>,
    /// None while a macro is being resolved.
    macros: Vec<Option<Macro>>,
}

/// Collects the uses of names in one scope's statements, before names are bound.
impl Resolver {
    fn find(&self, frame: usize, name: &str) -> Option<Place> {
        let mut at = Some(frame);
        while let Some(frame) = at {
            if let Some(&place) = self.frames[frame].symbols.places.get(name) {
                return Some(place);
            }
            at = self.frames[frame].parent;
        }
        None
    }

    fn define(&mut self, frame: usize, name: &str, first: First) -> u32 {
        let Frame { symbols, function, indices, .. } = &mut self.frames[frame];
        let function = &mut self.functions[*function];
        let index = *indices.entry(name.to_owned()).or_insert_with(|| {
            function.slots += 1;
            function.slots - 1
        });
        symbols.places.insert(name.to_owned(), Place { depth: function.depth, index });
        symbols.first.insert(index, first);
        index
    }

    fn declare(&mut self, frame: usize, name: &str) -> u32 {
        self.frames[frame].symbols.stores.insert(name.to_owned());
        self.define(frame, name, First::Parameter)
    }

    fn store(&mut self, frame: usize, name: &str) {
        self.frames[frame].symbols.stores.insert(name.to_owned());
        if !self.frames[frame].symbols.places.contains_key(name) {
            let outer = self.frames[frame].parent.and_then(|parent| self.find(parent, name));
            self.define(frame, name, outer.map_or(First::Missing, First::Alias));
        }
    }

    fn load(&mut self, frame: usize, name: &str) {
        if self.find(frame, name).is_none() {
            self.define(frame, name, First::Resolve(name.to_owned()));
        }
    }

    fn see_target(&mut self, frame: usize, target: &Target, is_parameter: bool) {
        match target {
            Target::Name(variable) if is_parameter => {
                self.declare(frame, &variable.name);
            }
            Target::Name(variable) => self.store(frame, &variable.name),
            Target::Attribute(variable, _) => self.load(frame, &variable.name),
            Target::Tuple(targets) => targets.iter().for_each(|target| self.see_target(frame, target, is_parameter)),
        }
    }

    fn see(&mut self, frame: usize, expr: &Expr) {
        walk(expr, &mut |name| self.load(frame, name));
    }

    fn see_branch(&mut self, frame: usize, see: impl FnOnce(&mut Self)) -> Symbols {
        let before = self.frames[frame].symbols.clone();
        see(self);
        std::mem::replace(&mut self.frames[frame].symbols, before)
    }

    fn see_if(&mut self, frame: usize, node: &If) {
        self.see(frame, &node.test);
        let branches = [
            self.see_branch(frame, |resolver| resolver.see_all(frame, &node.body)),
            self.see_branch(frame, |resolver| node.others.iter().for_each(|other| resolver.see_if(frame, other))),
            self.see_branch(frame, |resolver| resolver.see_all(frame, &node.otherwise)),
        ];
        let known = self.frames[frame].symbols.stores.clone();
        let stores: HashSet<String> =
            branches.iter().flat_map(|branch| branch.stores.difference(&known).cloned()).collect();
        for branch in branches {
            let symbols = &mut self.frames[frame].symbols;
            symbols.places.extend(branch.places);
            symbols.first.extend(branch.first);
            symbols.stores.extend(branch.stores);
        }
        // A name that only some branches set keeps its outer value in the others.
        for name in stores {
            let outer = self.frames[frame].parent.and_then(|parent| self.find(parent, &name));
            let first = outer.map_or_else(|| First::Resolve(name.clone()), First::Alias);
            let Some(place) = self.find(frame, &name) else { continue };
            self.frames[frame].symbols.first.insert(place.index, first);
        }
    }

    fn see_all(&mut self, frame: usize, nodes: &[Node]) {
        for node in nodes {
            self.see_statement(frame, &node.stmt);
        }
    }

    fn see_statement(&mut self, frame: usize, stmt: &Stmt) {
        match stmt {
            Stmt::Emit(expr) | Stmt::CallBlock(expr, _) => self.see(frame, expr),
            Stmt::If(node) => self.see_if(frame, node),
            Stmt::For(node) => self.see(frame, &node.iterable),
            Stmt::With(node) => node.values.iter().for_each(|value| self.see(frame, value)),
            Stmt::Set(target, expr) => {
                self.see(frame, expr);
                self.see_target(frame, target, false);
            }
            Stmt::SetBlock(node) => node.target.iter().for_each(|target| self.see_target(frame, target, false)),
            Stmt::FilterBlock(node) => node.filter.iter().for_each(|filter| self.see(frame, filter)),
            Stmt::Macro(index) => {
                let name = self.macros[*index].as_ref().map(|node| node.variable.name.clone()).unwrap_or_default();
                self.store(frame, &name);
            }
            _ => {}
        }
    }
}

/// Binds names to places, scope by scope from the outside in.
impl Resolver {
    fn special(&self, nodes: &[Node], names: &[&'static str]) -> Vec<&'static str> {
        read_before_set(&self.macros, nodes, names)
    }

    fn open_function(&mut self, depth: u32) -> usize {
        self.functions.push(Function { depth, slots: 0 });
        self.functions.len() - 1
    }

    fn open(&mut self, parent: Option<usize>, function: usize) -> usize {
        self.frames.push(Frame { symbols: Symbols::default(), parent, function, indices: HashMap::new() });
        self.frames.len() - 1
    }

    fn inner(&mut self, frame: usize) -> usize {
        self.open(Some(frame), self.frames[frame].function)
    }

    fn depth(&self, frame: usize) -> u32 {
        self.functions[self.frames[frame].function].depth
    }

    fn slot(&self, frame: usize, place: Place) -> Slot {
        Slot { up: self.depth(frame) - place.depth, index: place.index }
    }

    fn scope(&self, frame: usize) -> Scope {
        let load = |first: &First| match first {
            First::Parameter => Load::Parameter,
            First::Resolve(name) => Load::Resolve(name.clone()),
            First::Alias(place) => Load::Alias(self.slot(frame, *place)),
            First::Missing => Load::Missing,
        };
        Scope { loads: self.frames[frame].symbols.first.iter().map(|(index, first)| (*index, load(first))).collect() }
    }

    fn bind_variable(&self, frame: usize, variable: &mut Variable) -> Result<(), Error> {
        let name = &variable.name;
        let place = self.find(frame, name).ok_or_else(|| invalid(format!("{name} is not known here")))?;
        variable.slot = self.slot(frame, place);
        Ok(())
    }

    fn bind_target(&self, frame: usize, target: &mut Target) -> Result<(), Error> {
        match target {
            Target::Name(variable) | Target::Attribute(variable, _) => self.bind_variable(frame, variable),
            Target::Tuple(targets) => targets.iter_mut().try_for_each(|target| self.bind_target(frame, target)),
        }
    }

    fn bind_call(&self, frame: usize, call: &mut Call, is_soft: bool) -> Result<(), Error> {
        let named = call.named.iter_mut().map(|(_, value)| value);
        let all = call.positional.iter_mut().chain(named).chain(&mut call.splat).chain(&mut call.splat_named);
        all.into_iter().try_for_each(|expr| self.bind_names(frame, expr, is_soft))
    }

    /// Binds a whole expression. `is_soft`: a missing filter fails only when it is used.
    fn bind(&self, frame: usize, expr: &mut Expr, is_soft: bool) -> Result<(), Error> {
        fold_constants(expr, Standing::Elsewhere);
        self.bind_names(frame, expr, is_soft)
    }

    fn bind_names(&self, frame: usize, expr: &mut Expr, is_soft: bool) -> Result<(), Error> {
        match expr {
            Expr::Constant(_) => Ok(()),
            Expr::Name(variable) => self.bind_variable(frame, variable),
            Expr::Tuple(items) | Expr::List(items) | Expr::Concat(items) => {
                items.iter_mut().try_for_each(|item| self.bind_names(frame, item, is_soft))
            }
            Expr::Dict(pairs) => pairs.iter_mut().try_for_each(|(key, value)| {
                self.bind_names(frame, key, is_soft)?;
                self.bind_names(frame, value, is_soft)
            }),
            Expr::Negative(inner) | Expr::Positive(inner) | Expr::Not(inner) | Expr::Attribute(inner, _) => {
                self.bind_names(frame, inner, is_soft)
            }
            Expr::And(both) | Expr::Or(both) | Expr::Binary(_, both) | Expr::Item(both) => {
                self.bind_names(frame, &mut both.0, is_soft)?;
                self.bind_names(frame, &mut both.1, is_soft)
            }
            Expr::Compare(first, others) => {
                self.bind_names(frame, first, is_soft)?;
                others.iter_mut().try_for_each(|(_, other)| self.bind_names(frame, other, is_soft))
            }
            Expr::Slice(parts, _) => {
                parts.iter_mut().flatten().try_for_each(|part| self.bind_names(frame, part, is_soft))
            }
            Expr::Filter(value, name, call) => {
                if !is_soft && !has_filter(name) {
                    return Err(invalid(format!("the filter {name} is unknown")));
                }
                value.iter_mut().try_for_each(|value| self.bind_names(frame, value, is_soft))?;
                self.bind_call(frame, call, is_soft)
            }
            Expr::Test(value, name, call) => {
                if !is_soft && !has_test(name) {
                    return Err(invalid(format!("the test {name} is unknown")));
                }
                self.bind_names(frame, value, is_soft)?;
                self.bind_call(frame, call, is_soft)
            }
            Expr::Call(value, call) => {
                self.bind_names(frame, value, is_soft)?;
                self.bind_call(frame, call, is_soft)
            }
            Expr::Condition(parts) => {
                self.bind_names(frame, &mut parts.0, true)?;
                self.bind_names(frame, &mut parts.1, true)?;
                parts.2.iter_mut().try_for_each(|other| self.bind_names(frame, other, true))
            }
        }
    }

    fn bind_if(&mut self, frame: usize, node: &mut If) -> Result<(), Error> {
        self.bind(frame, &mut node.test, true)?;
        self.bind_all(frame, &mut node.body, true)?;
        node.others.iter_mut().try_for_each(|other| self.bind_if(frame, other))?;
        self.bind_all(frame, &mut node.otherwise, true)
    }

    fn bind_for(&mut self, frame: usize, node: &mut For, is_soft: bool) -> Result<(), Error> {
        self.bind(frame, &mut node.iterable, is_soft)?;
        let function = match node.is_recursive {
            true => self.open_function(self.depth(frame) + 1),
            false => self.frames[frame].function,
        };
        let [body, otherwise, test] = [0; 3].map(|_| self.open(Some(frame), function));
        if node.is_recursive || !self.special(&node.body, &["loop"]).is_empty() {
            node.loop_slot = Some(self.declare(body, "loop"));
        }
        self.see_target(body, &node.target, true);
        self.see_all(body, &node.body);
        self.see_all(otherwise, &node.otherwise);
        self.see_target(test, &node.test_target, true);
        node.test.iter().for_each(|condition| self.see(test, condition));
        self.bind_target(body, &mut node.target)?;
        self.bind_target(test, &mut node.test_target)?;
        node.test.iter_mut().try_for_each(|condition| self.bind(test, condition, false))?;
        self.bind_all(body, &mut node.body, false)?;
        self.bind_all(otherwise, &mut node.otherwise, false)?;
        node.body_scope = self.scope(body);
        node.otherwise_scope = self.scope(otherwise);
        node.test_scope = self.scope(test);
        node.slots = self.functions[function].slots;
        Ok(())
    }

    fn bind_with(&mut self, frame: usize, node: &mut With, is_soft: bool) -> Result<(), Error> {
        node.values.iter_mut().try_for_each(|value| self.bind(frame, value, is_soft))?;
        let inner = self.inner(frame);
        node.targets.iter().for_each(|target| self.see_target(inner, target, true));
        self.see_all(inner, &node.body);
        node.targets.iter_mut().try_for_each(|target| self.bind_target(inner, target))?;
        self.bind_all(inner, &mut node.body, false)?;
        node.scope = self.scope(inner);
        Ok(())
    }

    fn bind_captured(&mut self, frame: usize, node: &mut Captured) -> Result<(), Error> {
        let inner = self.inner(frame);
        self.see_all(inner, &node.body);
        if let (None, Some(filter)) = (&node.target, &node.filter) {
            self.see(inner, filter);
        }
        self.bind_all(inner, &mut node.body, false)?;
        node.target.iter_mut().try_for_each(|target| self.bind_target(frame, target))?;
        node.filter.iter_mut().try_for_each(|filter| self.bind(inner, filter, false))?;
        node.scope = self.scope(inner);
        Ok(())
    }

    fn bind_macro(&mut self, frame: usize, index: usize) -> Result<(), Error> {
        let Some(mut node) = self.macros[index].take() else { return Ok(()) };
        let function = self.open_function(self.depth(frame) + 1);
        let inner = self.open(Some(frame), function);
        for parameter in &node.parameters {
            self.declare(inner, &parameter.name);
        }
        node.defaults.iter().for_each(|default| self.see(inner, default));
        self.see_all(inner, &node.body);
        let special = self.special(&node.body, &["caller", "kwargs", "varargs"]);
        let first_default = node.parameters.len() - node.defaults.len();
        for (name, slot) in
            [("caller", &mut node.caller_slot), ("kwargs", &mut node.kwargs_slot), ("varargs", &mut node.varargs_slot)]
        {
            match node.parameters.iter().position(|parameter| parameter.name == name) {
                Some(place) if name == "caller" && place < first_default && special.contains(&name) => {
                    return Err(invalid("a parameter named caller needs a default"));
                }
                None if special.contains(&name) => *slot = Some(self.declare(inner, name)),
                _ => {}
            }
        }
        node.parameters.iter_mut().try_for_each(|parameter| self.bind_variable(inner, parameter))?;
        node.defaults.iter_mut().try_for_each(|default| self.bind(inner, default, false))?;
        self.bind_all(inner, &mut node.body, false)?;
        node.scope = self.scope(inner);
        node.slots = self.functions[function].slots;
        self.macros[index] = Some(node);
        Ok(())
    }

    fn bind_all(&mut self, frame: usize, nodes: &mut [Node], is_soft: bool) -> Result<(), Error> {
        for node in nodes {
            set_line(node.line);
            match &mut node.stmt {
                Stmt::Emit(expr) => {
                    fold_constants(expr, Standing::Printed);
                    self.bind_names(frame, expr, is_soft)?;
                }
                Stmt::If(node) => self.bind_if(frame, node)?,
                // Nobody else holds the loop yet.
                Stmt::For(node) => Arc::get_mut(node).map_or(Ok(()), |node| self.bind_for(frame, node, is_soft))?,
                Stmt::With(node) => self.bind_with(frame, node, is_soft)?,
                Stmt::Set(target, expr) => {
                    self.bind(frame, expr, is_soft)?;
                    self.bind_target(frame, target)?;
                }
                Stmt::SetBlock(node) | Stmt::FilterBlock(node) => self.bind_captured(frame, node)?,
                Stmt::AutoEscape(enabled, body, scope) => {
                    let inner = self.inner(frame);
                    self.see(inner, enabled);
                    self.see_all(inner, body);
                    self.bind(inner, enabled, false)?;
                    self.bind_all(inner, body, false)?;
                    *scope = self.scope(inner);
                }
                Stmt::Macro(index) => {
                    let index = *index;
                    self.bind_macro(frame, index)?;
                    if let Some(mut node) = self.macros[index].take() {
                        self.bind_variable(frame, &mut node.variable)?;
                        self.macros[index] = Some(node);
                    }
                }
                Stmt::Generation(index) => self.bind_macro(frame, *index)?,
                Stmt::CallBlock(call, index) => {
                    self.bind_macro(frame, *index)?;
                    self.bind(frame, call, is_soft)?;
                }
                Stmt::Data(_) | Stmt::Block(_) | Stmt::Break | Stmt::Continue | Stmt::Elsewhere(_) => {}
            }
        }
        Ok(())
    }
}

/// Binds all names of a template.
pub fn resolve(template: &mut Template) -> Result<(), Error> {
    let macros = std::mem::take(&mut template.macros).into_iter().map(Some).collect();
    let mut resolver = Resolver { frames: Vec::new(), functions: Vec::new(), macros };
    let function = resolver.open_function(0);
    let root = resolver.open(None, function);
    resolver.see_all(root, &template.body);
    resolver.bind_all(root, &mut template.body, false)?;
    template.scope = resolver.scope(root);
    template.slots = resolver.functions[function].slots;
    let symbols = &resolver.frames[root].symbols;
    let exported = symbols.stores.iter().filter_map(|name| Some((name.clone(), symbols.places.get(name)?.index)));
    template.exported = exported.collect();
    for block in &mut template.blocks {
        let function = resolver.open_function(0);
        let frame = resolver.open(None, function);
        resolver.see_all(frame, &block.body);
        resolver.bind_all(frame, &mut block.body, false)?;
        block.scope = resolver.scope(frame);
        block.slots = resolver.functions[function].slots;
    }
    template.macros = resolver.macros.into_iter().flatten().collect();
    Ok(())
}
