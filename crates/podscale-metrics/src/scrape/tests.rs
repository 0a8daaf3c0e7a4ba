use super::*;
use proptest::prelude::*;

fn names(scrape: &Scrape) -> Vec<String> {
    scrape.rows().iter().map(|row| scrape.names(row).join("/")).collect()
}

fn line(family: &str, pod: &str, container: &str, value: &str) -> String {
    format!("{family}{{container=\"{container}\",namespace=\"shop\",pod=\"{pod}\"}} {value} 1000\n")
}

const CPU: &str = "container_cpu_usage_seconds_total";
const MEMORY: &str = "container_memory_working_set_bytes";

#[test]
fn rows_are_in_order_whatever_the_order_of_the_text() {
    let mut text = String::new();
    for (pod, container) in [("b", "x"), ("a", "y"), ("a", "x")] {
        text += &line(CPU, pod, container, "1");
    }
    for (pod, container) in [("a", "x"), ("b", "x"), ("c", "z"), ("a", "y")] {
        text += &line(MEMORY, pod, container, "2");
    }
    let scrape = Scrape::read(&text);
    assert_eq!(names(&scrape), ["shop/a/x", "shop/a/y", "shop/b/x", "shop/c/z"]);
    let amounts: Vec<_> = scrape
        .rows()
        .iter()
        .map(|row| (row.reading.cpu_seconds, row.reading.memory_bytes))
        .collect();
    let both = (Some(1.0), Some(2.0));
    assert_eq!(amounts, [both, both, both, (None, Some(2.0))]);
    assert_eq!(scrape.rows()[0].reading.time_ms, Some(1000));
}

#[test]
fn a_malformed_line_costs_its_own_sample_only() {
    let well = line(CPU, "a", "x", "1") + &line(MEMORY, "a", "x", "2");
    assert_eq!(Scrape::read(&well).malformed(), None);
    let text = format!("{CPU}{{container=\"x\nnode_memory_working_set_bytes many\n{well}");
    let mut scrape = Scrape::read(&text);
    let malformed = scrape.malformed.take().expect("two lines");
    assert_eq!(
        malformed.to_string(),
        "2 malformed lines were skipped, the first is line 1: the labels are broken"
    );
    assert_eq!(scrape, Scrape::read(&well));
}

#[test]
fn it_is_known_whether_a_kubelet_spoke_and_measured() {
    for (text, empty, failed) in [
        ("", true, false),
        ("<html>not a kubelet</html>", true, false),
        ("go_goroutines 7\n", true, false),
        ("scrape_error 0\n", false, false),
        ("resource_scrape_error 1\n", false, true),
        ("scrape_error 1\nnode_cpu_usage_seconds_total 1\n", false, true),
    ] {
        let scrape = Scrape::read(text);
        assert_eq!((scrape.is_empty(), scrape.failed()), (empty, failed), "{text:?}");
    }
}

#[test]
fn names_that_are_none_and_too_many_containers_are_skipped() {
    let long = "p".repeat(254);
    let text = line(CPU, &long, "x", "1") + &line(CPU, "", "x", "1") + &line(CPU, "a", "x", "1");
    assert_eq!(names(&Scrape::read(&text)), ["shop/a/x"]);
    let mut text = String::new();
    for number in 0..MAX_CONTAINERS + 10 {
        text += &line(CPU, &format!("p{number}"), "x", "1");
    }
    assert_eq!(Scrape::read(&text).containers(), MAX_CONTAINERS);
}

#[test]
fn plain_forms_are_read_as_far_as_they_make_sense() {
    let node = br#"{"metadata":{"name":"n"},"timestamp":"1970-01-01T00:01:40Z","window":"5s","resources":{"cpu":1500,"memory":4096}}"#;
    let pods = br#"[
        {"metadata":{"name":"web","namespace":"shop"},"timestamp":"1970-01-01T00:01:40Z","window":"5s",
         "containers":[{"name":"app","resources":{"cpu":250,"memory":1048576}},{"name":"idle"}]},
        {"metadata":{},"timestamp":null,"window":"0s","containers":null},
        {"metadata":{"name":"x","namespace":"shop"},"timestamp":"yesterday","containers":[]},
        {"timestamp":null,"containers":[{"name":"0123","resources":{"cpu":1,"memory":1}}]},
        {"metadata":{"name":"y","namespace":"shop"},"timestamp":null,"window":"0s",
         "containers":[{"name":"app","resources":{"cpu":1,"memory":1}}]},
        null, 7]"#;
    let scrape = Scrape::read_plain(pods, Some(node)).unwrap();
    assert_eq!(names(&scrape), ["shop/web/app", "shop/web/idle", "shop/y/app"]);
    assert_eq!(scrape.node.cpu_seconds, Some(7.5), "5 s at one and a half cores");
    let [app, idle, unmeasured] = [0, 1, 2].map(|place| scrape.rows()[place].reading);
    assert_eq!((app.cpu_seconds, app.memory_bytes), (Some(1.25), Some(1_048_576.0)));
    assert_eq!((app.time_ms, app.window_ms), (Some(100_000), Some(5000)));
    assert_eq!((idle.cpu_seconds, unmeasured.cpu_seconds), (None, None));
    assert_eq!(scrape.malformed().map(|malformed| malformed.lines), Some(3));
    assert!(!Scrape::read_plain(b"[]", None).unwrap().is_empty());
    assert!(!Scrape::read_plain(b"null", Some(b"null")).unwrap().is_empty());
    for broken in ["", "{", "7", "<html>"] {
        assert!(Scrape::read_plain(broken.as_bytes(), None).is_err(), "{broken}");
    }
}

proptest! {
    #[test]
    fn no_text_breaks_it(lines in proptest::collection::vec(
        "(container_cpu_usage_seconds_total|container_memory_working_set_bytes|container_start_time_seconds|x)\
         (\\{(namespace|pod|container|x)=\"[ab\\\\\"]{0,2}\"(,(namespace|pod|container)=\"[ab]{0,2}\"){0,3}\\}?)? ?\
         (NaN|1e999|-1|1|[0-9e]{0,4}) ?-?[0-9]{0,20}", 0..20)) {
        let text = lines.join("\n");
        let scrape = Scrape::read(&text);
        prop_assert!(scrape.containers() <= lines.len());
        prop_assert!(scrape.rows().is_sorted_by(|a, b| scrape.names(a) < scrape.names(b)));
    }

    #[test]
    fn no_bytes_break_the_plain_forms(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Scrape::read_plain(&bytes, Some(&bytes));
        let _ = Scrape::read(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_json_breaks_the_plain_forms(
        name in "\\PC{0,5}", time in "([0-9TZ:-]{0,20}|1970-01-01T00:00:00Z)", window in "-?[0-9a-z.]{0,20}",
        cpu in any::<f64>(), list in any::<bool>(),
    ) {
        let cpu = if cpu.is_finite() { cpu } else { 0.0 };
        let pod = serde_json::json!({
            "metadata": {"name": name, "namespace": "shop"}, "timestamp": time, "window": window,
            "containers": [{"name": "c", "resources": {"cpu": cpu, "memory": cpu}}],
        });
        let text = if list { format!("[{pod},{pod}]") } else { pod.to_string() };
        if let Ok(scrape) = Scrape::read_plain(text.as_bytes(), Some(text.as_bytes())) {
            prop_assert!(scrape.containers() <= 1, "of the same name there is one");
        }
    }
}
