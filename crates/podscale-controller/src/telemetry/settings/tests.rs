use super::*;

fn read(flag: Option<&str>, variables: &[(&str, &str)]) -> Result<Settings, String> {
    let get = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    settings(flag, get).map_err(|error| error.to_string())
}

/// Where the three signals go, in short.
fn places(settings: &Settings) -> String {
    let urls = [
        settings.traces.as_ref().map(|(to, _)| to),
        settings.logs.as_ref().map(|(to, _)| to),
        settings.metrics.as_ref().map(|(to, _)| to),
    ];
    let urls = urls.map(|to| to.map_or("-".to_owned(), |to| to.url.to_string()));
    urls.join(" ")
}

#[test]
fn the_flag_counts_most_and_then_what_is_said_of_one_signal() {
    let (all, own) = (ENDPOINT, "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT");
    let flag = "http://flag:4318/";
    let three = |base: &str| ["traces", "logs", "metrics"].map(|s| format!("{base}/v1/{s}"));
    let from_flag = three("http://flag:4318").join(" ");
    let from_all = three("https://all/x").join(" ");
    let for_others = [
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "often"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
    ];
    let cases: [(Option<&str>, &[(&str, &str)], &str); 10] = [
        (None, &[], "- - -"),
        (None, &for_others, "- - -"),
        (None, &[(all, " ")], "- - -"),
        (Some(flag), &[], &from_flag),
        (Some(flag), &[(all, "http://b:1"), (own, "http://c:1/own")], &from_flag),
        (None, &[(all, "https://all/x")], &from_all),
        (None, &[(own, "http://c:1/own")], "- http://c:1/own -"),
        (None, &[(all, "http://b:1"), ("OTEL_SDK_DISABLED", "true")], "- - -"),
        (
            Some(flag),
            &[("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")],
            "- http://flag:4318/v1/logs -",
        ),
        (
            None,
            &[(all, "http://b:1"), (own, "http://c:1"), ("OTEL_METRICS_EXPORTER", "otlp")],
            "http://b:1/v1/traces http://c:1/ http://b:1/v1/metrics",
        ),
    ];
    for (flag, variables, expected) in cases {
        let settings = read(flag, variables).expect("settings");
        assert_eq!(places(&settings), expected, "{flag:?} {variables:?}");
    }
}

