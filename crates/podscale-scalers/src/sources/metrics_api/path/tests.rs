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

#[test]
fn what_is_not_supported_is_refused() {
    let nested = |deep: usize| format!("{}b{}", "a.#(".repeat(deep), ")".repeat(deep));
    assert!(Path::parse(&nested(8)).is_ok());
    for (path, expected) in [
        ("a.@ugly", "@ugly is not supported; known are @this, "),
        ("a.@flatten:{\"deep\":true}", "arguments of @flatten are not supported"),
        ("a.#.b.@this", "\"@this\" would apply to each element: write a pipe"),
        ("a.@values.0", "of @keys and @values only the number is known"),
        ("a.@values.#.b|0", "of @keys and @values only the number is known"),
        ("a.@values.#(b==1).c", "of @keys and @values only the number is known"),
        ("{a,b}", "'{' begins a part of GJSON"),
        ("a.#(b", "a bracket is not closed"),
        ("a.#(b==~true)", "comparisons with ~"),
        ("a.#x", "'x' is not expected"),
        (&"a.".repeat(100), "it has more than 64 steps"),
        (&nested(9), "conditions stand in conditions more than 8 deep"),
        (&nested(10_000), "it is longer than 1024 bytes"),
    ] {
        let error = Path::parse(path).expect_err(path);
        assert!(error.starts_with(expected), "{path}: {error}");
    }
}
