//! Computes the text of a template, within bounds of work and of length.

use super::TemplateError;
use super::parse::{Node, Operand, Pipeline};
use super::value::Value;
use std::fmt::Write;
use std::rc::Rc;

/// The longest text that a template may give.
const MOST_BYTES: usize = 1 << 20;
/// How many nodes and commands are computed at most; nested loops could go on for long.
const MOST_STEPS: usize = 20_000;

/// The text of these nodes.
pub(super) fn render(nodes: &[Node], data: &Value) -> Result<String, TemplateError> {
    let variables = vec![("".into(), data.clone())];
    let mut evaluation = Evaluation { out: String::new(), variables, steps: 0 };
    evaluation.list(nodes, data)?;
    Ok(evaluation.out)
}

struct Evaluation {
    out: String,
    variables: Vec<(Box<str>, Value)>,
    steps: usize,
}

impl Evaluation {
    fn step(&mut self) -> Result<(), TemplateError> {
        self.steps += 1;
        if self.steps > MOST_STEPS || self.out.len() > MOST_BYTES {
            return Err(TemplateError::of("gives too much, or takes too many steps"));
        }
        Ok(())
    }

    fn list(&mut self, nodes: &[Node], dot: &Value) -> Result<(), TemplateError> {
        let scope = self.variables.len();
        for node in nodes {
            self.step()?;
            self.node(node, dot)?;
        }
        self.variables.truncate(scope);
        Ok(())
    }

    fn node(&mut self, node: &Node, dot: &Value) -> Result<(), TemplateError> {
        match node {
            Node::Text(text) => self.out.push_str(text),
            Node::Action(pipeline) => {
                let value = self.pipeline(pipeline, dot)?;
                if pipeline.variables.is_empty() {
                    // Writing into memory does not fail.
                    let _ = write!(self.out, "{value}");
                }
            }
            Node::If { condition, then, otherwise } => {
                let scope = self.variables.len();
                let holds = self.pipeline(condition, dot)?.is_true();
                self.list(if holds { then } else { otherwise }, dot)?;
                self.variables.truncate(scope);
            }
            Node::With { value, then, otherwise } => {
                let scope = self.variables.len();
                let value = self.pipeline(value, dot)?;
                if value.is_true() {
                    self.list(then, &value)?;
                } else {
                    self.list(otherwise, dot)?;
                }
                self.variables.truncate(scope);
            }
            Node::Range { over, body, otherwise } => self.range(over, body, otherwise, dot)?,
        }
        Ok(())
    }

    fn range(
        &mut self,
        over: &Pipeline,
        body: &[Node],
        otherwise: &[Node],
        dot: &Value,
    ) -> Result<(), TemplateError> {
        let scope = self.variables.len();
        let elements: Vec<(Value, Value)> = match self.commands(over, dot)? {
            Value::List(list) => (0_i64..)
                .zip(list.iter())
                .map(|(place, text)| (Value::Number(place), Value::Text(Rc::clone(text))))
                .collect(),
            Value::Map(map) => map
                .iter()
                .map(|(name, text)| (Value::Text(Rc::clone(name)), Value::Text(Rc::clone(text))))
                .collect(),
            Value::Missing => Vec::new(),
            other => {
                let problem = format!("range goes over a list or a map, not over {}", other.kind());
                return Err(TemplateError::at(over.place, problem));
            }
        };
        if elements.is_empty() {
            return self.list(otherwise, dot);
        }
        for (key, element) in elements {
            self.step()?;
            match &*over.variables {
                [] => {}
                [one] => self.set(one, &element, over.declares),
                [first, second, ..] => {
                    self.set(first, &key, over.declares);
                    self.set(second, &element, over.declares);
                }
            }
            self.list(body, &element)?;
            self.variables.truncate(scope);
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &Value, declares: bool) {
        let known = self.variables.iter_mut().rev().find(|(known, _)| **known == *name);
        match known {
            Some((_, old)) if !declares => *old = value.clone(),
            _ => self.variables.push((name.into(), value.clone())),
        }
    }

    /// What a pipeline gives; its variables are set to it.
    fn pipeline(&mut self, pipeline: &Pipeline, dot: &Value) -> Result<Value, TemplateError> {
        let value = self.commands(pipeline, dot)?;
        if let Some(name) = pipeline.variables.first() {
            self.set(name, &value, pipeline.declares);
        }
        Ok(value)
    }

    fn commands(&mut self, pipeline: &Pipeline, dot: &Value) -> Result<Value, TemplateError> {
        let mut piped = None;
        for command in &pipeline.commands {
            self.step()?;
            let value = self.command(command, piped.take(), dot);
            piped = Some(value.map_err(|error| TemplateError {
                place: error.place.or(Some(pipeline.place)),
                ..error
            })?);
        }
        Ok(piped.unwrap_or(Value::Missing))
    }

    fn command(
        &mut self,
        operands: &[Operand],
        piped: Option<Value>,
        dot: &Value,
    ) -> Result<Value, TemplateError> {
        let Some((first, rest)) = operands.split_first() else { return Ok(Value::Missing) };
        if let Operand::Function(function) = first {
            let mut arguments = Vec::with_capacity(rest.len() + 1);
            for operand in rest {
                arguments.push(self.operand(operand, dot)?);
            }
            arguments.extend(piped);
            return function.call(&arguments);
        }
        if !rest.is_empty() || piped.is_some() {
            return Err(TemplateError::of("what is not a function gets no arguments"));
        }
        self.operand(first, dot)
    }

    fn operand(&mut self, operand: &Operand, dot: &Value) -> Result<Value, TemplateError> {
        let (value, path) = match operand {
            Operand::String(text) => return Ok(Value::text(text)),
            Operand::Number(number) => return Ok(Value::Number(*number)),
            Operand::Bool(value) => return Ok(Value::Bool(*value)),
            Operand::Nil => return Err(TemplateError::of("nil cannot be used as a value")),
            Operand::Function(function) => return function.call(&[]),
            Operand::Dot(path) => (dot.clone(), path),
            Operand::Variable(name, path) => {
                let known = self.variables.iter().rev().find(|(known, _)| known == name);
                (known.map_or(Value::Missing, |(_, value)| value.clone()), path)
            }
            Operand::Group(pipeline, path) => (self.pipeline(pipeline, dot)?, path),
        };
        path.iter().try_fold(value, |value, name| value.field(name))
    }
}
