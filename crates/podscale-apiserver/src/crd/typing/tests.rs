//! What a real server says of most of these is in `e2e/golden/requests.jsonl`.

use serde_json::json;

use super::*;
use crate::crd::expression::Expression;

fn checked(rule: &str, purpose: Purpose, standing: Standing) -> Result<(), String> {
    let schema = Schema::parse(&json!({
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "s": {"type": "string"},
            "d": {"type": "number"},
            "t": {"type": "string", "format": "date-time"},
            "for": {"type": "string"},
            "with-dash": {"type": "string"},
            "hidden": {"x-kubernetes-preserve-unknown-fields": true},
            "port": {"x-kubernetes-int-or-string": true},
            "l": {"type": "array", "items": {"type": "string"}},
            "m": {"type": "object", "additionalProperties": {"type": "integer"}},
            "c": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        },
    }))
    .unwrap();
    let subject = Subject { schema: &schema, standing, optional_old: false };
    Expression::compile(rule).unwrap().check(subject, purpose)
}

#[test]
fn rules_that_fit_their_schema_are_accepted() {
    for rule in [
        "self.a > 1 && self.a < 1.5",
        "!has(self.s) || self.s.startsWith('x') || self.s.size() > 3",
        "self.__for__ == self.with__dash__with || true",
        "self.__for__ == 'x' && self.with__dash__dash == 'y'",
        "self.port == 1 || self.port == 'http'",
        "self.l.all(x, x.matches('^a')) && self.l.exists_one(x, x == 'b')",
        "self.c.map(x, x.n).all(n, n > 1) && self.c.filter(x, x.n > 1).size() == 1",
        "self.m.all(key, self.m[key] > 1) && 'k' in self.m && self.m.k == 1",
        "self.t > timestamp('2000-01-01T00:00:00Z') + duration('1h')",
        "self.d * 2.0 > 1.0 && -self.a == 1 && self.a % 2 == 0",
        "self.s in ['a', 'b'] && [self.a, 2] == [1, 2]",
        "self.a == oldSelf.a",
        "(self.a == 1 ? self.s : 'x') == 'x'",
    ] {
        let found = checked(rule, Purpose::Rule, Standing::Below);
        if rule.contains("dash__with") {
            assert!(found.is_err(), "{rule}");
        } else {
            assert_eq!(found, Ok(()), "{rule}");
        }
    }
    assert_eq!(
        checked("self.metadata.name == 'x' && self.kind != ''", Purpose::Rule, Standing::Root),
        Ok(())
    );
    assert_eq!(checked("'was ' + string(self.a)", Purpose::Message, Standing::Below), Ok(()));
}

#[test]
fn mistakes_are_told_with_their_place() {
    for (rule, told) in [
        ("self.b > 1", "ERROR: <input>:1:5: undefined field 'b'\n | self.b > 1\n | ....^"),
        (
            "self.hidden == 1",
            "ERROR: <input>:1:5: undefined field 'hidden'\n | self.hidden == 1\n | ....^",
        ),
        (
            "nope == 1 &&\n self.y",
            "ERROR: <input>:1:1: undeclared reference to 'nope' (in container '')\n | nope == 1 &&\n | ^\n\
             ERROR: <input>:2:6: undefined field 'y'\n |  self.y\n | .....^",
        ),
        (
            "self.a > 'x'",
            "ERROR: <input>:1:8: found no matching overload for '_>_' applied to '(int, string)'\n | \
             self.a > 'x'\n | .......^",
        ),
        (
            "self.c.all(x, x.q == 1)",
            "ERROR: <input>:1:16: undefined field 'q'\n | self.c.all(x, x.q == 1)\n | ...............^",
        ),
        (
            "'é' == self.w",
            "ERROR: <input>:1:12: undefined field 'w'\n | 'é' == self.w\n | .\u{ff0e}.........^",
        ),
    ] {
        let found = checked(rule, Purpose::Rule, Standing::Below);
        assert_eq!(found, Err(format!("compilation failed: {told}")), "{rule}");
    }
}

#[test]
fn results_have_the_kind_that_is_needed() {
    assert_eq!(
        checked("self.a", Purpose::Rule, Standing::Below),
        Err("cel expression must evaluate to a bool".to_owned())
    );
    assert_eq!(
        checked("self.a", Purpose::Message, Standing::Below),
        Err("messageExpression must evaluate to a string".to_owned())
    );
    assert!(checked("self.metadata.name == 'x'", Purpose::Rule, Standing::Below).is_err());
    assert!(checked("self.metadata.labels.x == 'x'", Purpose::Rule, Standing::Root).is_err());
}
