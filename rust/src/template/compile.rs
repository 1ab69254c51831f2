// SPDX-License-Identifier: Apache-2.0
//! From template text to instructions in which every operation that can grow a text goes through our bounds, and loops
//! refuse what Python refuses.

use super::budget::MAX_TEXT;
use minijinja::machinery::{parse, tokenize, CodeGenerator, Instruction, Instructions, Token};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Error, ErrorKind, Value};
use std::collections::BTreeMap;

/// Names of the functions that operators and loops call; a template cannot write a name with a space.
pub const ADD: &str = " add";
pub const MULTIPLY: &str = " multiply";
pub const MODULO: &str = " modulo";
pub const CONCAT: &str = " concat";
pub const ITERATE: &str = " iterate";

/// The largest real template is about 20 kB.
const MAX_SOURCE: usize = 1 << 18;
pub struct Compiled<'a> {
    pub instructions: Instructions<'a>,
    pub blocks: BTreeMap<&'a str, Instructions<'a>>,
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

/// The instructions that take the place of one: operators and loops go through our functions, literal text through the
/// formatter. Jumps still hold old targets.
fn replacement<'a>(instruction: &Instruction<'a>) -> Vec<Instruction<'a>> {
    match instruction {
        Instruction::Add => vec![Instruction::CallFunction(ADD, Some(2))],
        Instruction::Mul => vec![Instruction::CallFunction(MULTIPLY, Some(2))],
        Instruction::Rem => vec![Instruction::CallFunction(MODULO, Some(2))],
        Instruction::StringConcat => vec![Instruction::CallFunction(CONCAT, Some(2))],
        Instruction::PushLoop(flags) => {
            vec![Instruction::CallFunction(ITERATE, Some(1)), Instruction::PushLoop(*flags)]
        }
        Instruction::EmitRaw(text) => vec![Instruction::LoadConst(Value::from(*text)), Instruction::Emit],
        other => vec![other.clone()],
    }
}

fn jump_target<'s>(instruction: &'s mut Instruction) -> Option<&'s mut u32> {
    match instruction {
        Instruction::Iterate(target)
        | Instruction::Jump(target)
        | Instruction::JumpIfFalse(target)
        | Instruction::JumpIfFalseOrPop(target)
        | Instruction::JumpIfTrueOrPop(target)
        | Instruction::BuildMacro(_, target, _) => Some(target),
        _ => None,
    }
}

fn reroute<'a>(old: &Instructions<'a>) -> Instructions<'a> {
    let groups: Vec<Vec<Instruction>> = (0..).map_while(|i| old.get(i)).map(replacement).collect();
    let mut moved_to = vec![0u32];
    for group in &groups {
        moved_to.push(moved_to[moved_to.len() - 1] + group.len() as u32);
    }
    let mut new = Instructions::new(old.name(), old.source());
    for (index, group) in groups.into_iter().enumerate() {
        let line = old.get_line(index as u32).unwrap_or(0) as u16;
        for mut instruction in group {
            if let Some(target) = jump_target(&mut instruction) {
                *target = moved_to[*target as usize];
            }
            new.add_with_line(instruction, line);
        }
    }
    new
}

pub fn compile(source: &str) -> Result<Compiled<'_>, Error> {
    if source.len() > MAX_SOURCE {
        return Err(refuse(format!("{} bytes of template, at most {MAX_SOURCE} expected", source.len())));
    }
    check_constants(source)?;
    let tree = parse(source, "chat template", syntax()?)?;
    let mut generator = CodeGenerator::new("chat template", source);
    generator.compile_stmt(&tree);
    let (instructions, blocks) = generator.finish();
    Ok(Compiled {
        instructions: reroute(&instructions),
        blocks: blocks.iter().map(|(&name, block)| (name, reroute(block))).collect(),
    })
}
