// SPDX-License-Identifier: Apache-2.0
//! From template text to instructions in which every operation on values is ours: bounded, and what Python does.

use super::budget::MAX_TEXT;
use super::macros::EXTRA;
use super::methods::is_method;
use minijinja::machinery::{parse, tokenize, CodeGenerator, Instruction, Instructions, Token};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Error, ErrorKind, Value};
use std::collections::BTreeMap;

/// Names of the functions that instructions become; a template cannot write a name with a space.
pub const ADD: &str = " add";
pub const ATTRIBUTE: &str = " attribute";
pub const CHANGED: &str = " changed";
pub const CONCAT: &str = " concat";
pub const ITEM: &str = " item";
pub const ITERATE: &str = " iterate";
pub const MAP: &str = " map";
pub const MODULO: &str = " modulo";
pub const MULTIPLY: &str = " multiply";
pub const OPEN_MACRO: &str = " macro";
pub const SET: &str = " set";
pub const SLICE: &str = " slice";
pub const SPLAT: &str = " splat";
pub const SPLAT_NAMED: &str = " splat named";
/// Comparisons in the order in which the engine numbers them, and those that also keep their right side.
pub const COMPARE: [&str; 8] = [" ==", " !=", " <", " <=", " >", " >=", " in", " not in"];
pub const COMPARE_AND_KEEP: [&str; 8] = [" ==,", " !=,", " <,", " <=,", " >,", " >=,", " in,", " not in,"];

/// The largest real template is about 20 kB.
const MAX_SOURCE: usize = 1 << 18;

pub struct Compiled<'a> {
    pub instructions: Instructions<'a>,
    pub blocks: BTreeMap<&'a str, Instructions<'a>>,
}

fn refuse(text: String) -> Error {
    Error::new(ErrorKind::SyntaxError, text)
}

pub fn syntax() -> Result<SyntaxConfig, Error> {
    SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()
}

/// What is known of a run of tokens that may be one constant.
#[derive(Default)]
struct Constant {
    sum: u128,
    multiplications: u32,
    has_sequence: bool,
    has_power: bool,
}

impl Constant {
    /// Whatever is added up and multiplied, no number gets above the sum of all to the power of the multiplications.
    fn size(&self) -> u128 {
        match (self.multiplications, self.has_sequence, self.has_power) {
            (0, _, _) | (_, false, _) => 0,
            (_, true, true) => u128::MAX,
            (count, true, false) => self.sum.saturating_pow(count),
        }
    }

    fn add(&mut self, number: u128) {
        self.sum = self.sum.saturating_add(number.max(1));
    }
}

/// The compiler folds constants, so `"x" * 99999999` would be built before any bound applies: refuses tags whose
/// numbers could make a constant of that size. A name ends a constant, unless it is one itself.
fn check_constants(source: &str) -> Result<(), Error> {
    let (mut constant, mut total) = (Constant::default(), 0u128);
    // Stars at the start of an argument unpack it.
    let mut is_argument = false;
    for token in tokenize(source, false, syntax()?) {
        let token = token?.0;
        let is_star = std::mem::replace(&mut is_argument, matches!(token, Token::ParenOpen | Token::Comma));
        match token {
            Token::Mul | Token::Pow if is_star => {}
            Token::Int(n) => constant.add(n.into()),
            Token::Int128(n) => constant.add(*n),
            Token::Mul => constant.multiplications += 1,
            Token::Pow => constant.has_power = true,
            Token::Ident(name) if ["true", "True", "false", "False"].contains(&name) => constant.add(1),
            Token::Str(_) | Token::String(_) | Token::BracketOpen | Token::ParenOpen => {
                constant.has_sequence = true;
                constant.add(1);
            }
            Token::BlockEnd | Token::VariableEnd | Token::Ident(_) => {
                total = total.saturating_add(std::mem::take(&mut constant).size());
            }
            _ => {}
        }
    }
    if total > MAX_TEXT as u128 / 64 {
        return Err(refuse("a repeated constant is too large".into()));
    }
    Ok(())
}

