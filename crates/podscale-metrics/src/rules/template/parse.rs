//! Puts the tokens of a template together.

use super::TemplateError;
use super::functions::Function;
use super::lex::{Placed, Token};

/// How deep actions may be nested.
const DEEPEST: usize = 32;

/// A piece of a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// Text as it is.
    Text(Box<str>),
    /// What a pipeline gives.
    Action(Pipeline),
    /// One of two lists.
    If { condition: Pipeline, then: Vec<Node>, otherwise: Vec<Node> },
    /// A list with another dot, unless that is empty.
    With { value: Pipeline, then: Vec<Node>, otherwise: Vec<Node> },
    /// A list for each element.
    Range { over: Pipeline, body: Vec<Node>, otherwise: Vec<Node> },
}

/// Commands, each of which gets what the one before gave.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pipeline {
    /// The variables that are set to what comes out.
    pub(super) variables: Vec<Box<str>>,
    /// Whether the variables are new.
    pub(super) declares: bool,
    pub(super) commands: Vec<Vec<Operand>>,
    pub(super) place: usize,
}

/// A value, or how to get one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    /// The dot, and fields of it.
    Dot(Vec<Box<str>>),
    /// A variable, and fields of it.
    Variable(Box<str>, Vec<Box<str>>),
    /// What a pipeline gives, and fields of it.
    Group(Box<Pipeline>, Vec<Box<str>>),
    String(Box<str>),
    Number(i64),
    Bool(bool),
    Nil,
    Function(Function),
}

/// How a list of nodes ended.
enum End {
    Template,
    Action,
    Else,
    /// `else if`, `else with`: as if nested in an `else`.
    ElseWith(Box<Node>),
}

/// Puts tokens together.
pub(super) fn parse(tokens: Vec<Placed>) -> Result<Vec<Node>, TemplateError> {
    let mut parser = Parser { tokens, at: 0, variables: vec!["".into()], depth: 0 };
    let (nodes, end) = parser.list()?;
    match end {
        End::Template => Ok(nodes),
        _ => Err(TemplateError::of("an end or else without if, with or range")),
    }
}

/// Whether a field is used anywhere in these.
pub(super) fn mentions(nodes: &[Node], field: &str) -> bool {
    nodes.iter().any(|node| match node {
        Node::Text(_) => false,
        Node::Action(pipeline) => pipeline_mentions(pipeline, field),
        Node::If { condition: pipeline, then, otherwise }
        | Node::With { value: pipeline, then, otherwise }
        | Node::Range { over: pipeline, body: then, otherwise } => {
            pipeline_mentions(pipeline, field)
                || mentions(then, field)
                || mentions(otherwise, field)
        }
    })
}

fn pipeline_mentions(pipeline: &Pipeline, field: &str) -> bool {
    let first = |path: &[Box<str>]| path.first().is_some_and(|name| **name == *field);
    pipeline.commands.iter().flatten().any(|operand| match operand {
        Operand::Dot(path) | Operand::Variable(_, path) => first(path),
        Operand::Group(group, _) => pipeline_mentions(group, field),
        _ => false,
    })
}

