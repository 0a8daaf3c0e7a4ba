use super::*;

fn outcome(code: u16, body: &str) -> String {
    match read_query(code, body.as_bytes(), 3) {
        Err(error) => error.to_string(),
        Ok(answer) => {
            let sample = |sample: &Sample| {
                let labels: Vec<String> =
                    sample.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
                format!("{{{}}}{}@{}", labels.join(","), sample.value, sample.time.as_millisecond())
            };
            let mut words: Vec<String> = answer.vector.samples.iter().map(sample).collect();
            words.extend(answer.scalar.then(|| "scalar".to_owned()));
            words.extend(answer.warnings.iter().map(|text| format!("warning: {text}")));
            words.extend(answer.infos.iter().map(|text| format!("info: {text}")));
            words.join(" ")
        }
    }
}

fn vector(series: &str) -> String {
    format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{series}]}}}}"#)
}

#[test]
fn every_answer_to_a_query_has_its_outcome() {
    let with = |more: &str| {
        format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[]}},{more}}}"#)
    };
    let four = [r#"{"metric":{},"value":[1,"1"]}"#; 4].join(",");
    let of_type = |kind: &str, result: &str| {
        format!(r#"{{"status":"success","data":{{"resultType":"{kind}","result":{result}}}}}"#)
    };
    let series = r#"{"metric":{"__name__":"up","job":"a"},"value":[1700000000.123,"1.5"]}"#;
    let turned = r#"{"data":{"result":[{"value":[1,"2"],"metric":{}}],"resultType":"vector"},"status":"success"}"#;
    for (code, body, expected) in [
        (200, vector(series), "{__name__=up,job=a}1.5@1700000000123"),
        (200, vector(""), ""),
        (200, turned.to_owned(), "{}2@1000"),
        (200, vector(r#"{"metric":{},"value":[1,"NaN"]}"#), "{}NaN@1000"),
        (
            200,
            vector(r#"{"metric":{},"value":[1,"+Inf"]},{"metric":{},"value":[1,"-Inf"]}"#),
            "{}inf@1000 {}-inf@1000",
        ),
        (200, vector(r#"{"metric":{"a":"\u00e9\n"},"value":[1,"1e-3"]}"#), "{a=é\n}0.001@1000"),
        (
            200,
            vector(r#"{"metric":{},"value":[1,"x"]},{"metric":{},"value":[1]},{"metric":{}}"#),
            "warning: 3 samples were left out: they have no time or no number",
        ),
        (
            200,
            vector(r#"{"metric":{},"histogram":[1,{"count":"1"}]}"#),
            "warning: 1 sample was left out: a histogram is not one number",
        ),
        (
            200,
            vector(r#"{"metric":{},"value":[1e300,"1"]}"#),
            "warning: 1 sample was left out: they have no time or no number",
        ),
        (
            200,
            vector(r#"null,7,[],"x""#),
            "warning: 2 samples were left out: they have no time or no number",
        ),
        (200, of_type("scalar", r#"[5,"7"]"#), "{}7@5000 scalar"),
        (
            200,
            of_type("scalar", "[]"),
            "the answer is not one of Prometheus' API: a scalar without a number",
        ),
        (
            200,
            of_type("matrix", r#"[{"metric":{},"values":[[1,"1"]]}]"#),
            "the query gives a matrix, not one value for each series; use rate() or another function over the range",
        ),
        (
            200,
            of_type("string", r#"[5,"text"]"#),
            "the query gives a string, not one value for each series",
        ),
        (
            200,
            with(r#""warnings":["slow","old"],"infos":["counter?"]"#),
            "warning: slow warning: old info: counter?",
        ),
        (200, with(r#""isPartial":true,"trace":{"a":[1]}"#), "warning: the answer is partial"),
        (
            200,
            vector(&four),
            "the answer has more than 3 series; let the query or the rule select less",
        ),
        (
            400,
            r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#.into(),
            "Prometheus answered 400 bad_data: parse error",
        ),
        (
            422,
            r#"{"status":"error","errorType":"execution","error":"many-to-many"}"#.into(),
            "Prometheus answered 422 execution: many-to-many",
        ),
        (
            503,
            r#"{"status":"error","errorType":"timeout","error":"query timed out"}"#.into(),
            "Prometheus answered 503 timeout: query timed out",
        ),
        (200, r#"{"status":"error","error":"odd"}"#.into(), "Prometheus answered 200 : odd"),
        (503, "Service Unavailable".into(), "answered 503: Service Unavailable"),
        (502, "<html>\n<h1>Bad Gateway</h1>".into(), "answered 502: <html> <h1>Bad Gateway</h1>"),
        (401, String::new(), "answered 401"),
        (404, r#"{"message":"no"}"#.into(), r#"answered 404: {"message":"no"}"#),
        (
            200,
            "<!DOCTYPE html><title>Grafana</title>".into(),
            "the answer is not one of Prometheus' API: it looks like a web page: <!DOCTYPE html><title>Grafana</title>",
        ),
        (200, "{}".into(), "the answer is not one of Prometheus' API: it has no status"),
        (
            200,
            r#"{"status":"success"}"#.into(),
            "the answer is not one of Prometheus' API: it has no data",
        ),
        (
            200,
            r#"{"status":"success","data":null}"#.into(),
            "the answer is not one of Prometheus' API: it has no data",
        ),
        (
            200,
            r#"{"status":"success","data":{}}"#.into(),
            "the answer is not one of Prometheus' API: it does not say what type the result has",
        ),
    ] {
        assert_eq!(outcome(code, &body), expected, "{body}");
    }
    for body in ["", "nonsense", "[1]", "{\"status\":\"success\",\"data\":[", "\u{0}"] {
        assert!(
            outcome(200, body).starts_with("the answer is not one of Prometheus' API"),
            "{body}"
        );
    }
}

#[test]
fn of_series_the_shapes_are_kept_once() {
    let body = r#"{"status":"success","data":[
        {"__name__":"b","pod":"1","ns":"x"},{"ns":"x","__name__":"b","pod":"2"},{"__name__":"a","job":""},{"job":"z"}]}"#;
    let shapes = read_series(200, body.as_bytes(), 3).expect("series");
    let words: Vec<String> =
        shapes.iter().map(|shape| format!("{}:{}", shape.name, shape.labels.join(","))).collect();
    assert_eq!(words, [":job", "a:job", "b:ns,pod"]);
    assert_eq!(read_series(200, body.as_bytes(), 2), Err(PrometheusError::TooManySeries(2)));
    let refused = br#"{"status":"error","errorType":"bad_data","error":"no match[]"}"#;
    assert_eq!(read_series(400, refused, 9).expect_err("refused").kind(), "refused");
}
