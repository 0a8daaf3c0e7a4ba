use super::*;

#[test]
fn documents_together_are_the_file() {
    for (text, lines) in [
        ("a: 1\n", vec![0]),
        ("---\na: 1\n---\nb: 2\n", vec![0, 2]),
        ("# head\n---\na: 1\n--- # next\nb: 2", vec![0, 1, 3]),
        ("a: |\n  ---\nb: ---x\n", vec![0]),
        ("", vec![0]),
        ("{\"a\": 1}\n{\"b\":\n 2}\n", vec![0, 0]),
        ("{a: 1}\n---\n[2]\n", vec![0, 1]),
    ] {
        let documents = split(text);
        let whole: String = documents.iter().map(|document| document.text).collect();
        assert_eq!(whole, text);
        let before: Vec<u32> = documents.iter().map(|document| document.lines_before).collect();
        assert_eq!(before, lines, "{text}");
    }
}

#[test]
fn the_head_of_a_document_says_nothing() {
    for (text, head, content) in [
        ("# why\n\n---\n", "# why\n\n---\n", false),
        ("--- # one\n# two\na: 1\n# three\n", "--- # one\n# two\n", true),
        ("--- {a: 1}\n", "", true),
        ("%YAML 1.2\n---\n", "%YAML 1.2\n---\n", false),
    ] {
        let document = Document { text, lines_before: 0, format: Format::Yaml };
        assert_eq!((document.head(), document.has_content()), (head, content), "{text}");
    }
}

#[test]
fn fields_have_places() {
    let yaml = "---\nmetadata:\n  annotations: {a.b/c: x}\nspec:\n  metrics:\n  - type: Pods\n    pods: {n: 1}\n";
    let json = "\n{\"metadata\": {\n\t\"annotations\": {\"a.b/c\": \"x\"}},\n  \"spec\": {\"metrics\": [{\"type\": \"Pods\",\n    \"pods\": {\"n\": 1}}]}}";
    for (text, places) in [
        (yaml, [(2, 1), (3, 17), (6, 5), (6, 5), (7, 12), (7, 5), (4, 1)]),
        (json, [(2, 2), (3, 18), (4, 24), (4, 25), (5, 14), (5, 5), (4, 3)]),
    ] {
        let document = split(text)[0];
        let content = document.read().expect(text);
        assert_eq!(content.value["spec"]["metrics"][0]["pods"]["n"], 1);
        let paths = [
            "metadata",
            "metadata.annotations[a.b/c]",
            "spec.metrics[0]",
            "spec.metrics[0].type",
            "spec.metrics[0].pods.n",
            // What is not there is at what is around it.
            "spec.metrics[0].pods.missing[3].x",
            "spec.maxReplicas",
        ];
        for (path, (line, column)) in paths.into_iter().zip(places) {
            assert_eq!(content.places.find(path), Place { line, column }, "{path} in {text}");
        }
    }
}

#[test]
fn fields_that_are_twice_are_refused() {
    let error = split("{\"a\": {\"b\": 1,\n \"b\": \"x\\\"y\"}}")[0].read().expect_err("twice");
    assert_eq!(error.problem, "duplicate field \"a.b\"");
    assert_eq!(error.place, Place { line: 2, column: 2 });
    assert!(split("a: 1\na: 2\n")[0].read().is_err());
}

#[test]
fn places_count_from_the_beginning_of_the_file() {
    let documents = split("a: 1\n---\nb: 2\n---\nc: [\n");
    let second = documents[1].read().expect("YAML");
    assert_eq!(second.places.find("b"), Place { line: 3, column: 1 });
    let error = documents[2].read().expect_err("not YAML");
    assert!(error.place.line >= 5, "{error:?}");
    assert!(error.problem.starts_with("not YAML that can be read: "), "{error:?}");
}

#[test]
fn what_is_no_yaml_is_told_in_plain_words() {
    let mut wrong = Vec::new();
    for (text, line, expected) in [
        ("a: [1, 2\n", 1, "a [ is never closed"),
        ("a: {b: 1\nc: 2\n", 2, "a comma or a } is missing before this"),
        ("a: [1, 2}\n", 1, "a [ cannot be closed by }"),
        ("a: 1]\nb: ]\n", 2, "this bracket closes nothing"),
        ("a: 'x\n", 2, "a quote is never closed, or the next line of its text is not indented"),
        ("a: 1\na: 2\n", 2, "the field \"a\" is there twice"),
        ("a:\n\tb: 1\n", 2, "a tab cannot indent; use spaces"),
        (
            "a: b: 1\n",
            1,
            "no value may begin here: it is indented wrongly, or its text has a colon and needs quotes",
        ),
        ("a: *b\n", 1, "this alias (*) names no anchor (&) before it"),
        ("a: @b\n", 1, "a value cannot begin with @; put it into quotes"),
    ] {
        let error = split(text)[0].read().expect_err(text);
        let said = error.problem.trim_start_matches("not YAML that can be read: ");
        if (said, error.place.line) != (expected, line) {
            wrong.push(format!("{text:?}: {error:?}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}