#[test]
fn errors_name_the_flag_or_variable() {
    let flag = Some("http://a:1");
    let cases: [(Option<&str>, &[(&str, &str)], &str); 16] = [
        (Some("localhost:4318"), &[], "--otlp-endpoint: localhost:4318 does not begin with http"),
        (
            Some("ftp://a"),
            &[],
            "--otlp-endpoint: ftp://a does not begin with http:// or https://, such as \
             http://127.0.0.1:4318",
        ),
        (Some("http://"), &[], "--otlp-endpoint: http:// is not the URL of a collector, such as "),
        (Some("http://a b"), &[], "--otlp-endpoint: http://a b is not the URL"),
        (Some("http://a/?x=y"), &[], "--otlp-endpoint: the collector's URL must end with its path"),
        (Some("http://me:secret@a"), &[], "--otlp-endpoint: credentials do not belong"),
        (None, &[(ENDPOINT, "a")], "OTEL_EXPORTER_OTLP_ENDPOINT: a does not"),
        (
            flag,
            &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
            "OTEL_EXPORTER_OTLP_PROTOCOL: \"grpc\" is not supported; only http/protobuf is, which \
             collectors serve on port 4318",
        ),
        (flag, &[("OTEL_EXPORTER_OTLP_TIMEOUT", "10s")], "OTEL_EXPORTER_OTLP_TIMEOUT: \"10s\" is"),
        (
            flag,
            &[("OTEL_BSP_MAX_QUEUE_SIZE", "0")],
            "OTEL_BSP_MAX_QUEUE_SIZE: \"0\" is not a whole",
        ),
        (flag, &[("OTEL_EXPORTER_OTLP_COMPRESSION", "zip")], "OTEL_EXPORTER_OTLP_COMPRESSION: "),
        (
            flag,
            &[("OTEL_TRACES_EXPORTER", "zipkin")],
            "OTEL_TRACES_EXPORTER: \"zipkin\" is neither",
        ),
        (
            flag,
            &[(SAMPLER, "parentbased_sometimes")],
            "OTEL_TRACES_SAMPLER: \"parentbased_sometimes\" is not one of always_on, always_off, \
             traceidratio, parentbased_always_on, parentbased_always_off and \
             parentbased_traceidratio",
        ),
        (
            flag,
            &[(SAMPLER, "traceidratio"), (SAMPLER_ARGUMENT, "1.5")],
            "OTEL_TRACES_SAMPLER_ARG: \"1.5\" is not a number from 0 to 1",
        ),
        (
            flag,
            &[("OTEL_EXPORTER_OTLP_HEADERS", "a=1,secret")],
            "OTEL_EXPORTER_OTLP_HEADERS: header 2 is not name=value",
        ),
        (
            flag,
            &[("OTEL_EXPORTER_OTLP_CLIENT_KEY", "key.pem")],
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: the certificate and its key",
        ),
    ];
    for (flag, variables, expected) in cases {
        let error = read(flag, variables).expect_err("refused");
        assert!(error.starts_with(expected), "{flag:?} {variables:?}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn the_standard_variables_are_read() {
    let variables = [
        (ENDPOINT, "http://a:1"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x, b = 2%"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "only=this"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "2000"),
        ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "300"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "none"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/roots.pem"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "10"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "50"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1500"),
    ];
    let settings = read(None, &variables).expect("settings");
    let (traces, spans) = settings.traces.expect("traces");
    let (logs, lines) = settings.logs.expect("logs");
    let (metrics, interval) = settings.metrics.expect("metrics");
    assert_eq!(traces.headers.len(), 1);
    assert_eq!(traces.headers["only"], "this");
    assert_eq!(logs.headers["authorization"], "Bearer x");
    assert_eq!(logs.headers["b"], "2%");
    assert!(!format!("{logs:?}").contains("Bearer"), "headers are secret");
    assert_eq!((traces.timeout.as_millis(), logs.timeout.as_millis()), (2000, 300));
    assert_eq!((traces.gzip, metrics.gzip), (true, false));
    assert_eq!(traces.roots, Some(PathBuf::from("/roots.pem")));
    let small = BatchSettings { queue_items: 10, batch_items: 10, delay: SPAN_BATCHES.delay };
    assert_eq!(spans, small);
    assert_eq!(lines, BatchSettings { delay: Duration::from_millis(50), ..LOG_BATCHES });
    assert_eq!(interval, Duration::from_millis(1500));
}

#[test]
fn samplers_are_read_by_name() {
    let cases: [(&[(&str, &str)], (bool, f64)); 7] = [
        (&[], (true, 1.0)),
        (&[(SAMPLER, " always_off ")], (false, 0.0)),
        (&[(SAMPLER, "parentbased_always_on")], (true, 1.0)),
        (&[(SAMPLER, "parentbased_always_off")], (true, 0.0)),
        (&[(SAMPLER, "traceidratio")], (false, 1.0)),
        (&[(SAMPLER, "traceidratio"), (SAMPLER_ARGUMENT, "0.25")], (false, 0.25)),
        (&[(SAMPLER, "parentbased_traceidratio"), (SAMPLER_ARGUMENT, "0")], (true, 0.0)),
    ];
    for (variables, (is_parent_based, ratio)) in cases {
        let settings = read(Some("http://a:1"), variables).expect("settings");
        assert_eq!(settings.sampling, Sampling { is_parent_based, ratio }, "{variables:?}");
    }
    let only_logs = [("OTEL_TRACES_EXPORTER", "none"), (SAMPLER, "sometimes")];
    assert!(read(Some("http://a:1"), &only_logs).is_ok(), "no traces are sent");
}
