//! `podscale convert` and `podscale validate` as a person or a script would use them, and the examples of their
//! pages.

use podscale_api::lint;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn podscale(arguments: &[&str], folder: &Path, input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_podscale"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("KUBECONFIG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), input.as_bytes())
        .expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(path).expect("a page")
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("podscale-manifests-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The blocks of code of a page: their languages and texts.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let parts = page.split("\n```").collect::<Vec<_>>();
    let inside = parts.iter().skip(1).step_by(2);
    inside.filter_map(|block| block.split_once('\n')).collect()
}

/// Runs the examples of a page: a block of YAML or JSON that begins with the name of a file in a comment is
/// that file, and each command of a console block prints what follows it; `echo $?` prints the exit code.
fn run_examples(name: &str) -> usize {
    let folder = Folder::new(name.trim_end_matches(".md"));
    let page = page(name);
    let mut commands = 0;
    for (language, block) in blocks(&page) {
        if language == "yaml" {
            let file = block.lines().next().and_then(|line| line.strip_prefix("# "));
            let file = file.unwrap_or_else(|| panic!("a block without a file in {name}: {block}"));
            folder.write(file, &format!("{block}\n"));
        }
        if language != "console" {
            continue;
        }
        let mut code = 0;
        for example in format!("\n{block}").split("\n$ ").skip(1) {
            let (command, expected) = example.split_once('\n').unwrap_or((example, ""));
            commands += 1;
            if command == "echo $?" {
                assert_eq!(
                    expected.trim(),
                    code.to_string(),
                    "{name}: the code of the command above"
                );
                continue;
            }
            let words: Vec<&str> = command.split(' ').collect();
            assert_eq!(words[0], "podscale", "{name}: {command}");
            let (ended, out, err) = podscale(&words[1..], &folder.0, "");
            code = ended;
            assert_eq!(format!("{out}{err}").trim_end(), expected.trim_end(), "{name}: {command}");
        }
    }
    commands
}

#[test]
fn the_examples_of_the_pages_are_true() {
    let pages = [("convert.md", 3), ("validate.md", 4), ("hpa-versions.md", 2), ("dialects.md", 9)];
    for (name, least) in pages {
        let commands = run_examples(name);
        assert!(commands >= least, "{name} has only {commands} commands");
    }
}

#[test]
fn every_lint_is_on_its_page() {
    let page = page("validate.md");
    let rows: Vec<String> =
        lint::lints().iter().map(|lint| format!("| `{}` | {} |", lint.name, lint.reason)).collect();
    let found: Vec<String> = page
        .lines()
        .skip_while(|line| !line.starts_with("| lint "))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(str::to_owned)
        .collect();
    assert_eq!(found, rows, "the table of docs/validate.md");
}

const HPA: &str = "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  maxReplicas: 5\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n";

#[test]
fn folders_and_standard_input_are_read() {
    let folder = Folder::new("folders");
    folder.write("a/one.yaml", HPA);
    folder.write("a/two.json", "{\"kind\": \"Pod\"}\n");
    folder.write("a/three.txt", "not this");
    folder.write("a/b/four.yml", "kind: Service\n");
    let (code, out, err) = podscale(&["convert", "-f", "a", "--to", "hpa.v2"], &folder.0, "");
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("apiVersion: autoscaling/v2\n"), "{out}");
    assert!(out.ends_with("---\n{\"kind\": \"Pod\"}\n"), "{out}");
    let (_, out, _) = podscale(&["convert", "-R", "-f", "a", "--to", "hpa.v2"], &folder.0, "");
    assert!(out.starts_with("kind: Service\n---\napiVersion: autoscaling/v2\n"), "{out}");
    let (code, out, _) = podscale(&["convert", "-f", "-", "--to", "hpa.v1"], &folder.0, HPA);
    assert_eq!((code, out.as_str()), (0, HPA));
    let (code, out, _) = podscale(&["validate", "-f", "-"], &folder.0, HPA);
    assert_eq!((code, out.as_str()), (0, "1 document, 0 errors, 0 warnings\n"));
}

#[test]
fn exit_codes_are_as_documented() {
    let folder = Folder::new("codes");
    folder.write("good.yaml", HPA);
    folder.write("wrong.yaml", &HPA.replace("maxReplicas: 5", "maxReplicas: -5"));
    folder.write("doubtful.yaml", &HPA.replace("maxReplicas: 5", "maxReplicas: 1"));
    folder.write("odd.yaml", &HPA.replace("maxReplicas: 5", "maxReplicas: many"));
    let cpu = |percent: u8| {
        format!(
            "  - type: Resource\n    resource: {{name: cpu, target: {{type: Utilization, averageUtilization: {percent}}}}}\n"
        )
    };
    let twice = format!("{}  metrics:\n{}{}", HPA.replace("/v1\n", "/v2\n"), cpu(50), cpu(60));
    folder.write("twice.yaml", &twice);
    for (arguments, expected) in [
        ("validate -f good.yaml", 0),
        ("validate -f wrong.yaml", 1),
        ("validate -f doubtful.yaml", 0),
        ("validate -f doubtful.yaml --deny-warnings", 1),
        ("validate -f doubtful.yaml --deny-warnings --ignore min-equals-max", 0),
        ("validate -f doubtful.yaml --ignore nonsense", 2),
        ("validate -f missing.yaml", 2),
        ("validate -f good.yaml --cluster --kubeconfig missing.conf", 2),
        ("convert -f good.yaml --to hpa.v2", 0),
        ("convert -f odd.yaml --to hpa.v2", 1),
        ("convert -f missing.yaml --to hpa.v2", 1),
        ("convert -f twice.yaml --to hpa.v1", 2),
        ("convert -f twice.yaml --to hpa.v1 --lossy", 0),
        ("convert -f good.yaml --to hpa.v3", 2),
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let (code, out, err) = podscale(&words, &folder.0, "");
        assert_eq!(code, expected, "{arguments}\n{out}{err}");
    }
}

const SINGLECLOUD: &str = r#"{"name": "web", "scaleTargetKind": "deployment", "scaleTargetName": "web",
  "minReplicas": 1, "maxReplicas": 5, "customMetrics": [{"metricName": "qps", "averageValue": "10"}]}
"#;

#[test]
fn singleclouds_autoscalers_come_and_go_like_the_others() {
    let folder = Folder::new("singlecloud");
    folder.write("a/one.json", SINGLECLOUD);
    folder.write("a/two.yaml", HPA);
    let to = |form: &'static str, more: &[&'static str]| {
        let mut arguments = vec!["convert", "-f", "a", "--to", form];
        arguments.extend(more);
        podscale(&arguments, &folder.0, "")
    };
    let (code, out, err) = to("hpa.v2", &["--namespace", "shop"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("_shop_web\"") && out.contains("\"namespace\": \"shop\""), "{out}");
    assert!(out.contains("---\napiVersion: autoscaling/v2\n"), "{out}");
    let (code, out, err) = to("singlecloud", &[]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with(SINGLECLOUD), "what has the form stays as it is: {out}");
    assert!(out.ends_with("---\n{\n  \"maxReplicas\": 5,\n  \"minReplicas\": 1,\n  \"name\": \"web\",\n  \"scaleTargetKind\": \"deployment\",\n  \"scaleTargetName\": \"web\"\n}\n"), "{out}");
    // An HPA with the metric under its own name cannot go back.
    let hpa = format!(
        "{}  metrics:\n  - {{type: Pods, pods: {{metric: {{name: qps}}, target: {{type: AverageValue, averageValue: 10}}}}}}\n",
        HPA.replace("/v1\n", "/v2\n")
    );
    let arguments = ["convert", "-f", "-", "--to", "singlecloud"];
    let (code, out, err) = podscale(&arguments, &folder.0, &hpa);
    assert_eq!(code, 2, "{out}{err}");
    assert!(err.starts_with("podscale: -: HorizontalPodAutoscaler web: not carried over to singlecloud: spec.metrics[0]: "), "{err}");
    let (code, ..) = podscale(&[&arguments[..], &["--lossy"]].concat(), &folder.0, &hpa);
    assert_eq!(code, 0);
    let job = SINGLECLOUD.replace("deployment", "job");
    let (code, out, _) = podscale(&["convert", "-f", "-", "--to", "pa"], &folder.0, &job);
    assert_eq!((code, out), (1, job.clone()));
    let (code, out, _) = podscale(&["validate", "-f", "-"], &folder.0, &job);
    let refused =
        "-:1:17: scaleTargetKind: job isn't included in options [deployment statefulset]\n";
    assert_eq!((code, out.starts_with(refused)), (1, true), "{out}");
}
