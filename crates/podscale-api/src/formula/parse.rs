//! Reads words into a formula, by the precedence of operators.

use super::lex::{Word, words};
use super::{CURRENT, ExpressionError};
use podscale_core::model::{Binary, Fact, MAX_DEPTH, Part, Unary};

/// What a part gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Truth,
}

impl Kind {
    fn shown(self) -> &'static str {
        match self {
            Kind::Number => "a number",
            Kind::Truth => "true or false",
        }
    }
}

/// A part, what it gives, and where it begins.
struct Typed {
    part: Part,
    kind: Kind,
    place: usize,
}

/// An operator between two parts: how tightly it binds, what it takes and what it gives. Both sides of
/// an equation may be either.
struct Operator {
    binary: Binary,
    binds: u8,
    takes: Option<Kind>,
    gives: Kind,
}

fn operator(sign: &str) -> Option<Operator> {
    use Kind::{Number, Truth};
    let (binary, binds, takes, gives) = match sign {
        "||" => (Binary::Or, 1, Some(Truth), Truth),
        "&&" => (Binary::And, 2, Some(Truth), Truth),
        "==" => (Binary::Equal, 3, None, Truth),
        "!=" => (Binary::NotEqual, 3, None, Truth),
        "<" => (Binary::Less, 3, Some(Number), Truth),
        "<=" => (Binary::LessOrEqual, 3, Some(Number), Truth),
        ">" => (Binary::Greater, 3, Some(Number), Truth),
        ">=" => (Binary::GreaterOrEqual, 3, Some(Number), Truth),
        "+" => (Binary::Add, 4, Some(Number), Number),
        "-" => (Binary::Subtract, 4, Some(Number), Number),
        "*" => (Binary::Multiply, 5, Some(Number), Number),
        "/" => (Binary::Divide, 5, Some(Number), Number),
        "%" => (Binary::Remainder, 5, Some(Number), Number),
        _ => return None,
    };
    Some(Operator { binary, binds, takes, gives })
}

/// Reads one expression.
pub(super) struct Parser<'a> {
    words: Vec<(usize, Word)>,
    next: usize,
    depth: usize,
    names: &'a [Option<&'a str>],
}

