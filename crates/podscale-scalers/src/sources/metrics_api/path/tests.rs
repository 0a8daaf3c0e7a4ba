use super::*;

const DOCUMENT: &str = r#"{
    "name": {"first": "Tom", "last": "Anderson"}, "age": 37, "fav.movie": "Deer Hunter", "on": true,
    "children": ["Sara", "Alex", "Jack"], "7": "seven",
    "friends": [
        {"first": "Dale", "last": "Murphy", "age": 44, "nets": ["ig", "fb", "tw"]},
        {"first": "Roger", "last": "Craig", "age": 68, "nets": ["fb", "tw"]},
        {"first": "Jane", "last": "Murphy", "age": 47, "nets": ["ig", "tw"]}
    ]}"#;

#[test]
fn paths_find_what_gjson_finds() {
    let document: Value = serde_json::from_str(DOCUMENT).expect("JSON");
    for (path, expected) in [
        ("name.last", "\"Anderson\""),
        ("age", "37"),
        ("children.#", "3"),
        ("children.1", "\"Alex\""),
        ("children.9", "null"),
        ("child*.2", "\"Jack\""),
        ("c?ildren.0", "\"Sara\""),
        ("fav\\.movie", "\"Deer Hunter\""),
        ("7", "\"seven\""),
        ("friends.#.first", "[\"Dale\",\"Roger\",\"Jane\"]"),
        ("friends.#.first|#", "3"),
        ("friends.#.age|1", "68"),
        ("friends.1.last", "\"Craig\""),
        ("friends.#(last==\"Murphy\").first", "\"Dale\""),
        ("friends.#(last==\"Murphy\")#.first", "[\"Dale\",\"Jane\"]"),
        ("friends.#(last==\"Murphy\")#.#", "2"),
        ("friends.#(age>45).age", "68"),
        ("friends.#(age>=47)#.age", "[68,47]"),
        ("friends.#(first%\"D*\").last", "\"Murphy\""),
        ("friends.#(first!%\"D*\").last", "\"Craig\""),
        ("friends.#(nets.#>2).age", "44"),
        ("friends.#(nothing).age", "null"),
        ("children.#(==\"Alex\")", "\"Alex\""),
        ("children.#(!=\"Sara\")", "\"Alex\""),
        ("name.first.more", "null"),
        ("nothing", "null"),
        ("@this.age", "37"),
        ("children.@this.#", "3"),
        ("@keys.#", "7"),
        ("name|@keys|#", "2"),
        ("name.@values.#", "2"),
        ("name.@values.#(%\"T*\")#|#", "1"),
        ("nothing.@values.#", "0"),
        ("age.@values.#", "1"),
        ("children.@keys.#", "3"),
        ("children.@reverse.0", "\"Jack\""),
        ("children.@reverse.@reverse.0", "\"Sara\""),
        ("friends.#.nets|@flatten|#", "7"),
        ("friends.#.nets|@flatten.#(==\"tw\")#|#", "3"),
    ] {
        let found = Path::parse(path).expect(path);
        assert_eq!(found.get(&document).to_string(), expected, "{path}");
    }
}

/// A document for what is made of others.
const WIDE: &str = r#"{
    "name": {"first": "Tom", "last": "Anderson"}, "age": 37, "on": true, "children": ["Sara", "Alex", "Jack"],
    "7": "seven", "friends": [
        {"first": "Dale", "last": "Murphy", "age": 44, "nets": ["ig", "fb", "tw"]},
        {"first": "Roger", "last": "Craig", "age": 68, "nets": ["fb", "tw"]},
        {"first": "Jane", "last": "Murphy", "age": 47, "nets": ["ig", "tw"]}
    ],
    "empty": null, "deep": [1, [2], [3, [4, [5]]], []], "objects": [{"a": 1, "b": 2}, 5, {"b": 3, "c": 4}],
    "text": "{\"n\":12,\"list\":[1,2]}", "number": "41", "columns": {"a": [1, 2], "b": [3, 4, 5], "c": 6},
    "mixed": [{"a": 5}, {"a": "5"}, {"a": true}, {"a": false}, {"a": null}, {"b": 1}, {"a": 0}, {"a": "True"},
        {"a": [1]}]}"#;

