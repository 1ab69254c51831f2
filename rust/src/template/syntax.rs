// SPDX-License-Identifier: Apache-2.0
//! The tree of a template. The parser makes it; scopes.rs then gives each variable its place.

use minijinja::Value;
use std::sync::Arc;

/// The place of a variable: in the record of the function that is `up` functions further out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    pub up: u32,
    pub index: u32,
}

#[derive(Debug)]
pub struct Variable {
    pub name: String,
    pub slot: Slot,
}

impl Variable {
    pub fn new(name: impl Into<String>) -> Self {
        Variable { name: name.into(), slot: Slot::default() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

#[derive(Debug, Default)]
pub struct Call {
    pub positional: Vec<Expr>,
    pub named: Vec<(String, Expr)>,
    pub splat: Option<Expr>,
    pub splat_named: Option<Expr>,
}

#[derive(Debug)]
pub enum Expr {
    Constant(Value),
    Name(Variable),
    Tuple(Vec<Expr>),
    List(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Negative(Box<Expr>),
    Positive(Box<Expr>),
    Not(Box<Expr>),
    And(Box<(Expr, Expr)>),
    Or(Box<(Expr, Expr)>),
    Binary(Operator, Box<(Expr, Expr)>),
    Concat(Vec<Expr>),
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    Attribute(Box<Expr>, String),
    Item(Box<(Expr, Expr)>),
    /// The parts of `a[b:c:d]` between its brackets, and whether it is folded (folding.rs).
    Slice(Box<[Option<Expr>; 3]>, bool),
    /// Without a value it filters a filter block's content.
    Filter(Option<Box<Expr>>, String, Box<Call>),
    Test(Box<Expr>, String, Box<Call>),
    Call(Box<Expr>, Box<Call>),
    /// Test, value, other value.
    Condition(Box<(Expr, Expr, Option<Expr>)>),
}

#[derive(Debug)]
pub enum Target {
    Name(Variable),
    /// `namespace.attribute`.
    Attribute(Variable, String),
    Tuple(Vec<Target>),
}

/// The first value of a variable when its scope begins.
#[derive(Debug)]
pub enum Load {
    /// The code that opens the scope sets it.
    Parameter,
    /// The caller's variable of this name.
    Resolve(String),
    /// The value of a variable further out.
    Alias(Slot),
    Missing,
}

/// The variables of a scope and their first values.
#[derive(Debug, Default)]
pub struct Scope {
    pub loads: Vec<(u32, Load)>,
}

#[derive(Debug)]
pub struct For {
    pub target: Target,
    pub iterable: Expr,
    pub test: Option<Expr>,
    /// The target in the test's scope.
    pub test_target: Target,
    pub is_recursive: bool,
    pub body: Vec<Node>,
    pub otherwise: Vec<Node>,
    /// The place of `loop`, if anything uses it.
    pub loop_slot: Option<u32>,
    pub body_scope: Scope,
    pub test_scope: Scope,
    pub otherwise_scope: Scope,
    /// Number of variables in a recursive loop's own record.
    pub slots: u32,
}

#[derive(Debug)]
pub struct If {
    pub test: Expr,
    pub body: Vec<Node>,
    pub others: Vec<If>,
    pub otherwise: Vec<Node>,
}

#[derive(Debug)]
pub struct With {
    pub targets: Vec<Target>,
    pub values: Vec<Expr>,
    pub body: Vec<Node>,
    pub scope: Scope,
}

/// A part whose output becomes a value: a set block or a filter block.
#[derive(Debug)]
pub struct Captured {
    pub target: Option<Target>,
    pub filter: Option<Expr>,
    pub body: Vec<Node>,
    pub scope: Scope,
}

/// A macro or the body of a call block.
#[derive(Debug)]
pub struct Macro {
    pub variable: Variable,
    pub parameters: Vec<Variable>,
    /// Defaults of the last parameters.
    pub defaults: Vec<Expr>,
    pub body: Vec<Node>,
    pub scope: Scope,
    pub slots: u32,
    pub caller_slot: Option<u32>,
    pub kwargs_slot: Option<u32>,
    pub varargs_slot: Option<u32>,
}

#[derive(Debug)]
pub struct Block {
    pub name: String,
    pub body: Vec<Node>,
    pub scope: Scope,
    pub slots: u32,
}

#[derive(Debug)]
pub enum Stmt {
    Data(String),
    Emit(Expr),
    If(Box<If>),
    For(Arc<For>),
    With(Box<With>),
    Set(Target, Expr),
    SetBlock(Box<Captured>),
    FilterBlock(Box<Captured>),
    AutoEscape(Expr, Vec<Node>, Scope),
    /// An index into `Template::macros`.
    Macro(usize),
    /// The call, and the macro that it gets as `caller`.
    CallBlock(Expr, usize),
    /// `{% generation %}`: a call block without a call.
    Generation(usize),
    /// An index into `Template::blocks`.
    Block(usize),
    Break,
    Continue,
    /// A tag that needs another template.
    Elsewhere(&'static str),
}

#[derive(Debug)]
pub struct Node {
    pub line: u32,
    pub stmt: Stmt,
}

#[derive(Debug, Default)]
pub struct Template {
    pub body: Vec<Node>,
    pub macros: Vec<Macro>,
    pub blocks: Vec<Block>,
    pub scope: Scope,
    pub slots: u32,
    /// Variables of the outermost scope that blocks may read.
    pub exported: Vec<(String, u32)>,
}
