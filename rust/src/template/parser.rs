// SPDX-License-Identifier: Apache-2.0
//! Parses a template's statements from its tokens, by jinja2's grammar with the extensions that transformers loads:
//! loop controls and `{% generation %}`. Expressions are in expressions.rs.

use super::arguments::{invalid, set_line};
use super::lexer::{tokenize, Token};
use super::syntax::{Block, Captured, Expr, For, If, Macro, Node, Scope, Stmt, Target, Template, Variable, With};
use minijinja::Error;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum nesting of statements and expressions. Python's recursion ends earlier.
const MAX_NESTING: u32 = 200;
/// Maximum chain of operators, filters and the like, each around the one before.
const MAX_LINKS: u32 = 4000;

pub struct Parser {
    tokens: VecDeque<(Token, u32)>,
    nesting: u32,
    links: u32,
    /// Loops around the current statement; macros and call blocks start at none.
    loops: u32,
    template: Template,
}

impl Parser {
    pub fn peek(&self) -> &Token {
        self.tokens.front().map_or(&Token::End, |token| &token.0)
    }

    pub fn peek_second(&self) -> &Token {
        self.tokens.get(1).map_or(&Token::End, |token| &token.0)
    }

    pub fn line(&self) -> u32 {
        self.tokens.front().map_or(0, |token| token.1)
    }

    pub fn next(&mut self) -> Token {
        self.tokens.pop_front().map_or(Token::End, |token| token.0)
    }

    pub fn fail<T>(&self, text: impl Into<String>) -> Result<T, Error> {
        set_line(self.line());
        Err(invalid(format!("syntax error: {}", text.into())))
    }

    pub fn unexpected<T>(&self, expected: &str) -> Result<T, Error> {
        let got = match self.peek() {
            Token::Name(name) => name.clone(),
            Token::Operator(operator) => (*operator).to_owned(),
            Token::BlockEnd | Token::VariableEnd => "the end of the tag".to_owned(),
            Token::End | Token::Data(_) | Token::BlockBegin | Token::VariableBegin => "the end".to_owned(),
            Token::Text(_) => "a string".to_owned(),
            Token::Integer(_) | Token::Float(_) => "a number".to_owned(),
        };
        self.fail(format!("got {got}, expected {expected}"))
    }

    pub fn is_operator(&self, operator: &str) -> bool {
        matches!(self.peek(), Token::Operator(found) if *found == operator)
    }

