use super::*;

const WORKLOAD: &str = "
workloads:
- name: web
  model: {rpsPerPod: 50, cpuMsPerRequest: 10}
  load: {constant: {rps: 5}}
";

#[test]
fn built_in_scenarios_make_sense() {
    for (name, _) in BUILT_IN {
        let scenario = Scenario::load(name).expect(name);
        assert_eq!(scenario.name, name);
        assert!(!scenario.description.is_empty(), "{name} says what there is to see");
        assert!(scenario.manifests.iter().any(is_autoscaler), "{name} has an autoscaler");
        let quiet = scenario.clone().without_load();
        assert!(quiet.workloads.iter().all(|w| w.load == Shape::Sum(Vec::new())));
        assert_eq!(quiet.workloads.len(), scenario.workloads.len());
    }
}

#[test]
fn mistakes_are_told_in_one_line_with_their_place() {
    let manifest = "manifests: [{apiVersion: v1, kind: Namespace, metadata: {name: x}}]";
    let cases = [
        (format!("name: a\n{manifest}{WORKLOAD}"), ""),
        ("name: [".to_owned(), "not YAML"),
        (format!("name: a\n{manifest}\nspeeed: 3"), "speeed: unknown field `speeed`"),
        (
            format!("name: a\n{manifest}{}", WORKLOAD.replace("rps:", "rsp:")),
            "workloads[0].load.constant.rsp: unknown field `rsp`",
        ),
        (
            format!("name: a\n{manifest}{}", WORKLOAD.replace("50", "fifty")),
            "workloads[0].model.rpsPerPod: invalid type",
        ),
        (
            format!("name: a\n{manifest}{}", WORKLOAD.replace("50", "-1")),
            "workload default/web: model.rpsPerPod: -1 is not between",
        ),
        (
            format!(
                "name: a\n{manifest}{}",
                WORKLOAD.replace("constant: {rps: 5}", "trace: {file: no.csv}")
            ),
            "trace no.csv: No such file",
        ),
        ("name: a\nmanifests: [{kind: Pod}]".to_owned(), "manifests[0].apiVersion: is missing"),
        ("name: a\nmanifests: []\nspeed: 0".to_owned(), "speed: 0 is not between 0.01 and 1000"),
        ("name: a\nmanifests: []\nnodes: 99999999".to_owned(), "nodes: 99999999 is more than"),
        ("name: a".to_owned(), "missing field `manifests`"),
    ];
    for (text, expected) in cases {
        match Scenario::read("demo.yaml", &text, None) {
            Ok(_) => assert_eq!(expected, "", "{text}"),
            Err(error) => {
                let error = error.to_string();
                assert!(!expected.is_empty() && error.contains(expected), "{text}: {error}");
                assert!(error.starts_with("scenario demo.yaml"), "{error}");
                assert_eq!(error.lines().count(), 1, "{error}");
            }
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_told_with_the_names_that_are() {
    let error = Scenario::load("/nowhere/at-all.yaml").expect_err("no such file").to_string();
    assert!(error.contains("/nowhere/at-all.yaml") && error.contains("tour, queue"), "{error}");
}

/// The recorded traces lie beside the repository; where they do not, only CI insists on them.
#[test]
fn every_recorded_trace_can_be_a_load() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let Ok(files) = std::fs::read_dir(&folder) else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{} is missing", folder.display());
        return;
    };
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    let names: Vec<String> = names.filter(|name| name.contains(".csv")).collect();
    assert!(names.len() >= 14, "{names:?}");
    for name in names {
        let load = format!("trace: {{file: {name}}}");
        let text = WORKLOAD.replace("constant: {rps: 5}", &load);
        let text = format!("name: a\nmanifests: []{text}");
        let scenario = Scenario::read("traces.yaml", &text, Some(&folder)).expect(&name);
        assert!(scenario.traces.contains_key(&name), "{name}");
    }
}
