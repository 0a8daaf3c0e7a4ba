use super::*;

fn data() -> Value {
    Value::record([
        ("Series", Value::text("http_total")),
        ("LabelMatchers", Value::text(r#"ns="a",pod=~"x|y""#)),
        ("LabelValuesByName", Value::map([("ns", "a"), ("pod", "x|y")])),
        ("GroupBy", Value::text("pod,container")),
        ("GroupBySlice", Value::list(["pod", "container"])),
    ])
}

#[test]
fn templates_give_what_go_gives() {
    for (template, expected) in [
        ("plain", "plain"),
        ("", ""),
        ("a < b << .Series >> c", "a < b http_total c"),
        ("<<.Series>>{<<.LabelMatchers>>}", r#"http_total{ns="a",pod=~"x|y"}"#),
        ("<<index .LabelValuesByName \"ns\">>", "a"),
        ("<<index .LabelValuesByName `pod`>>", "x|y"),
        ("<<index .LabelValuesByName \"none\">>|", "|"),
        ("<<.LabelValuesByName.ns>> <<.LabelValuesByName.none>>", "a <no value>"),
        ("<<.GroupBySlice>>", "[pod container]"),
        ("<<.LabelValuesByName>>", "map[ns:a pod:x|y]"),
        ("<<index .GroupBySlice 1>>", "container"),
        ("<<len .GroupBySlice>> <<len .Series>>", "2 10"),
        ("<<range .GroupBySlice>>[<<.>>]<<end>>", "[pod][container]"),
        ("<<range $i, $g := .GroupBySlice>><<if $i>>,<<end>><<$g>><<end>>", "pod,container"),
        (
            "<<range $v := .GroupBySlice>><<$v>>-<<$.Series>>;<<end>>",
            "pod-http_total;container-http_total;",
        ),
        ("<<range $k, $v := .LabelValuesByName>><<$k>>=<<$v>>;<<end>>", "ns=a;pod=x|y;"),
        ("<<if .LabelValuesByName.none>>a<<else>>b<<end>>", "b"),
        ("<<if eq .Series `x`>>a<<else if eq .Series `y` `http_total`>>b<<else>>c<<end>>", "b"),
        ("<<with .LabelValuesByName.ns>>in <<.>><<else>>none<<end>>", "in a"),
        ("<<with .LabelValuesByName.none>>in <<.>><<else>><<.Series>><<end>>", "http_total"),
        ("<<.Series | printf \"%s_%s\" \"a\">>", "a_http_total"),
        ("<<printf \"%q %v %d%%\" .Series .GroupBySlice 7>>", "\"http_total\" [pod container] 7%"),
        ("<<print .Series 1 2 .GroupBy>>", "http_total1 2pod,container"),
        ("<<$x := .Series>><<$x>> <<$x = `y`>><<$x>>", "http_total y"),
        ("a  <<- .Series ->>  b", "ahttp_totalb"),
        ("a  <<- /* gone */ ->>  b", "ab"),
        ("a <</* gone */>> b", "a  b"),
        ("<<(index .LabelValuesByName \"ns\") | len>>", "1"),
        (
            "<<and .Series .GroupBy>> <<or .LabelValuesByName.none `z`>> <<not true>>",
            "pod,container z false",
        ),
        ("<<slice .Series 0 4>> <<slice .GroupBySlice 1>>", "http [container]"),
        ("<<lt 1 2>> <<ge `b` `a`>> <<ne 1 1>>", "true true false"),
        ("<<if true>>>><<end>>", ">>"),
        ("<<\">>\">>", ">>"),
        ("<<-3>>", "-3"),
    ] {
        let rendered = Template::parse(template).and_then(|parsed| parsed.render(&data()));
        assert_eq!(rendered.as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (template, problem) in [
        ("<<.Serie>>", "there is no field .Serie; there are .Series, .LabelMatchers"),
        ("<<.Series", "not closed by >>"),
        ("<<>>", "a value is missing"),
        ("<<if .Series>>x", "if has no end"),
        ("<<end>>", "without if, with or range"),
        ("<<$x>>", "the variable $x is not declared"),
        ("<<toLower .Series>>", "there is no function toLower"),
        ("<<html .Series>>", "the function html is not supported"),
        ("<<template `x`>>", "template is not supported"),
        ("<<.Series.Name>>", "text has no field .Name"),
        ("<<index .GroupBySlice 2>>", "index 2 is outside a list of 2"),
        ("<<index .Series 0>>", "index finds nothing in text by a number"),
        ("<<.Series 1>>", "what is not a function gets no arguments"),
        ("<<printf \"%s\">>", "too few values"),
        ("<<printf \"%x\" .Series>>", "not %x with text"),
        ("<<range .Series>><<end>>", "not over text"),
        ("<<eq .Series 1>>", "text cannot be compared with a number"),
        ("<<len>>", "len has the wrong number"),
        ("<<(.Series>>", "parenthesis is not closed"),
        ("<<.Series)>>", "closed that was not opened"),
        ("<<\"a>>", "a string is not closed"),
        ("<</* a >>", "a comment is not closed"),
        ("<<1.5>>", "not a whole number"),
    ] {
        let rendered = Template::parse(template).and_then(|parsed| parsed.render(&data()));
        let error = rendered.expect_err(template).to_string();
        assert!(error.contains(problem), "{template}: {error}");
    }
    let nested = "<<range .GroupBySlice>>".repeat(20) + &"<<end>>".repeat(20);
    let loops = Template::parse(&nested).and_then(|parsed| {
        parsed.render(&Value::record([("GroupBySlice", Value::list(["a", "b"]))]))
    });
    assert!(loops.is_err());
    let many = "<<if true>>".repeat(100) + &"<<end>>".repeat(100);
    assert!(Template::parse(&many).is_err());
    assert!(Template::parse(&"<<(".repeat(50_000)).is_err());
}

#[test]
fn fields_that_are_used_are_found() {
    for (template, used) in [
        ("<<.GroupBy>>", true),
        ("<<$.GroupBy>>", true),
        ("<<if eq (len .GroupBy) 3>><<end>>", true),
        ("<<.Series>>", false),
        ("GroupBy", false),
    ] {
        assert_eq!(Template::parse(template).expect(template).mentions("GroupBy"), used);
    }
}