struct Parser {
    tokens: Vec<Placed>,
    at: usize,
    /// The names of the variables in scope; `$` is the empty one.
    variables: Vec<Box<str>>,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|placed| &placed.token)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += 1;
        token
    }

    fn place(&self) -> usize {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(0, |placed| placed.place)
    }

    fn error<T>(&self, problem: impl std::fmt::Display) -> Result<T, TemplateError> {
        Err(TemplateError::at(self.place(), problem))
    }

    fn list(&mut self) -> Result<(Vec<Node>, End), TemplateError> {
        if self.depth >= DEEPEST {
            return self.error(format!("nested deeper than {DEEPEST}"));
        }
        self.depth += 1;
        let scope = self.variables.len();
        let mut nodes = Vec::new();
        let end = loop {
            match self.next() {
                None => break End::Template,
                Some(Token::Text(text)) => nodes.push(Node::Text(text.into())),
                Some(_) => match self.action()? {
                    Ok(node) => nodes.push(node),
                    Err(end) => break end,
                },
            }
        };
        self.variables.truncate(scope);
        self.depth -= 1;
        Ok((nodes, end))
    }

    /// An action after its opening: a node, or the end of the list that it is in.
    fn action(&mut self) -> Result<Result<Node, End>, TemplateError> {
        let Some(Token::Word(word)) = self.peek().cloned() else {
            let pipeline = self.pipeline()?;
            self.close()?;
            return Ok(Ok(Node::Action(pipeline)));
        };
        match word.as_str() {
            "if" | "with" | "range" => {
                self.at += 1;
                self.block(&word).map(Ok)
            }
            "end" => {
                self.at += 1;
                self.close()?;
                Ok(Err(End::Action))
            }
            "else" => {
                self.at += 1;
                self.otherwise().map(Err)
            }
            "define" | "template" | "block" | "break" | "continue" => {
                self.error(format!("{word} is not supported in rules"))
            }
            _ => {
                let pipeline = self.pipeline()?;
                self.close()?;
                Ok(Ok(Node::Action(pipeline)))
            }
        }
    }

    fn otherwise(&mut self) -> Result<End, TemplateError> {
        match self.peek().cloned() {
            Some(Token::Word(word)) if word == "if" || word == "with" => {
                self.at += 1;
                self.block(&word).map(|node| End::ElseWith(Box::new(node)))
            }
            _ => {
                self.close()?;
                Ok(End::Else)
            }
        }
    }

    /// The rest of `if`, `with` or `range` up to its `end`.
    fn block(&mut self, word: &str) -> Result<Node, TemplateError> {
        let scope = self.variables.len();
        let pipeline = self.pipeline()?;
        if pipeline.variables.len() > 1 && word != "range" {
            return self.error("only range sets two variables");
        }
        self.close()?;
        let (then, end) = self.list()?;
        let otherwise = match end {
            End::Action => Vec::new(),
            End::ElseWith(node) => vec![*node],
            End::Template => return self.error(format!("{word} has no end")),
            End::Else => match self.list()? {
                (otherwise, End::Action) => otherwise,
                _ => return self.error(format!("the else of {word} has no end")),
            },
        };
        self.variables.truncate(scope);
        Ok(match word {
            "if" => Node::If { condition: pipeline, then, otherwise },
            "with" => Node::With { value: pipeline, then, otherwise },
            _ => Node::Range { over: pipeline, body: then, otherwise },
        })
    }

    fn close(&mut self) -> Result<(), TemplateError> {
        if self.peek() == Some(&Token::Close) {
            self.at += 1;
            return Ok(());
        }
        self.error("unexpected words before >>")
    }

    fn pipeline(&mut self) -> Result<Pipeline, TemplateError> {
        let place = self.place();
        if self.depth >= DEEPEST {
            return self.error(format!("nested deeper than {DEEPEST}"));
        }
        self.depth += 1;
        let (variables, declares) = self.variables()?;
        let mut commands = vec![self.command()?];
        while self.peek() == Some(&Token::Pipe) {
            self.at += 1;
            commands.push(self.command()?);
        }
        self.depth -= 1;
        for name in &variables {
            if declares {
                self.variables.push(name.clone());
            } else if !self.variables.contains(name) {
                return self.error(format!("the variable ${name} is not declared"));
            }
        }
        Ok(Pipeline { variables, declares, commands, place })
    }

    /// `$a :=`, `$a, $b :=` or `$a =`, if the pipeline begins so.
    fn variables(&mut self) -> Result<(Vec<Box<str>>, bool), TemplateError> {
        let began = self.at;
        let mut names: Vec<Box<str>> = Vec::new();
        while let Some(Token::Variable(name)) = self.peek().cloned() {
            self.at += 1;
            names.push(name.into());
            match self.peek() {
                Some(Token::Comma) if names.len() == 1 => self.at += 1,
                Some(sign @ (Token::Declare | Token::Assign)) => {
                    let declares = *sign == Token::Declare;
                    self.at += 1;
                    return Ok((names, declares));
                }
                _ => break,
            }
        }
        self.at = began;
        Ok((Vec::new(), false))
    }

    fn command(&mut self) -> Result<Vec<Operand>, TemplateError> {
        let mut operands = Vec::new();
        loop {
            match self.peek() {
                None | Some(Token::Close | Token::Pipe | Token::CloseGroup) => break,
                Some(_) => operands.push(self.operand()?),
            }
        }
        if operands.is_empty() {
            return self.error("a value is missing");
        }
        Ok(operands)
    }

    fn operand(&mut self) -> Result<Operand, TemplateError> {
        let place = self.place();
        let wrong = |problem: String| Err(TemplateError::at(place, problem));
        Ok(match self.next() {
            Some(Token::Dot) => Operand::Dot(Vec::new()),
            Some(Token::Field(first)) => {
                let mut path = vec![first.into()];
                path.extend(self.fields());
                Operand::Dot(path)
            }
            Some(Token::Variable(name)) => {
                let name: Box<str> = name.into();
                if !self.variables.contains(&name) {
                    return wrong(format!("the variable ${name} is not declared"));
                }
                Operand::Variable(name, self.fields())
            }
            Some(Token::OpenGroup) => {
                let pipeline = self.pipeline()?;
                if self.next() != Some(Token::CloseGroup) {
                    return wrong("a parenthesis is not closed".to_owned());
                }
                Operand::Group(Box::new(pipeline), self.fields())
            }
            Some(Token::String(text)) => Operand::String(text.into()),
            Some(Token::Number(number)) => Operand::Number(number),
            Some(Token::Word(word)) => match word.as_str() {
                "true" => Operand::Bool(true),
                "false" => Operand::Bool(false),
                "nil" => Operand::Nil,
                name => match Function::find(name) {
                    Ok(function) => Operand::Function(function),
                    Err(problem) => return wrong(problem),
                },
            },
            _ => return wrong("a value is missing".to_owned()),
        })
    }

    /// `.a.b` right behind a value.
    fn fields(&mut self) -> Vec<Box<str>> {
        let mut path = Vec::new();
        while let Some(Placed { token: Token::Field(name), glued: true, .. }) =
            self.tokens.get(self.at)
        {
            path.push(name.as_str().into());
            self.at += 1;
        }
        path
    }
}
