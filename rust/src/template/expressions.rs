// SPDX-License-Identifier: Apache-2.0
//! Parses a template's expressions from its tokens, by jinja2's grammar.

use super::lexer::Token;
use super::parser::Parser;
use super::syntax::{Call, Comparison, Expr, Operator, Variable};
use minijinja::{Error, Value};

fn pair(left: Expr, right: Expr) -> Box<(Expr, Expr)> {
    Box::new((left, right))
}

impl Parser {
    pub fn expression(&mut self, with_condition: bool) -> Result<Expr, Error> {
        self.nested(|parser| if with_condition { parser.condition() } else { parser.or() })
    }

    /// Parses one expression, or a tuple of several, up to the tag's end, a bracket or one of the words `ends`.
    pub fn tuple(&mut self, with_condition: bool, ends: &[&str], is_explicit: bool) -> Result<Expr, Error> {
        let (mut items, mut is_tuple) = (Vec::new(), false);
        loop {
            let is_end = self.is_operator(")") || matches!(self.peek(), Token::BlockEnd | Token::VariableEnd);
            if is_end || ends.iter().any(|end| self.is_word(end)) {
                break;
            }
            items.push(self.expression(with_condition)?);
            if !self.skip_operator(",") {
                break;
            }
            is_tuple = true;
        }
        match items.pop() {
            Some(item) if !is_tuple => Ok(item),
            None if !is_explicit => self.unexpected("an expression"),
            last => Ok(Expr::Tuple(items.into_iter().chain(last).collect())),
        }
    }

    fn condition(&mut self) -> Result<Expr, Error> {
        let mut value = self.or()?;
        while self.skip_word("if") {
            self.link()?;
            let test = self.or()?;
            let other = if self.skip_word("else") { Some(self.nested(Parser::condition)?) } else { None };
            value = Expr::Condition(Box::new((test, value, other)));
        }
        Ok(value)
    }

