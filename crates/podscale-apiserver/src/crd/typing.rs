//! Checks a rule against the schema that it is written for: which fields there are, and whether
//! operators fit their operands. What cannot be known before a value is there counts as fitting.

mod kind;
pub(super) mod place;
mod scope;

#[cfg(test)]
mod tests;

use cel::common::ast::operators as op;
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr,
};

use super::schema::Schema;
use kind::Kind;
use place::Mistake;
use scope::Scope;

/// Where a rule stands in its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// At the root of an object, whose type and name can be used though no schema mentions them.
    Root,
    /// Anywhere below.
    Below,
}

/// What an expression is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    /// What values look like.
    pub schema: &'a Schema,
    /// Where they are.
    pub standing: Standing,
    /// Whether the old value may be absent, which the expression has to ask for.
    pub optional_old: bool,
}

/// What an expression has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A rule, true or false.
    Rule,
    /// The text that tells how a rule was broken.
    Message,
}

/// Checks an expression that was read before; the error reports everything that is wrong with it.
pub(super) fn check(
    expression: &IdedExpr,
    text: &str,
    subject: Subject<'_>,
    purpose: Purpose,
) -> Result<(), String> {
    let mut checker = Checker { scope: Scope::new(subject), mistakes: Vec::new() };
    let found = checker.kind_of(expression);
    if !checker.mistakes.is_empty() {
        return Err(failed(purpose, &place::report(text, checker.mistakes)));
    }
    match purpose {
        Purpose::Rule if found != Kind::Bool && !found.is_open() => {
            Err("cel expression must evaluate to a bool".to_owned())
        }
        Purpose::Message if found != Kind::String && !found.is_open() => {
            Err("messageExpression must evaluate to a string".to_owned())
        }
        _ => Ok(()),
    }
}

/// That an expression cannot be compiled, as messages say it.
pub(super) fn failed(purpose: Purpose, reason: &str) -> String {
    match purpose {
        Purpose::Rule => format!("compilation failed: {reason}"),
        Purpose::Message => format!("messageExpression compilation failed: {reason}"),
    }
}

struct Checker<'a> {
    scope: Scope<'a>,
    mistakes: Vec<Mistake>,
}

impl<'a> Checker<'a> {
    fn mistake(&mut self, id: u64, text: String) -> Kind<'a> {
        self.mistakes.push(Mistake { id, text });
        Kind::Any
    }

    fn kind_of(&mut self, expression: &IdedExpr) -> Kind<'a> {
        match &expression.expr {
            Expr::Unspecified | Expr::Struct(_) => Kind::Any,
            Expr::Literal(literal) => of_literal(literal),
            Expr::Ident(name) => match self.scope.find(name) {
                Some(kind) => kind,
                None => {
                    let text = format!("undeclared reference to '{name}' (in container '')");
                    self.mistake(expression.id, text)
                }
            },
            Expr::Select(select) => self.selected(select, expression.id),
            Expr::Call(call) => self.called(call, expression.id),
            Expr::List(list) => {
                let kinds: Vec<_> = list.elements.iter().map(|item| self.kind_of(item)).collect();
                Kind::List(Box::new(kind::joined(kinds)))
            }
            Expr::Map(map) => {
                let (mut keys, mut values) = (Vec::new(), Vec::new());
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        keys.push(self.kind_of(&entry.key));
                        values.push(self.kind_of(&entry.value));
                    }
                }
                Kind::Map(Box::new(kind::joined(keys)), Box::new(kind::joined(values)))
            }
            Expr::Comprehension(comprehension) => self.comprehended(comprehension),
        }
    }

    fn selected(&mut self, select: &SelectExpr, id: u64) -> Kind<'a> {
        let operand = self.kind_of(&select.operand);
        let found = match operand.field(&select.field) {
            kind::Field::Of(kind) => kind,
            kind::Field::Undefined => {
                self.mistake(id, format!("undefined field '{}'", select.field))
            }
            kind::Field::None => {
                self.mistake(id, format!("type '{operand}' does not support field selection"))
            }
        };
        if select.test { Kind::Bool } else { found }
    }

    fn comprehended(&mut self, comprehension: &ComprehensionExpr) -> Kind<'a> {
        let range = self.kind_of(&comprehension.iter_range);
        let item = match &range {
            Kind::List(item) => (**item).clone(),
            Kind::Map(key, _) => (**key).clone(),
            Kind::Any => Kind::Any,
            other => {
                let text = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                );
                self.mistake(comprehension.iter_range.id, text)
            }
        };
        let start = self.kind_of(&comprehension.accu_init);
        let outside = self.scope.enter([
            (comprehension.accu_var.clone(), start),
            (comprehension.iter_var.clone(), item),
        ]);
        let step = self.kind_of(&comprehension.loop_step);
        self.scope.rename(&comprehension.accu_var, step);
        self.kind_of(&comprehension.loop_cond);
        let result = self.kind_of(&comprehension.result);
        self.scope.leave(outside);
        result
    }

    fn called(&mut self, call: &CallExpr, id: u64) -> Kind<'a> {
        if matches!(call.func_name.as_str(), op::LOGICAL_AND | op::LOGICAL_OR) {
            for argument in &call.args {
                let kind = self.kind_of(argument);
                if !kind.fits(&Kind::Bool) {
                    let text = format!("expected type 'bool' but found '{kind}'");
                    self.mistake(argument.id, text);
                }
            }
            return Kind::Bool;
        }
        // `optional.of(…)` is a function with a dot in its name, not one of a value.
        let target = call.target.as_deref().filter(|target| {
            !matches!(&target.expr, Expr::Ident(name) if name == "optional" && !self.scope.knows(name))
        });
        let mut kinds: Vec<Kind<'a>> =
            call.args.iter().map(|argument| self.kind_of(argument)).collect();
        if let Some(target) = target {
            let kind = self.kind_of(target);
            kinds.insert(0, kind);
        }
        match kind::of_call(&call.func_name, target.is_some(), &kinds) {
            Some(kind) => kind,
            None => {
                let text = format!(
                    "found no matching overload for '{}' applied to '{}'",
                    call.func_name,
                    kind::signature(&kinds, target.is_some())
                );
                self.mistake(id, text)
            }
        }
    }
}

fn of_literal<'a>(literal: &LiteralValue) -> Kind<'a> {
    match literal {
        LiteralValue::Boolean(_) => Kind::Bool,
        LiteralValue::Bytes(_) => Kind::Bytes,
        LiteralValue::Double(_) => Kind::Double,
        LiteralValue::Int(_) => Kind::Int,
        LiteralValue::Null => Kind::Null,
        LiteralValue::String(_) => Kind::String,
        LiteralValue::UInt(_) => Kind::Uint,
    }
}