/// What GJSON 1.19 finds, which KEDA 2.21 uses.
#[test]
fn selections_modifiers_and_conditions_are_those_of_gjson() {
    let document: Value = serde_json::from_str(WIDE).expect("JSON");
    for (path, expected) in [
        ("[age,7]", r#"[37,"seven"]"#),
        ("[age,7].#", "2"),
        ("[age,nothing,on].#", "2"),
        ("[friends.0.age,friends.1.age].1", "68"),
        ("[friends.0.age,friends.1.age]|#", "2"),
        ("{age,7}", r#"{"7":"seven","age":37}"#),
        ("{age,children}.children.#", "3"),
        (r#"{"n":friends.0.age,m:friends.1.age}.n"#, "44"),
        (r#"{"n":friends.0.age,m:friends.1.age}.m"#, "68"),
        ("{name.first,friends.#.age}", r#"{"age":[44,68,47],"first":"Tom"}"#),
        ("{friends.#}", r#"{"_":3}"#),
        ("{friends.#(age>45)#.age}._.0", "null"),
        ("name.{first,last}.last", r#""Anderson""#),
        ("name.[first,last].0", r#""Tom""#),
        ("friends.#.[age,last]", r#"[[44,"Murphy"],[68,"Craig"],[47,"Murphy"]]"#),
        (r#"friends.#.{age,"l":last}.l"#, r#"["Murphy","Craig","Murphy"]"#),
        ("friends.#.{age,last}|1.age", "68"),
        (r#"friends.#(last=="Murphy")#.{age}|#"#, "2"),
        ("nothing.{a,b}", "{}"),
        ("nothing.[a,b].#", "0"),
        ("[age,empty].#", "2"),
        ("[children.#,friends.#].1", "3"),
        ("[[age,7].#,[on].#]", "[2,1]"),
        (r#"{a:{b:age}.b,"c":[age]}.c.0"#, "37"),
        ("[children.@reverse.0,age].0", r#""Jack""#),
        ("[friends.#.nets|@flatten|#].0", "7"),
        (r#"[deep.@flatten:{"deep":true}.#,age].0"#, "5"),
        ("deep.@flatten", "[1,2,3,[4,[5]]]"),
        (r#"deep.@flatten:{"deep":true}"#, "[1,2,3,4,5]"),
        (r#"deep.@flatten:{"deep":true}.#"#, "5"),
        (r#"deep.@flatten:{"deep":false}.#"#, "4"),
        ("objects.@join", r#"{"a":1,"b":3,"c":4}"#),
        ("objects.@join.b", "3"),
        ("objects.@join.@keys.#", "3"),
        ("age.@join", "37"),
        ("age.@tostr", r#""37""#),
        ("name.first.@tostr", r#""\"Tom\"""#),
        ("on.@tostr", r#""true""#),
        ("nothing.@tostr", r#""""#),
        ("text.@fromstr.n", "12"),
        ("text.@fromstr.list.#", "2"),
        ("number.@fromstr", "41"),
        ("age.@fromstr", "37"),
        ("nothing.@fromstr", "null"),
        ("text.@fromstr|@tostr|@fromstr.n", "12"),
        ("columns.@group", r#"[{"a":1,"b":3},{"a":2,"b":4},{"b":5}]"#),
        ("columns.@group.#", "3"),
        ("columns.@group.1.b", "4"),
        ("age.@group", "null"),
        ("age.@valid", "37"),
        ("@valid.age", "37"),
        ("nothing.@valid", "null"),
        ("@ugly.age", "37"),
        ("@pretty.age", "37"),
        (r#"@pretty:{"width":10,"indent":"x"}.age"#, "37"),
        ("@dig:age|#", "4"),
        ("@dig:nets|#", "3"),
        ("@dig:nets.#|#", "3"),
        ("@dig:nothing|#", "0"),
        ("@dig:age|#(>45)#|#", "2"),
        ("age.@dig:x|#", "0"),
        ("nothing.@dig:x|#", "0"),
        (r#"friends.@dig:last|#(=="Murphy")#|#"#, "2"),
        ("mixed.#(a=5)#|#", "2"),
        (r#"mixed.#(a=="5")#|#"#, "2"),
        ("mixed.#(a!=5)#|#", "4"),
        ("mixed.#(a>4)#|#", "3"),
        ("mixed.#(a=true)#|#", "2"),
        ("mixed.#(a<true)#|#", "3"),
        ("mixed.#(a>false)#|#", "2"),
        ("mixed.#(a>=false)#|#", "3"),
        ("mixed.#(a==null)#|#", "1"),
        ("mixed.#(a!=null)#|#", "5"),
        ("mixed.#(a)#|#", "8"),
        ("mixed.#.a|#", "8"),
        ("mixed.#(a==~true)#|#", "3"),
        ("mixed.#(a==~false)#|#", "4"),
        ("mixed.#(a==~null)#|#", "2"),
        ("mixed.#(a==~*)#|#", "8"),
        ("mixed.#(a!=~true)#|#", "6"),
        ("mixed.#(a!=~*)#|#", "1"),
        (r#"children.#(=="Alex")"#, r#""Alex""#),
        ("@this.@this.age", "37"),
        ("empty.@keys.#", "1"),
        ("empty.@values.#", "1"),
        ("empty.@tostr", r#""null""#),
        ("[empty.@keys.#].0", "1"),
        (r#"{"x\"y":age}.x"y"#, "37"),
        ("[age]", "[37]"),
    ] {
        let found = Path::parse(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(found.get(&document).to_string(), expected, "{path}");
    }
}

#[test]
fn what_is_made_of_a_document_is_bounded() {
    let twice = |times: usize| vec!["[@this,@this]"; times].join("|");
    assert!(Path::parse(&twice(6)).is_ok());
    for path in [twice(7), ["@tostr"; 7].join("|"), format!("[{}]", ["a"; 65].join(","))] {
        let error = Path::parse(&path).expect_err(&path);
        assert_eq!(error, "it would repeat what it finds more than 64 times");
    }
    let list = Value::from(vec![0; MOST_MADE + 1]);
    let path = Path::parse("#.[@this]|#").expect("a path");
    assert_eq!(*path.get(&list), Value::Null);
    let group = Path::parse("@group.#").expect("a path");
    assert_eq!(*group.get(&serde_json::json!({"a": list})), Value::Null);
    let names = serde_json::json!({"a".repeat(1 << 20): vec![0; 9]});
    assert_eq!(*group.get(&names), Value::Null);
}

proptest::proptest! {
    #[test]
    fn nothing_panics(path in r#"([\[\]{}()|.,:#*~"\\=a1]|@this|@dig:|@join|@tostr|@group|name){0,40}"#) {
        let document: Value = serde_json::from_str(WIDE).expect("JSON");
        if let Ok(path) = Path::parse(&path) {
            let _ = path.get(&document);
        }
    }
}

#[test]
fn what_is_not_supported_is_refused() {
    let nested = |deep: usize| format!("{}b{}", "a.#(".repeat(deep), ")".repeat(deep));
    assert!(Path::parse(&nested(8)).is_ok());
    for (path, expected) in [
        ("a.@upper", "@upper is not supported; known are @this, "),
        ("a.@join:{\"preserve\":true}", "the argument preserve of @join is not supported"),
        ("a.@dig", "@dig needs a path"),
        ("@dig:@dig:a|#", "@dig in @dig is not supported"),
        ("@dig:a|0", "of @keys, @values and @dig only the number is known"),
        ("a.#.b.@this", "\"@this\" would apply to each element: write a pipe"),
        ("a.@values.0", "of @keys, @values and @dig only the number is known"),
        ("a.@values.#.b|0", "of @keys, @values and @dig only the number is known"),
        ("a.@values.#(b==1).c", "of @keys, @values and @dig only the number is known"),
        ("!5", "'!' begins a literal of GJSON"),
        ("{a,b", "a bracket is not closed"),
        ("[a,b]c", "'c' is not expected"),
        ("{a,b.a}", "{…} has \"a\" twice"),
        ("a.#(b", "a bracket is not closed"),
        ("a.#(b==~maybe)", "after ~ comes *, null, true or false"),
        ("a.#x", "'x' is not expected"),
        (&"a.".repeat(100), "it has more than 64 steps"),
        (&nested(9), "conditions and selections stand in each other more than 8 deep"),
        (&nested(10_000), "it is longer than 1024 bytes"),
    ] {
        let error = Path::parse(path).expect_err(path);
        assert!(error.starts_with(expected), "{path}: {error}");
    }
}