    pub fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Name(found) if found == word)
    }

    pub fn skip_operator(&mut self, operator: &str) -> bool {
        let found = self.is_operator(operator);
        if found {
            self.next();
        }
        found
    }

    pub fn skip_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.next();
        }
        found
    }

    pub fn expect_operator(&mut self, operator: &str) -> Result<(), Error> {
        if self.skip_operator(operator) {
            Ok(())
        } else {
            self.unexpected(operator)
        }
    }

    fn expect_word(&mut self, word: &str) -> Result<(), Error> {
        if self.skip_word(word) {
            Ok(())
        } else {
            self.unexpected(word)
        }
    }

    pub fn name(&mut self) -> Result<String, Error> {
        match self.peek() {
            Token::Name(_) => match self.next() {
                Token::Name(name) => Ok(name),
                _ => Ok(String::new()),
            },
            _ => self.unexpected("a name"),
        }
    }

    /// Runs `parse` one nesting level deeper.
    pub fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.nesting >= MAX_NESTING {
            return self.fail("nested too deeply");
        }
        self.nesting += 1;
        let links = self.links;
        let result = parse(self);
        self.links = links;
        self.nesting -= 1;
        result
    }

    /// Counts one more link around the expression that was read so far.
    pub fn link(&mut self) -> Result<(), Error> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return self.fail("an expression that is too long");
        }
        Ok(())
    }

    fn block_end(&mut self) -> Result<(), Error> {
        match self.peek() {
            Token::BlockEnd => {
                self.next();
                Ok(())
            }
            _ => self.unexpected("the end of the tag"),
        }
    }

    fn assigned_name(&mut self) -> Result<String, Error> {
        let name = self.name()?;
        if ["true", "false", "none", "True", "False", "None"].contains(&name.as_str()) {
            return self.fail(format!("{name} cannot be assigned to"));
        }
        Ok(name)
    }

    fn single_target(&mut self, with_namespace: bool) -> Result<Target, Error> {
        if self.skip_operator("(") {
            let target = self.nested(|parser| parser.target(&[], false, true))?;
            self.expect_operator(")")?;
            return Ok(target);
        }
        let name = self.assigned_name()?;
        if with_namespace && self.skip_operator(".") {
            return Ok(Target::Attribute(Variable::new(name), self.name()?));
        }
        Ok(Target::Name(Variable::new(name)))
    }

    /// One target, or several with commas between them, up to `ends`.
    fn target(&mut self, ends: &[&str], with_namespace: bool, is_explicit: bool) -> Result<Target, Error> {
        let (mut targets, mut is_tuple) = (Vec::new(), false);
        loop {
            let is_end = self.is_operator(")") || matches!(self.peek(), Token::BlockEnd | Token::VariableEnd);
            if is_end || ends.iter().any(|end| self.is_word(end)) {
                break;
            }
            targets.push(self.single_target(with_namespace)?);
            if !self.skip_operator(",") {
                break;
            }
            is_tuple = true;
        }
        match targets.pop() {
            Some(target) if !is_tuple => Ok(target),
            None if !is_explicit => self.unexpected("a name"),
            last => Ok(Target::Tuple(targets.into_iter().chain(last).collect())),
        }
    }

    /// The statements up to a tag that starts with one of `ends`, whose word is consumed.
    fn body(&mut self, ends: &[&str]) -> Result<(Vec<Node>, String), Error> {
        self.skip_operator(":");
        self.block_end()?;
        let nodes = self.nested(|parser| parser.statements(ends))?;
        if matches!(self.peek(), Token::End) {
            return self.fail(format!("got the end of the template, expected {}", ends.join(" or ")));
        }
        Ok((nodes, self.name()?))
    }

    fn statements(&mut self, ends: &[&str]) -> Result<Vec<Node>, Error> {
        let mut nodes = Vec::new();
        loop {
            let line = self.line();
            match self.next() {
                Token::End => return Ok(nodes),
                Token::Data(text) => nodes.push(Node { line, stmt: Stmt::Data(text) }),
                Token::VariableBegin => {
                    let value = self.tuple(true, &[], false)?;
                    if !matches!(self.next(), Token::VariableEnd) {
                        return self.fail("got more in a tag, expected }}");
                    }
                    nodes.push(Node { line, stmt: Stmt::Emit(value) });
                }
                _ => {
                    if ends.iter().any(|end| self.is_word(end)) {
                        return Ok(nodes);
                    }
                    let line = self.line();
                    let tag = self.name()?;
                    for stmt in self.nested(|parser| parser.statement(&tag))? {
                        nodes.push(Node { line, stmt });
                    }
                    self.block_end()?;
                }
            }
        }
    }

    fn statement(&mut self, tag: &str) -> Result<Vec<Stmt>, Error> {
        Ok(vec![match tag {
            "if" => Stmt::If(Box::new(self.if_statement()?)),
            "for" => Stmt::For(Arc::new(self.for_statement()?)),
            "set" => self.set()?,
            "with" => Stmt::With(Box::new(self.with()?)),
            "macro" => {
                let name = self.assigned_name()?;
                let (parameters, defaults) = self.signature()?;
                Stmt::Macro(self.macro_body(name, parameters, defaults, "endmacro")?)
            }
            "call" => {
                let (parameters, defaults) =
                    if self.is_operator("(") { self.signature()? } else { (Vec::new(), Vec::new()) };
                let call = self.expression(true)?;
                if !matches!(call, Expr::Call(..)) {
                    return self.fail("got an expression, expected a call");
                }
                Stmt::CallBlock(call, self.macro_body(String::new(), parameters, defaults, "endcall")?)
            }
            "generation" => {
                Stmt::Generation(self.macro_body(String::new(), Vec::new(), Vec::new(), "endgeneration")?)
            }
            "filter" => {
                let filter = self.filters(None, true)?;
                let body = self.body(&["endfilter"])?.0;
                Stmt::FilterBlock(Box::new(Captured { target: None, filter, body, scope: Scope::default() }))
            }
            "autoescape" => {
                let enabled = self.expression(true)?;
                Stmt::AutoEscape(enabled, self.body(&["endautoescape"])?.0, Scope::default())
            }
            "print" => return self.print(),
            "block" => self.block()?,
            "break" | "continue" if self.loops == 0 => return self.fail(format!("{tag} outside of a loop")),
            "break" => Stmt::Break,
            "continue" => Stmt::Continue,
            "extends" | "include" | "import" | "from" => {
                while !matches!(self.peek(), Token::BlockEnd | Token::End) {
                    self.next();
                }
                Stmt::Elsewhere(match tag {
                    "extends" => "extends",
                    "include" => "include",
                    _ => "import",
                })
            }
            _ => return self.fail(format!("the tag {tag} is unknown")),
        }])
    }

    fn print(&mut self) -> Result<Vec<Stmt>, Error> {
        let mut printed = Vec::new();
        while !matches!(self.peek(), Token::BlockEnd) {
            if !printed.is_empty() {
                self.expect_operator(",")?;
            }
            printed.push(Stmt::Emit(self.expression(true)?));
        }
        Ok(printed)
    }

    fn if_statement(&mut self) -> Result<If, Error> {
        let mut branches = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let test = self.tuple(false, &[], false)?;
            let (body, end) = self.body(&["elif", "else", "endif"])?;
            branches.push(If { test, body, others: Vec::new(), otherwise: Vec::new() });
            match end.as_str() {
                "elif" => {}
                "else" => {
                    otherwise = self.body(&["endif"])?.0;
                    break;
                }
                _ => break,
            }
        }
        let others = branches.split_off(1);
        let first = branches.pop();
        first.map_or_else(|| self.unexpected("a test"), |first| Ok(If { others, otherwise, ..first }))
    }

    fn for_statement(&mut self) -> Result<For, Error> {
        let start = self.tokens.clone();
        let target = self.target(&["in"], false, false)?;
        // The test has variables of its own.
        let after = std::mem::replace(&mut self.tokens, start);
        let test_target = self.target(&["in"], false, false)?;
        self.tokens = after;
        self.expect_word("in")?;
        let iterable = self.tuple(false, &["recursive"], false)?;
        let test = if self.skip_word("if") { Some(self.expression(true)?) } else { None };
        let is_recursive = self.skip_word("recursive");
        self.loops += 1;
        let (body, end) = self.body(&["endfor", "else"])?;
        self.loops -= 1;
        let otherwise = if end == "else" { self.body(&["endfor"])?.0 } else { Vec::new() };
        Ok(For {
            target,
            iterable,
            test,
            test_target,
            is_recursive,
            body,
            otherwise,
            loop_slot: None,
            body_scope: Scope::default(),
            test_scope: Scope::default(),
            otherwise_scope: Scope::default(),
            slots: 0,
        })
    }

    fn set(&mut self) -> Result<Stmt, Error> {
        let target = self.target(&[], true, false)?;
        if self.skip_operator("=") {
            return Ok(Stmt::Set(target, self.tuple(true, &[], false)?));
        }
        let filter = self.filters(None, false)?;
        let body = self.body(&["endset"])?.0;
        Ok(Stmt::SetBlock(Box::new(Captured { target: Some(target), filter, body, scope: Scope::default() })))
    }

    fn with(&mut self) -> Result<With, Error> {
        let (mut targets, mut values) = (Vec::new(), Vec::new());
        while !matches!(self.peek(), Token::BlockEnd) {
            if !targets.is_empty() {
                self.expect_operator(",")?;
            }
            targets.push(self.target(&[], false, false)?);
            self.expect_operator("=")?;
            values.push(self.expression(true)?);
        }
        Ok(With { targets, values, body: self.body(&["endwith"])?.0, scope: Scope::default() })
    }

    fn signature(&mut self) -> Result<(Vec<Variable>, Vec<Expr>), Error> {
        let (mut parameters, mut defaults): (Vec<Variable>, Vec<Expr>) = (Vec::new(), Vec::new());
        self.expect_operator("(")?;
        while !self.is_operator(")") {
            if !parameters.is_empty() {
                self.expect_operator(",")?;
            }
            let name = self.assigned_name()?;
            if parameters.iter().any(|other| other.name == name) {
                return self.fail(format!("the parameter {name} is there twice"));
            }
            parameters.push(Variable::new(name));
            if self.skip_operator("=") {
                defaults.push(self.expression(true)?);
            } else if !defaults.is_empty() {
                return self.fail("a parameter without a default after one with a default");
            }
        }
        self.next();
        Ok((parameters, defaults))
    }

    fn macro_body(
        &mut self,
        name: String,
        parameters: Vec<Variable>,
        defaults: Vec<Expr>,
        end: &str,
    ) -> Result<usize, Error> {
        let loops = std::mem::take(&mut self.loops);
        let body = self.body(&[end])?.0;
        self.loops = loops;
        self.template.macros.push(Macro {
            variable: Variable::new(name),
            parameters,
            defaults,
            body,
            scope: Scope::default(),
            slots: 0,
            caller_slot: None,
            kwargs_slot: None,
            varargs_slot: None,
        });
        Ok(self.template.macros.len() - 1)
    }

    fn block(&mut self) -> Result<Stmt, Error> {
        let name = self.name()?;
        let _is_scoped = self.skip_word("scoped");
        let _is_required = self.skip_word("required");
        let loops = std::mem::take(&mut self.loops);
        let body = self.body(&["endblock"])?.0;
        self.loops = loops;
        self.skip_word(&name);
        if self.template.blocks.iter().any(|block| block.name == name) {
            return self.fail(format!("the block {name} is there twice"));
        }
        self.template.blocks.push(Block { name, body, scope: Scope::default(), slots: 0 });
        Ok(Stmt::Block(self.template.blocks.len() - 1))
    }
}

pub fn parse(source: &str) -> Result<Template, Error> {
    let tokens = tokenize(source)?;
    let mut parser = Parser { tokens, nesting: 0, links: 0, loops: 0, template: Template::default() };
    let body = parser.statements(&[])?;
    Ok(Template { body, ..parser.template })
}
