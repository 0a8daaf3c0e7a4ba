//! Fuzz targets: no bytes from outside may cause a panic, take long or take much memory. As plain tests they
//! run on random input for a second each; docs/development.md says how to run them for longer.

use bolero::check;
use podscale_metrics::exposition::families::families;
use podscale_metrics::prometheus::answer::{read_query, read_series};
use podscale_metrics::rules::template::{Template, Value};
use podscale_metrics::rules::{Catalog, KnownResources, RuleSet};
use podscale_metrics::scrape::Scrape;

/// Changes a few bytes of something real: that gets much further than noise.
fn edited(seed: &[u8], edits: &[(u32, u8)]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for (place, byte) in edits {
        let length = u32::try_from(bytes.len()).expect("short");
        bytes[(place % length) as usize] = *byte;
    }
    bytes
}

#[test]
fn fuzz_prometheus_answers() {
    const SEEDS: [&str; 4] = [
        r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up","pod":"a"},"value":[1700000000.5,"1.5"]},{"metric":{},"value":[1,"NaN"]}]},"warnings":["w"]}"#,
        r#"{"status":"success","data":{"resultType":"scalar","result":[1,"2"]},"infos":["i"]}"#,
        r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#,
        r#"{"status":"success","data":[{"__name__":"up","pod":"a"},{"__name__":"up","pod":"b"}]}"#,
    ];
    check!().with_type::<(u8, u16, Vec<(u32, u8)>)>().for_each(|(seed, code, edits)| {
        let seed = SEEDS[usize::from(*seed) % SEEDS.len()].as_bytes();
        let noise: Vec<u8> = edits.iter().map(|(_, byte)| *byte).collect();
        for bytes in [edited(seed, edits), noise] {
            for code in [200, *code] {
                if let Ok(answer) = read_query(code, &bytes, 1) {
                    assert!(answer.vector.samples.len() <= 1);
                }
                if let Ok(shapes) = read_series(code, &bytes, 1) {
                    assert!(shapes.len() <= 1);
                }
            }
        }
    });
}

#[test]
fn fuzz_families() {
    let seed =
        b"# HELP a what\\n it is\n# TYPE a counter\na{x=\"y\"} 1\n# TYPE h histogram\nh_sum 2 7\n";
    check!().with_type::<Vec<(u32, u8)>>().for_each(|edits| {
        let bytes = edited(seed, edits);
        let text = String::from_utf8_lossy(&bytes);
        for family in families(&text) {
            assert!(!family.name.is_empty() && !family.samples.is_empty(), "{text}");
        }
    });
}

/// What kubelets say, as text and in the plain form.
#[test]
fn fuzz_scrapes() {
    const TEXT: &[u8] = b"# TYPE container_cpu_usage_seconds_total counter\n\
        container_cpu_usage_seconds_total{container=\"c\",namespace=\"n\",pod=\"p\"} 1.5 1700000000000\n\
        container_memory_working_set_bytes{container=\"c\",namespace=\"n\",pod=\"p\"} 2e6 1700000000000\n\
        node_cpu_usage_seconds_total 7 1700000000000\nscrape_error 0\n";
    const PLAIN: &[u8] = br#"[{"metadata":{"name":"p","namespace":"n"},"timestamp":"2026-01-01T00:00:00Z","window":"15s","containers":[{"name":"c","resources":{"cpu":250,"memory":1024}}]}]"#;
    check!().with_type::<Vec<(u32, u8)>>().for_each(|edits| {
        let scrape = Scrape::read(&String::from_utf8_lossy(&edited(TEXT, edits)));
        assert!(scrape.containers() <= 2, "one for each line that names one");
        if let Ok(scrape) = Scrape::read_plain(&edited(PLAIN, edits), None) {
            assert!(scrape.containers() <= 1);
        }
    });
}

#[test]
fn fuzz_templates() {
    const PARTS: [&str; 16] = [
        "<<",
        ">>",
        "<<- ",
        " ->>",
        ".Series",
        ".GroupBySlice",
        "index ",
        "range ",
        "end",
        "if ",
        "else",
        "|",
        "printf \"%s\" ",
        "(",
        ")",
        " $x := ",
    ];
    let data =
        Value::record([("Series", Value::text("s")), ("GroupBySlice", Value::list(["a", "b"]))]);
    check!().with_type::<(Vec<u8>, Vec<u8>)>().for_each(|(parts, noise)| {
        let made: String =
            parts.iter().map(|part| PARTS[usize::from(*part) % PARTS.len()]).collect();
        for text in [made, String::from_utf8_lossy(noise).into_owned()] {
            let Ok(template) = Template::parse(&text) else { continue };
            if let Ok(text) = template.render(&data) {
                assert!(text.len() <= 2 << 20);
            }
        }
    });
}

#[test]
fn fuzz_rules() {
    const SEED: &str = include_str!("../src/rules/tests/table.yaml");
    let seeds: Vec<&str> = SEED.split("\n- what: ").collect();
    check!().with_type::<(u8, Vec<(u32, u8)>)>().for_each(|(seed, edits)| {
        let seed = seeds[usize::from(*seed) % seeds.len()];
        let config = seed.split("config: |\n").nth(1).unwrap_or(seed);
        let config: String = config
            .lines()
            .map_while(|line| line.strip_prefix("    "))
            .flat_map(|line| [line, "\n"])
            .collect();
        if config.is_empty() {
            return;
        }
        let bytes = edited(config.as_bytes(), edits);
        let noise: Vec<u8> = edits.iter().map(|(_, byte)| *byte).collect();
        for bytes in [bytes, noise] {
            match RuleSet::parse(&String::from_utf8_lossy(&bytes)) {
                Ok(rules) => {
                    let known = KnownResources::everyday();
                    assert!(Catalog::new(&rules, &Default::default(), &known).is_empty());
                }
                Err(errors) => assert!(!errors.is_empty() && errors.len() <= 100),
            }
        }
    });
}
