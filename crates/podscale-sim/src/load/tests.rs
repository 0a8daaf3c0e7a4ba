use super::*;
use proptest::prelude::*;

fn load(json: &str) -> Load {
    let shape: Shape = serde_json::from_str(json).unwrap();
    shape.resolve(trace).unwrap()
}

fn trace(name: &str) -> Result<Arc<Trace>, String> {
    match name {
        "small" => Ok(Arc::new(Trace::parse("seconds,value\n0,1\n10,4\n20,2\n").unwrap())),
        "zero" => Ok(Arc::new(Trace::parse("seconds,value\n0,0\n").unwrap())),
        _ => Err("no such file".to_owned()),
    }
}

#[test]
fn shapes_over_time() {
    let cases: &[(&str, &[(f64, f64)])] = &[
        (r#"{"constant":{"rps":7}}"#, &[(0.0, 7.0), (1e9, 7.0)]),
        (
            r#"{"steps":{"steps":[{"atSeconds":0,"rps":5},{"atSeconds":10,"rps":9}]}}"#,
            &[(0.0, 5.0), (9.999, 5.0), (10.0, 9.0), (1000.0, 9.0)],
        ),
        (
            r#"{"steps":{"steps":[{"atSeconds":5,"rps":5}],"repeatSeconds":10}}"#,
            &[(0.0, 0.0), (5.0, 5.0), (10.0, 0.0), (17.0, 5.0)],
        ),
        (
            r#"{"sine":{"meanRps":10,"amplitudeRps":20,"periodSeconds":40}}"#,
            &[(0.0, 10.0), (10.0, 30.0), (30.0, 0.0), (50.0, 30.0)],
        ),
        (
            r#"{"spike":{"baseRps":10,"peakRps":110,"atSeconds":10,"riseSeconds":10,"holdSeconds":5,"fallSeconds":20}}"#,
            &[(0.0, 10.0), (15.0, 60.0), (20.0, 110.0), (24.0, 110.0), (35.0, 60.0), (45.0, 10.0)],
        ),
        (
            r#"{"spike":{"peakRps":8,"holdSeconds":1,"everySeconds":10}}"#,
            &[(0.0, 8.0), (1.0, 0.0), (10.5, 8.0), (19.0, 0.0)],
        ),
        (
            r#"{"trace":{"file":"small","peakRps":40,"compress":2}}"#,
            &[(0.0, 10.0), (5.0, 40.0), (10.0, 20.0), (15.0, 10.0)],
        ),
        (
            r#"{"trace":{"file":"small","repeat":false,"interpolate":true,"skipSeconds":5}}"#,
            &[(0.0, 2.5), (5.0, 4.0), (100.0, 2.0)],
        ),
        (r#"{"trace":{"file":"zero","peakRps":40}}"#, &[(0.0, 0.0)]),
        (r#"{"sum":[{"constant":{"rps":1}},{"sum":[{"constant":{"rps":2}}]}]}"#, &[(0.0, 3.0)]),
        (r#"{"sum":[]}"#, &[(0.0, 0.0)]),
    ];
    for (json, points) in cases {
        let load = load(json);
        for (seconds, expected) in *points {
            let rate = load.rate(Span((seconds * 1e6) as i64));
            assert!((rate - expected).abs() < 1e-6, "{json} at {seconds}: {rate}");
        }
    }
}

#[test]
fn mistakes_are_named() {
    for (json, expected) in [
        (r#"{"constant":{"rps":-1}}"#, "load.rps: -1 is not between 0 and 1000000000000"),
        (r#"{"steps":{"steps":[]}}"#, "load.steps: no steps"),
        (
            r#"{"steps":{"steps":[{"atSeconds":5,"rps":1},{"atSeconds":5,"rps":1}]}}"#,
            "load.steps[1]: 5 is not later than the step before",
        ),
        (
            r#"{"sum":[{"constant":{"rps":1}},{"sine":{"meanRps":1,"amplitudeRps":1,"periodSeconds":0}}]}"#,
            "load.sum[1].periodSeconds: 0 is not between 0.001 and 1000000000",
        ),
        (r#"{"trace":{"file":"nowhere"}}"#, "load: trace \"nowhere\": no such file"),
    ] {
        let shape: Shape = serde_json::from_str(json).unwrap();
        assert_eq!(shape.resolve(trace).unwrap_err().to_string(), expected, "{json}");
    }
    for json in [r#"{"constant":{"rps":1,"rsp":2}}"#, r#"{"constnat":{"rps":1}}"#, r#"{"sine":{}}"#]
    {
        assert!(serde_json::from_str::<Shape>(json).is_err(), "{json}");
    }
    let deep =
        (0..20).fold(Shape::Constant(Constant { rps: 1.0 }), |inner, _| Shape::Sum(vec![inner]));
    assert!(matches!(deep.resolve(trace), Err(LoadError::TooMany { what: "nested sums", .. })));
    let wide = Shape::Sum(vec![Shape::Constant(Constant { rps: 1.0 }); MAX_SHAPES + 1]);
    assert!(matches!(wide.resolve(trace), Err(LoadError::TooMany { what: "shapes", .. })));
}

proptest! {
    #[test]
    fn a_rate_is_finite_and_not_negative(
        at in any::<i64>(), mean in 0.0..1e12, amplitude in 0.0..1e12,
        period in 0.001..1e9, hold in 0.0..1e9f64, compress in 0.001..1e6,
    ) {
        let sum = Shape::Sum(vec![
            Shape::Sine(Sine { mean_rps: mean, amplitude_rps: amplitude, period_seconds: period, phase_seconds: -hold }),
            Shape::Spike(Spike { base_rps: amplitude, peak_rps: mean, at_seconds: hold, rise_seconds: period,
                hold_seconds: hold, fall_seconds: 0.0, every_seconds: Some(period) }),
            Shape::Trace(TraceShape { file: "small".to_owned(), peak_rps: Some(mean), compress,
                skip_seconds: hold, repeat: true, interpolate: true }),
        ]);
        let rate = sum.resolve(trace).unwrap().rate(Span(at));
        prop_assert!((0.0..=MAX_RPS).contains(&rate), "{rate}");
    }
}