    fn or(&mut self) -> Result<Expr, Error> {
        let mut left = self.and()?;
        while self.skip_word("or") {
            self.link()?;
            left = Expr::Or(pair(left, self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr, Error> {
        let mut left = self.not()?;
        while self.skip_word("and") {
            self.link()?;
            left = Expr::And(pair(left, self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr, Error> {
        if self.skip_word("not") {
            return Ok(Expr::Not(Box::new(self.nested(Parser::not)?)));
        }
        self.comparison()
    }

    fn comparison_operator(&mut self) -> Option<Comparison> {
        let found = match self.peek() {
            Token::Operator("==") => Comparison::Equal,
            Token::Operator("!=") => Comparison::NotEqual,
            Token::Operator("<") => Comparison::Less,
            Token::Operator("<=") => Comparison::LessOrEqual,
            Token::Operator(">") => Comparison::Greater,
            Token::Operator(">=") => Comparison::GreaterOrEqual,
            Token::Name(name) if name == "in" => Comparison::In,
            Token::Name(name) if name == "not" && matches!(self.peek_second(), Token::Name(name) if name == "in") => {
                self.next();
                Comparison::NotIn
            }
            _ => return None,
        };
        self.next();
        Some(found)
    }

    fn comparison(&mut self) -> Result<Expr, Error> {
        let first = self.sum()?;
        let mut others = Vec::new();
        while let Some(operator) = self.comparison_operator() {
            others.push((operator, self.sum()?));
        }
        Ok(if others.is_empty() { first } else { Expr::Compare(Box::new(first), others) })
    }

    fn sum(&mut self) -> Result<Expr, Error> {
        let mut left = self.concat()?;
        loop {
            let operator = match self.peek() {
                Token::Operator("+") => Operator::Add,
                Token::Operator("-") => Operator::Subtract,
                _ => return Ok(left),
            };
            self.next();
            self.link()?;
            left = Expr::Binary(operator, pair(left, self.concat()?));
        }
    }

    fn concat(&mut self) -> Result<Expr, Error> {
        let first = self.product()?;
        if !self.is_operator("~") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.skip_operator("~") {
            parts.push(self.product()?);
        }
        Ok(Expr::Concat(parts))
    }

    fn product(&mut self) -> Result<Expr, Error> {
        let mut left = self.power()?;
        loop {
            let operator = match self.peek() {
                Token::Operator("*") => Operator::Multiply,
                Token::Operator("/") => Operator::Divide,
                Token::Operator("//") => Operator::FloorDivide,
                Token::Operator("%") => Operator::Modulo,
                _ => return Ok(left),
            };
            self.next();
            self.link()?;
            left = Expr::Binary(operator, pair(left, self.power()?));
        }
    }

    fn power(&mut self) -> Result<Expr, Error> {
        let mut left = self.unary(true)?;
        while self.skip_operator("**") {
            self.link()?;
            left = Expr::Binary(Operator::Power, pair(left, self.unary(true)?));
        }
        Ok(left)
    }

    fn unary(&mut self, with_filters: bool) -> Result<Expr, Error> {
        let node = if self.skip_operator("-") {
            Expr::Negative(Box::new(self.nested(|parser| parser.unary(false))?))
        } else if self.skip_operator("+") {
            Expr::Positive(Box::new(self.nested(|parser| parser.unary(false))?))
        } else {
            self.primary()?
        };
        let node = self.postfix(node)?;
        if with_filters {
            self.filter_expression(node)
        } else {
            Ok(node)
        }
    }

    fn primary(&mut self) -> Result<Expr, Error> {
        if !matches!(self.peek(), Token::Name(_) | Token::Text(_) | Token::Integer(_) | Token::Float(_)) {
            return match self.peek() {
                Token::Operator("(") => {
                    self.next();
                    let inner = self.tuple(true, &[], true)?;
                    self.expect_operator(")")?;
                    Ok(inner)
                }
                Token::Operator("[") => self.list(),
                Token::Operator("{") => self.dict(),
                _ => self.unexpected("an expression"),
            };
        }
        Ok(match self.next() {
            Token::Name(name) => match name.as_str() {
                "true" | "True" => Expr::Constant(Value::from(true)),
                "false" | "False" => Expr::Constant(Value::from(false)),
                "none" | "None" => Expr::Constant(Value::from(())),
                _ => Expr::Name(Variable::new(name)),
            },
            Token::Text(mut text) => {
                while let Token::Text(more) = self.peek() {
                    text.push_str(more);
                    self.next();
                }
                Expr::Constant(Value::from(text))
            }
            Token::Integer(number) => Expr::Constant(number),
            Token::Float(number) => Expr::Constant(Value::from(number)),
            _ => return self.unexpected("an expression"),
        })
    }

    fn list(&mut self) -> Result<Expr, Error> {
        self.next();
        let mut items = Vec::new();
        while !self.is_operator("]") {
            if !items.is_empty() {
                self.expect_operator(",")?;
            }
            if self.is_operator("]") {
                break;
            }
            items.push(self.expression(true)?);
        }
        self.expect_operator("]")?;
        Ok(Expr::List(items))
    }

    fn dict(&mut self) -> Result<Expr, Error> {
        self.next();
        let mut pairs = Vec::new();
        while !self.is_operator("}") {
            if !pairs.is_empty() {
                self.expect_operator(",")?;
            }
            if self.is_operator("}") {
                break;
            }
            let key = self.expression(true)?;
            self.expect_operator(":")?;
            pairs.push((key, self.expression(true)?));
        }
        self.expect_operator("}")?;
        Ok(Expr::Dict(pairs))
    }

    fn postfix(&mut self, mut node: Expr) -> Result<Expr, Error> {
        loop {
            self.link()?;
            node = match self.peek() {
                Token::Operator(".") => {
                    self.next();
                    match self.next() {
                        Token::Name(name) => Expr::Attribute(Box::new(node), name),
                        Token::Integer(number) => Expr::Item(pair(node, Expr::Constant(number))),
                        _ => return self.fail("got something else after a point, expected a name or number"),
                    }
                }
                Token::Operator("[") => self.subscript(node)?,
                Token::Operator("(") => self.call(node)?,
                _ => return Ok(node),
            };
        }
    }

    fn subscript(&mut self, node: Expr) -> Result<Expr, Error> {
        self.next();
        let mut keys = Vec::new();
        while !self.is_operator("]") {
            if !keys.is_empty() {
                self.expect_operator(",")?;
            }
            keys.push(self.subscript_key()?);
        }
        self.next();
        let single = if keys.len() == 1 { keys.pop() } else { None };
        Ok(Expr::Item(pair(node, single.unwrap_or(Expr::Tuple(keys)))))
    }

    fn subscript_key(&mut self) -> Result<Expr, Error> {
        let mut parts = [None, None, None];
        if !self.is_operator(":") {
            let first = self.expression(true)?;
            if !self.is_operator(":") {
                return Ok(first);
            }
            parts[0] = Some(first);
        }
        for part in &mut parts[1..] {
            if !self.skip_operator(":") {
                break;
            }
            if ![":", "]", ","].iter().any(|end| self.is_operator(end)) {
                *part = Some(self.expression(true)?);
            }
        }
        Ok(Expr::Slice(Box::new(parts), false))
    }

    fn call(&mut self, node: Expr) -> Result<Expr, Error> {
        Ok(Expr::Call(Box::new(node), Box::new(self.arguments()?)))
    }

    fn arguments(&mut self) -> Result<Call, Error> {
        self.expect_operator("(")?;
        let mut call = Call::default();
        let mut is_first = true;
        while !self.is_operator(")") {
            if !is_first {
                self.expect_operator(",")?;
                if self.is_operator(")") {
                    break;
                }
            }
            is_first = false;
            let is_named = matches!(self.peek(), Token::Name(_)) && matches!(self.peek_second(), Token::Operator("="));
            let misplaced = if self.skip_operator("*") {
                let misplaced = call.splat.is_some() || call.splat_named.is_some();
                call.splat = Some(self.expression(true)?);
                misplaced
            } else if self.skip_operator("**") {
                let misplaced = call.splat_named.is_some();
                call.splat_named = Some(self.expression(true)?);
                misplaced
            } else if is_named {
                let name = self.name()?;
                self.next();
                let misplaced = call.splat_named.is_some() || call.named.iter().any(|(other, _)| *other == name);
                call.named.push((name, self.expression(true)?));
                misplaced
            } else {
                let misplaced = call.splat.is_some() || call.splat_named.is_some() || !call.named.is_empty();
                call.positional.push(self.expression(true)?);
                misplaced
            };
            if misplaced {
                return self.fail("arguments of a call in a wrong order");
            }
        }
        self.next();
        Ok(call)
    }

    fn dotted_name(&mut self) -> Result<String, Error> {
        let mut name = self.name()?;
        while self.skip_operator(".") {
            name = format!("{name}.{}", self.name()?);
        }
        Ok(name)
    }

    /// Parses the following filters; `is_inline`: the first one has no `|`.
    pub fn filters(&mut self, node: Option<Expr>, is_inline: bool) -> Result<Option<Expr>, Error> {
        let mut node = node;
        let mut is_inline = is_inline;
        while is_inline || self.skip_operator("|") {
            self.link()?;
            is_inline = false;
            let name = self.dotted_name()?;
            let call = if self.is_operator("(") { self.arguments()? } else { Call::default() };
            node = Some(Expr::Filter(node.map(Box::new), name, Box::new(call)));
        }
        Ok(node)
    }

    fn filter_expression(&mut self, mut node: Expr) -> Result<Expr, Error> {
        loop {
            self.link()?;
            node = if self.is_operator("|") {
                match self.filters(Some(node), false)? {
                    Some(node) => node,
                    None => return self.unexpected("a filter"),
                }
            } else if self.skip_word("is") {
                self.test(node)?
            } else if self.is_operator("(") {
                self.call(node)?
            } else {
                return Ok(node);
            };
        }
    }

    fn test(&mut self, node: Expr) -> Result<Expr, Error> {
        let is_negated = self.skip_word("not");
        let name = self.dotted_name()?;
        let mut call = Call::default();
        let starts_argument = match self.peek() {
            Token::Name(name) => !["else", "or", "and"].contains(&name.as_str()),
            Token::Operator(operator) => ["[", "{"].contains(operator),
            Token::Text(_) | Token::Integer(_) | Token::Float(_) => true,
            _ => false,
        };
        if self.is_operator("(") {
            call = self.arguments()?;
        } else if starts_argument {
            if self.is_word("is") {
                return self.fail("tests cannot be chained with is");
            }
            let argument = self.primary()?;
            call.positional.push(self.postfix(argument)?);
        }
        let test = Expr::Test(Box::new(node), name, Box::new(call));
        Ok(if is_negated { Expr::Not(Box::new(test)) } else { test })
    }
}
