use super::*;

const ANY: &[Place] = &[Place::Metadata, Place::Auth, Place::Env];

fn spec(metadata: &str, auth: &str, env: &str) -> TriggerSpec {
    let pairs = |text: &str| {
        let pairs = text.split(';').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<Vec<_>>()
    };
    let secrets = |text: &str| {
        pairs(text).into_iter().map(|(name, value)| (name, Secret::from(value))).collect()
    };
    TriggerSpec {
        kind: "test".to_owned(),
        metadata: pairs(metadata).into_iter().collect(),
        auth: secrets(auth),
        env: secrets(env),
        ..TriggerSpec::default()
    }
}

#[test]
fn fields_are_found_in_the_order_of_their_places() {
    for (metadata, auth, env, expected) in [
        ("a=1", "a=2", "", "1"),
        ("", "a=2", "", "2"),
        ("a= ;aFromEnv=V", "", "V=3", "3"),
        ("aFromEnv=V", "", "W=3", ""),
        ("", "", "", ""),
        ("b=4", "", "", "4"),
        ("b=4;a=1", "", "", "1"),
        ("a=  x y ", "", "", "x y"),
    ] {
        let spec = spec(metadata, auth, env);
        let found = Fields::new(&spec).field(&["a", "b"], ANY).text();
        assert_eq!(found, expected, "{metadata} {auth} {env}");
    }
}

/// All problems and warnings after some fields were read.
fn outcome(metadata: &str, auth: &str) -> String {
    let spec = spec(metadata, auth, "V=hunter2");
    let mut fields = Fields::new(&spec);
    fields.field(&["url"], METADATA).required();
    fields.field(&["threshold"], ANY).number_or(1.0);
    fields.field(&["count"], METADATA).integer_or(1);
    fields.field(&["on"], METADATA).bool_or(false);
    fields.field(&["format"], METADATA).one_of(&["prometheus", "json"], "json");
    fields.field(&["timeout"], METADATA).duration();
    fields.field(&["headers"], METADATA).map();
    match fields.finish("tried: ", "") {
        Ok(warnings) => warnings.join("|"),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn all_that_is_wrong_is_named() {
    for (metadata, expected) in [
        ("url=x", ""),
        ("", "tried: missing required parameter \"url\" in [triggerMetadata]"),
        (
            "threshold=ten;count=1.5",
            "tried: missing required parameter \"url\" in [triggerMetadata]\n\
             unable to set param \"threshold\" value \"ten\": unable to unmarshal to field type float64: \
             invalid character 'e' in literal true (expecting 'r')\n\
             unable to set param \"count\" value \"1.5\": unable to unmarshal to field type int64: \
             json: cannot unmarshal number 1.5 into Go value of type int64",
        ),
        (
            "url=x;format=csv",
            "tried: parameter \"format\" value \"csv\" must be one of [prometheus json]",
        ),
        (
            "url=x;timeout=-1s",
            "tried: unable to set param \"timeout\" value \"-1s\": duration cannot be negative: \"-1s\"",
        ),
        (
            "url=x;headers=a",
            "tried: unable to set param \"headers\" value \"a\": expected format key=value, got \"a\"",
        ),
        (
            "url=x;treshold=5",
            "metadata \"treshold\" is not known to triggers of type test and has no effect; \
             did you mean \"threshold\"?",
        ),
        (
            "url=x;somethingElse=5",
            "metadata \"somethingElse\" is not known to triggers of type test and has no effect; remove it",
        ),
        (
            "url=x;thresholdFromEnv=W",
            "metadata \"thresholdFromEnv\" names the variable \"W\", which the container's environment \
             does not have; set it there, or name one that it has",
        ),
    ] {
        assert_eq!(outcome(metadata, ""), expected, "{metadata}");
    }
}

#[test]
fn secrets_are_not_part_of_errors() {
    for (metadata, auth) in [("url=x;thresholdFromEnv=V", ""), ("url=x", "threshold=hunter2")] {
        let errors = outcome(metadata, auth);
        assert!(errors.contains("\"threshold\" value \"***\""), "{errors}");
        assert!(!errors.contains("hunter2") && !errors.contains("'h'"), "{errors}");
    }
}

#[test]
fn durations_are_gos_or_milliseconds() {
    for (text, expected) in [("30s", 30_000), ("1500", 1500), ("1m0.5s", 60_500), ("0", 0)] {
        let spec = spec(&format!("timeout={text}"), "", "");
        let found = Fields::new(&spec).field(&["timeout"], METADATA).duration();
        assert_eq!(found, Some(Duration::from_millis(expected)), "{text}");
    }
}

#[test]
fn hints_say_what_to_do() {
    let spec = spec("", "", "");
    let mut fields = Fields::new(&spec);
    fields.field(&["host"], ANY).required();
    let errors = fields.finish("", "").expect_err("it is missing");
    assert_eq!(
        errors.with_hints(),
        "missing required parameter \"host\" in [triggerMetadata authParams resolvedEnv]: \
         set metadata.host or parameter host of the authentication or metadata.hostFromEnv"
    );
    assert_eq!(errors.problems()[0].field, Some("host"));
}

#[test]
fn names_of_metrics_have_no_odd_characters() {
    assert_eq!(metric_name(2, "redis-a/b.c:d%e(f)"), "s2-redis-a-b-c-d-e-f-");
}