impl<'a> Parser<'a> {
    pub(super) fn new(
        text: &str,
        names: &'a [Option<&'a str>],
    ) -> Result<Parser<'a>, ExpressionError> {
        Ok(Parser { words: words(text)?, next: 0, depth: 0, names })
    }

    /// The whole expression, which gives a number.
    pub(super) fn number(mut self) -> Result<Part, ExpressionError> {
        let whole = self.choice()?;
        let (place, word) = self.take();
        if word != Word::End {
            return Err(at(place, format!("{} is not expected", word.shown())));
        }
        if whole.kind == Kind::Number { Ok(whole.part) } else { Err(ExpressionError::NotANumber) }
    }

    /// `condition ? one : other`, or anything that binds more tightly.
    fn choice(&mut self) -> Result<Typed, ExpressionError> {
        self.depth += 1;
        // What nests deeper is refused anyway, and reading it would take the stack.
        if self.depth > MAX_DEPTH {
            return Err(at(self.peek().0, format!("nested more than {MAX_DEPTH} levels deep")));
        }
        let condition = self.sequence(1)?;
        let whole = if self.takes_sign("?") {
            let place = condition.place;
            let condition = wanted(condition, Kind::Truth)?;
            let yes = self.choice()?;
            self.expect(":")?;
            let no = self.choice()?;
            let kind = yes.kind;
            let no = wanted(no, kind)?;
            let part = Part::If(Box::new(condition), Box::new(yes.part), Box::new(no));
            Typed { part, kind, place }
        } else {
            condition
        };
        self.depth -= 1;
        Ok(whole)
    }

    /// Parts with operators between them that bind at least so tightly.
    fn sequence(&mut self, tightly: u8) -> Result<Typed, ExpressionError> {
        let mut left = self.unary()?;
        while let Word::Sign(sign) = &self.peek().1
            && let Some(Operator { binary, binds, takes, gives }) = operator(sign)
            && binds >= tightly
        {
            self.take();
            let right = self.sequence(binds + 1)?;
            let (place, kind) = (left.place, takes.unwrap_or(left.kind));
            let (one, other) = (Box::new(wanted(left, kind)?), Box::new(wanted(right, kind)?));
            left = Typed { part: Part::Binary(binary, one, other), kind: gives, place };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Typed, ExpressionError> {
        let place = self.peek().0;
        let (unary, kind) = if self.takes_sign("-") {
            (Unary::Negate, Kind::Number)
        } else if self.takes_sign("!") {
            (Unary::Not, Kind::Truth)
        } else {
            return self.primary();
        };
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(at(place, format!("nested more than {MAX_DEPTH} levels deep")));
        }
        let inner = self.unary()?;
        self.depth -= 1;
        let part = Part::Unary(unary, Box::new(wanted(inner, kind)?));
        Ok(Typed { part, kind, place })
    }

    fn primary(&mut self) -> Result<Typed, ExpressionError> {
        let (place, word) = self.take();
        match word {
            Word::Number(number) => Ok(Typed { part: Part::Number(number), kind: Kind::Number, place }),
            Word::Sign("(") => {
                let inner = self.choice()?;
                self.expect(")")?;
                Ok(Typed { place, ..inner })
            }
            Word::Name(name) => self.named(name, place),
            other => Err(at(place, format!("a value is expected, not {}", other.shown()))),
        }
    }

    /// What a name stands for: a function, the target's size, or a metric and what it says.
    fn named(&mut self, name: String, place: usize) -> Result<Typed, ExpressionError> {
        let number = |part| Typed { part, kind: Kind::Number, place };
        if self.takes_sign("(") {
            return self.call(&name, place);
        }
        if matches!(name.as_str(), "true" | "false") {
            let part = Part::Number(f64::from(u8::from(name == "true")));
            return Ok(Typed { part, kind: Kind::Truth, place });
        }
        // CEL keeps such functions in a namespace of their own.
        if name == "math" && self.takes_sign(".") {
            let function = self.name()?;
            self.expect("(")?;
            return self.call(&function, place);
        }
        if name == CURRENT {
            return Ok(number(Part::CurrentReplicas));
        }
        let metric = self.metric(&name, place)?;
        let fact = if self.takes_sign(".") {
            let field_place = self.peek().0;
            match self.name()?.as_str() {
                "replicas" => Fact::Replicas,
                "value" => Fact::Value,
                "ratio" => Fact::Ratio,
                other => {
                    let problem = format!("{name} has no {other:?}: replicas, value and ratio");
                    return Err(at(field_place, problem));
                }
            }
        } else {
            Fact::Replicas
        };
        Ok(number(Part::Metric { metric, fact }))
    }

    fn metric(&self, name: &str, place: usize) -> Result<u32, ExpressionError> {
        let found = self.names.iter().position(|known| *known == Some(name));
        found.and_then(|metric| u32::try_from(metric).ok()).ok_or_else(|| {
            let known: Vec<&str> = self.names.iter().copied().flatten().collect();
            let known = if known.is_empty() { "none has a name".to_owned() } else { known.join(", ") };
            at(place, format!("no metric is called {name:?}: {known}"))
        })
    }

    fn call(&mut self, function: &str, place: usize) -> Result<Typed, ExpressionError> {
        if function == "has" {
            let name_place = self.peek().0;
            let name = self.name()?;
            let metric = self.metric(&name, name_place)?;
            self.expect(")")?;
            return Ok(Typed { part: Part::Has { metric }, kind: Kind::Truth, place });
        }
        let mut arguments = vec![wanted(self.choice()?, Kind::Number)?];
        while self.takes_sign(",") {
            arguments.push(wanted(self.choice()?, Kind::Number)?);
        }
        self.expect(")")?;
        let number = |part| Ok(Typed { part, kind: Kind::Number, place });
        let many = match function {
            "max" | "greatest" => Some(Binary::Max),
            "min" | "least" => Some(Binary::Min),
            _ => None,
        };
        if let Some(binary) = many {
            let join = |one, other| Part::Binary(binary, Box::new(one), Box::new(other));
            let joined = arguments.into_iter().reduce(join);
            return joined.map_or_else(|| Err(at(place, "arguments are missing".to_owned())), number);
        }
        let unary = match function {
            "ceil" => Unary::Ceil,
            "floor" => Unary::Floor,
            "round" => Unary::Round,
            "abs" => Unary::Abs,
            other => return Err(at(place, format!("there is no function {other:?}"))),
        };
        match <[Part; 1]>::try_from(arguments) {
            Ok([argument]) => number(Part::Unary(unary, Box::new(argument))),
            Err(_) => Err(at(place, format!("{function} takes one argument"))),
        }
    }

    fn peek(&self) -> &(usize, Word) {
        static END: (usize, Word) = (0, Word::End);
        self.words.get(self.next).unwrap_or(&END)
    }

    fn take(&mut self) -> (usize, Word) {
        let word = self.peek().clone();
        // The end stays.
        if word.1 != Word::End {
            self.next += 1;
        }
        word
    }

    fn takes_sign(&mut self, wanted: &str) -> bool {
        let found = matches!(&self.peek().1, Word::Sign(sign) if *sign == wanted);
        if found {
            self.take();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), ExpressionError> {
        if self.takes_sign(sign) {
            return Ok(());
        }
        let (place, word) = self.peek();
        Err(at(*place, format!("{sign:?} is expected, not {}", word.shown())))
    }

    fn name(&mut self) -> Result<String, ExpressionError> {
        match self.take() {
            (_, Word::Name(name)) => Ok(name),
            (place, other) => Err(at(place, format!("a name is expected, not {}", other.shown()))),
        }
    }
}

fn wanted(typed: Typed, kind: Kind) -> Result<Part, ExpressionError> {
    if typed.kind == kind {
        return Ok(typed.part);
    }
    let problem = format!("{} is expected, not {}", kind.shown(), typed.kind.shown());
    Err(at(typed.place, problem))
}

fn at(place: usize, problem: String) -> ExpressionError {
    ExpressionError::At { problem, place }
}
