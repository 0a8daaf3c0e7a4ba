use super::*;

fn converted(files: &[&str], to: &str) -> Outcome {
    let manifests: Vec<Manifest> = (1..)
        .zip(files)
        .map(|(number, text)| Manifest { name: format!("f{number}"), text: (*text).to_owned() })
        .collect();
    convert_all(&manifests, convert::form(to).expect("a form"))
}

const V1: &str = "\
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata:
  name: web
spec:
  maxReplicas: 5 # many
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  targetCPUUtilizationPercentage: 50
";

const AS_V2: &str = "\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: web
spec:
  maxReplicas: 5
  metrics:
  - resource:
      name: cpu
      target:
        averageUtilization: 50
        type: Utilization
    type: Resource
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: web
";

#[test]
fn only_autoscalers_change() {
    let other = "# a map\napiVersion: v1\nkind:   ConfigMap # kept\ndata: {b: 1,   a: 2}\n";
    let text = format!("# head\n---\n{other}--- # next\n# about it\n{V1}---\n# end\n");
    let outcome = converted(&[&text], "hpa.v2");
    let expected = format!("# head\n---\n{other}--- # next\n# about it\n{AS_V2}---\n# end\n");
    assert_eq!(outcome.text, expected);
    assert_eq!((outcome.lost, outcome.errors), (vec![], vec![]));
    // What has the wanted form already stays as it is, to the byte.
    for unchanged in [text.as_str(), "", "a: 1", "{\"kind\": \"Pod\"}{\"a\": [1,\t2]}  "] {
        let outcome = converted(&[unchanged], "hpa.v1");
        assert_eq!(outcome, Outcome { text: unchanged.to_owned(), ..Outcome::default() });
    }
}

#[test]
fn files_follow_each_other() {
    let outcome = converted(&[V1, "a: 1", "---\nb: 2\n", ""], "hpa.v2");
    assert_eq!(outcome.text, format!("{AS_V2}---\na: 1\n---\nb: 2\n"));
}

#[test]
fn json_stays_json() {
    let object = |version: &str, spec: &str| {
        format!(
            r#"{{"apiVersion":"{version}","kind":"HorizontalPodAutoscaler","metadata":{{"name":"web"}},"spec":{{"maxReplicas":5{spec}}}}}"#
        )
    };
    let v1 = object("autoscaling/v1", r#","targetCPUUtilizationPercentage":50"#);
    let pod = r#"{"kind": "Pod"}"#;
    let outcome = converted(&[&format!("{pod}\n{v1}\n{pod}\n")], "hpa.v2");
    assert_eq!(outcome.errors, [""; 0]);
    let documents = document::split(&outcome.text);
    assert_eq!(documents.len(), 3, "{}", outcome.text);
    assert!(documents.iter().all(|document| document.format == Format::Json));
    let written: Value = serde_json::from_str(documents[1].text).expect("JSON");
    assert_eq!(written["apiVersion"], "autoscaling/v2");
    let list = format!(r#"{{"apiVersion":"v1","kind":"List","items":[{pod},{v1}]}}"#);
    let list: Value = serde_json::from_str(&converted(&[&list], "hpa.v2").text).expect("JSON");
    assert_eq!(list["items"][1]["spec"]["metrics"][0]["type"], "Resource");
    assert_eq!(list["items"][0], serde_json::json!({"kind": "Pod"}));
}

#[test]
fn what_is_lost_or_wrong_is_said() {
    let twice = AS_V2.replace(
        "  scaleTargetRef:",
        "  - type: Resource\n    resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}\n  scaleTargetRef:",
    );
    let outcome = converted(&[&twice], "hpa.v1");
    assert_eq!(
        outcome.lost,
        [
            r#"f1: HorizontalPodAutoscaler web: not carried over to hpa.v1: spec.metrics[1]: {"resource":{"name":"cpu","target":{"averageUtilization":60,"type":"Utilization"}},"type":"Resource"}"#
        ]
    );
    let wrong = V1.replace("maxReplicas: 5", "maxReplicas: many");
    let text = format!("{wrong}---\na: [\n");
    let outcome = converted(&[&text], "hpa.v2");
    assert_eq!(outcome.text, text);
    assert_eq!(outcome.errors.len(), 2, "{:?}", outcome.errors);
    assert!(outcome.errors[0].starts_with(
        "f1: HorizontalPodAutoscaler web: the autoscaler cannot be read or written: invalid type"
    ));
    assert!(outcome.errors[1].starts_with("f1:1"), "{:?}", outcome.errors);
}