/// The instructions that take the place of one: what works on values goes through our functions, literal text through
/// the formatter. Jumps still hold old targets.
fn replacement<'a>(instruction: &Instruction<'a>) -> Result<Vec<Instruction<'a>>, Error> {
    let call = |name, count| vec![Instruction::CallFunction(name, Some(count))];
    let small = |count: usize| u16::try_from(count).map_err(|_| refuse(format!("{count} values in one place")));
    Ok(match instruction {
        Instruction::Add => call(ADD, 2),
        Instruction::Mul => call(MULTIPLY, 2),
        Instruction::Rem => call(MODULO, 2),
        Instruction::StringConcat => call(CONCAT, 2),
        Instruction::GetItem => call(ITEM, 2),
        Instruction::Slice => call(SLICE, 4),
        Instruction::Eq => call(COMPARE[0], 2),
        Instruction::Ne => call(COMPARE[1], 2),
        Instruction::Lt => call(COMPARE[2], 2),
        Instruction::Lte => call(COMPARE[3], 2),
        Instruction::Gt => call(COMPARE[4], 2),
        Instruction::Gte => call(COMPARE[5], 2),
        Instruction::In => call(COMPARE[6], 2),
        Instruction::CompareAndPreserve(operator) => {
            [call(COMPARE_AND_KEEP[*operator as usize], 2), vec![Instruction::UnpackList(2)]].concat()
        }
        Instruction::BuildMap(pairs) => call(MAP, small(2 * pairs)?),
        Instruction::UnpackLists(count) => [call(SPLAT, small(*count)?), vec![Instruction::UnpackLists(1)]].concat(),
        Instruction::MergeKwargs(count) => {
            [call(SPLAT_NAMED, small(*count)?), vec![Instruction::MergeKwargs(1)]].concat()
        }
        Instruction::GetAttr(name) if is_method(name) => {
            [vec![Instruction::LoadConst(Value::from(*name))], call(ATTRIBUTE, 2)].concat()
        }
        Instruction::CallMethod("changed", count) => vec![Instruction::CallFunction(CHANGED, *count)],
        Instruction::SetAttr(name) => {
            [vec![Instruction::LoadConst(Value::from(*name))], call(SET, 3), vec![Instruction::DiscardTop]].concat()
        }
        Instruction::PushLoop(flags) => [call(ITERATE, 1), vec![Instruction::PushLoop(*flags)]].concat(),
        Instruction::EmitRaw(text) => vec![Instruction::LoadConst(Value::from(*text)), Instruction::Emit],
        other => vec![other.clone()],
    })
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

/// Macros that use `varargs` or `kwargs`, which the engine does not know: where they are built.
fn open_macros(old: &Instructions) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_open = false;
    for (index, instruction) in (0..).map_while(|i| old.get(i)).enumerate() {
        match instruction {
            Instruction::Enclose(name) => is_open |= EXTRA.contains(name),
            Instruction::GetClosure | Instruction::LoadConst(_) => {}
            Instruction::BuildMacro(..) if is_open => found.push(index),
            _ => is_open = false,
        }
    }
    found
}

/// Gives such a macro both as its last arguments, which a function fills in.
fn open_up(groups: &mut [Vec<Instruction>], index: usize) {
    let (Some(Instruction::LoadConst(names)), Some(Instruction::BuildMacro(_, body, _))) =
        (groups[index - 1].first(), groups[index].first())
    else {
        return;
    };
    let body = *body as usize;
    let names: Vec<Value> = names.try_iter().into_iter().flatten().chain(EXTRA.map(Value::from)).collect();
    groups[index - 1] = vec![Instruction::LoadConst(Value::from(names))];
    groups[index].push(Instruction::CallFunction(OPEN_MACRO, Some(1)));
    groups[body].splice(0..0, EXTRA.into_iter().rev().map(Instruction::StoreLocal));
}

fn reroute<'a>(old: &Instructions<'a>) -> Result<Instructions<'a>, Error> {
    let mut groups = (0..).map_while(|i| old.get(i)).map(replacement).collect::<Result<Vec<_>, Error>>()?;
    for index in open_macros(old) {
        open_up(&mut groups, index);
    }
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
    Ok(new)
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
        instructions: reroute(&instructions)?,
        blocks: blocks.iter().map(|(&name, block)| Ok((name, reroute(block)?))).collect::<Result<_, Error>>()?,
    })
}
