// SPDX-License-Identifier: Apache-2.0
//! From template text to instructions in which every operation that can grow a text goes through our bounds.

use super::budget::MAX_TEXT;
use minijinja::machinery::{parse, tokenize, CodeGenerator, Instruction, Instructions, Token};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Error, ErrorKind};
use std::collections::BTreeMap;

/// Names of the functions that take the operators' place; a template cannot write a name with a space.
pub const ADD: &str = " add";
pub const MULTIPLY: &str = " multiply";
pub const CONCAT: &str = " concat";

/// The largest real template is about 20 kB.
const MAX_SOURCE: usize = 1 << 18;
/// Bytes of literal text that one rendering may emit, at most; it bounds the instructions by the longest literal.
const MAX_LITERAL_OUTPUT: u64 = 2 << 30;
const MAX_FUEL: u64 = 4_000_000;
/// An output of literal text in a loop costs at least this many instructions.
const FUEL_PER_LITERAL: u64 = 2;

pub struct Compiled<'a> {
    pub instructions: Instructions<'a>,
    pub blocks: BTreeMap<&'a str, Instructions<'a>>,
    pub fuel: u64,
}

fn refuse(text: String) -> Error {
    Error::new(ErrorKind::SyntaxError, text)
}

/// `{% generation %}` marks the assistant's words for training. The text is what counts here, so it becomes a plain
/// scope. Only this tag is touched.
pub fn plain_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let Some(length) = rest[start..].find("%}").map(|at| at + 2) else { break };
        let tag = &rest[start..start + length];
        let word = tag[2..length - 2].trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace());
        out.push_str(&rest[..start]);
        match word {
            "generation" => out.push_str(&tag.replacen("generation", "with", 1)),
            "endgeneration" => out.push_str(&tag.replacen("endgeneration", "endwith", 1)),
            _ => out.push_str(tag),
        }
        rest = &rest[start + length..];
    }
    out + rest
}

pub fn syntax() -> Result<SyntaxConfig, Error> {
    SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()
}

/// The compiler folds constants, so `"x" * 99999999` would be built before any bound applies: refuses tags whose
/// numbers could make a constant of that size.
fn check_constants(source: &str) -> Result<(), Error> {
    let (mut product, mut multiplies, mut has_sequence, mut has_power) = (1u128, false, false, false);
    let mut total = 0u128;
    for token in tokenize(source, false, syntax()?) {
        match token?.0 {
            Token::Int(n) => product = product.saturating_mul(u128::from(n.max(1))),
            Token::Int128(n) => product = product.saturating_mul((*n).max(1)),
            Token::Mul => multiplies = true,
            Token::Pow => has_power = true,
            Token::Str(_) | Token::String(_) | Token::BracketOpen | Token::ParenOpen => has_sequence = true,
            Token::BlockEnd | Token::VariableEnd => {
                if multiplies && has_sequence {
                    total = if has_power { u128::MAX } else { total.saturating_add(product) };
                }
                (product, multiplies, has_sequence, has_power) = (1, false, false, false);
            }
            _ => {}
        }
    }
    if total > MAX_TEXT as u128 / 64 {
        return Err(refuse("a repeated constant is too large".into()));
    }
    Ok(())
}

/// Sends the operators through our functions and returns the longest literal.
fn reroute(instructions: &mut Instructions) -> usize {
    let mut longest = 0;
    for index in 0.. {
        let Some(instruction) = instructions.get_mut(index) else { break };
        let function = match instruction {
            Instruction::Add => ADD,
            Instruction::Mul => MULTIPLY,
            Instruction::StringConcat => CONCAT,
            Instruction::EmitRaw(text) => {
                longest = longest.max(text.len());
                continue;
            }
            _ => continue,
        };
        *instruction = Instruction::CallFunction(function, Some(2));
    }
    longest
}

pub fn compile(source: &str) -> Result<Compiled<'_>, Error> {
    if source.len() > MAX_SOURCE {
        return Err(refuse(format!("{} bytes of template, at most {MAX_SOURCE} expected", source.len())));
    }
    check_constants(source)?;
    let tree = parse(source, "chat template", syntax()?)?;
    let mut generator = CodeGenerator::new("chat template", source);
    generator.compile_stmt(&tree);
    let (mut instructions, mut blocks) = generator.finish();
    let longest = blocks.values_mut().map(reroute).chain([0]).max().unwrap_or(0).max(reroute(&mut instructions));
    let fuel = (MAX_LITERAL_OUTPUT * FUEL_PER_LITERAL / (longest as u64 + 1)).min(MAX_FUEL);
    Ok(Compiled { instructions, blocks, fuel })
}
