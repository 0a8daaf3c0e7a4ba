use super::*;

fn converted(files: &[&str], to: &str) -> Outcome {
    let manifests: Vec<Manifest> = (1..)
        .zip(files)
        .map(|(number, text)| Manifest { name: format!("f{number}"), text: (*text).to_owned() })
        .collect();
    let form = convert::form(to).expect("a form");
    convert_all(&manifests, Wanted { form, namespace: "shop" })
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
    // Values of JSON follow each other as they are, but not beside YAML.
    for (files, expected) in [
        (vec!["a: 1\n", "{\"b\": 2}"], "a: 1\n---\n{\"b\": 2}"),
        (vec!["{\"b\": 2} {\"c\": 3}", "a: 1\n"], "{\"b\": 2}\n---\n {\"c\": 3}\n---\na: 1\n"),
        (
            vec!["{\"b\": 2}\n{\"c\": 3}\n", "---\na: 1\n"],
            "{\"b\": 2}\n---\n{\"c\": 3}\n---\na: 1\n",
        ),
        (vec!["{\"b\": 2}{\"c\": 3}", "{\"d\": 4}"], "{\"b\": 2}{\"c\": 3}\n{\"d\": 4}"),
    ] {
        let text = converted(&files, "hpa.v2").text;
        assert_eq!(text, expected);
        let count = document::split(&text).len();
        let given: usize = files.iter().map(|file| document::split(file).len()).sum();
        assert_eq!(count, given, "{text}");
    }
}

#[test]
fn what_would_be_refused_is_an_error() {
    let pa = |spec: &str| {
        format!(
            "apiVersion: podscale.dev/v1alpha1\nkind: PodAutoscaler\nmetadata: {{name: web}}\nspec:\n  \
             scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}\n{spec}"
        )
    };
    let object = "  maxReplicas: 5\n  metrics:\n  - type: Object\n    object: {describedObject: {kind: Namespace}, \
                  metric: {name: rps}, target: {type: Value, value: '5'}}\n";
    let singlecloud = SINGLECLOUD.replace("  \"minReplicas\": 1,\n", "");
    for (text, to, expected) in [
        (
            pa("  maxReplicas: 5000\n"),
            "chpa",
            "PodAutoscaler web: would be refused as chpa: spec.maxReplicas: Invalid value: 5000: spec.maxReplicas in body should be less than or equal to 1000",
        ),
        (
            pa(object),
            "hpa.v2",
            "PodAutoscaler web: would be refused as hpa.v2: spec.metrics[0].object.describedObject.name: Required value",
        ),
        (
            singlecloud,
            "hpa.v1",
            "horizontalpodautoscaler web: minReplicas: must be set, to 1 or more: it would be 0, and none of singlecloud's metrics has a value without pods",
        ),
    ] {
        let outcome = converted(&[&text], to);
        assert_eq!(outcome.errors, [format!("f1: {expected}")]);
        assert_eq!((outcome.text, outcome.lost), (text, vec![]));
    }
    let namespaced = pa(object).replace("{name: web}\nspec", "{name: web, namespace: shop}\nspec");
    assert_eq!(converted(&[&namespaced], "hpa.v2").errors, [""; 0]);
}

#[test]
fn json_stays_json() {
    let object = |version: &str, spec: &str| {
        format!(
            r#"{{"apiVersion":"{version}","kind":"HorizontalPodAutoscaler","metadata":{{"name":"web"}},"spec":{{"maxReplicas":5,"scaleTargetRef":{{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}{spec}}}}}"#
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

const SINGLECLOUD: &str = r#"{
  "customMetrics": [
    {
      "averageValue": "10",
      "metricName": "qps"
    }
  ],
  "links": {
    "collection": "/apis/zcloud.cn/v1/clusters/local/namespaces/shop/horizontalpodautoscalers"
  },
  "maxReplicas": 5,
  "minReplicas": 1,
  "name": "web",
  "scaleTargetKind": "deployment",
  "scaleTargetName": "web"
}
"#;

#[test]
fn singleclouds_form_is_json_wherever_it_comes_from() {
    let hpa = converted(&[SINGLECLOUD], "hpa.v2");
    assert_eq!((&hpa.lost, &hpa.errors), (&vec![], &vec![]));
    let object: Value = serde_json::from_str(&hpa.text).expect("JSON");
    assert_eq!(object["metadata"]["namespace"], "shop");
    assert_eq!(converted(&[&hpa.text], "singlecloud").text, SINGLECLOUD);
    let yaml = format!("# about it\n{}", serde_saphyr::to_string(&object).expect("YAML"));
    assert_eq!(converted(&[&yaml], "singlecloud").text, SINGLECLOUD);
    let two = format!("{yaml}---\n{yaml}");
    let both = converted(&[&two], "singlecloud").text;
    assert_eq!(both, format!("{SINGLECLOUD}---\n{SINGLECLOUD}"));
    let back = converted(&[&both], "hpa.v2");
    assert_eq!(document::split(&back.text).len(), 2, "{}", back.text);
}

#[test]
fn collections_of_singlecloud_become_lists() {
    let collection = format!(
        r#"{{"type": "collection", "resourceType": "horizontalpodautoscaler", "data": [{SINGLECLOUD}]}}"#
    );
    let list: Value = serde_json::from_str(&converted(&[&collection], "pa").text).expect("JSON");
    assert_eq!(
        (&list["kind"], &list["items"][0]["kind"]),
        (&"List".into(), &"PodAutoscaler".into())
    );
    let unchanged = converted(&[&collection], "singlecloud");
    assert_eq!(unchanged.text, collection);
}

#[test]
fn every_form_becomes_every_other() {
    let names: Vec<&str> = FORMS.iter().map(|form| form.name()).collect();
    let all: Vec<String> = names.iter().map(|name| converted(&[AS_V2], name).text).collect();
    for (from, text) in names.iter().zip(&all) {
        for to in &names {
            let outcome = converted(&[text], to);
            assert_eq!(outcome.errors, [""; 0], "{from} to {to}");
            // A CHPA has a pace of its own, which the others cannot say, and not that of an HPA.
            let lost = match (*from, *to) {
                ("chpa", "pa" | "chpa") => 0,
                ("chpa", _) => 4,
                (_, "chpa") => 1,
                _ => 0,
            };
            assert_eq!(outcome.lost.len(), lost, "{from} to {to}: {:?}", outcome.lost);
            let again = converted(&[&outcome.text], "hpa.v2").text;
            let object: Value = document::split(&again)[0].read().expect("a document").value;
            assert_eq!(object["spec"]["maxReplicas"], 5, "{from} to {to}");
            let metrics = &object["spec"]["metrics"];
            assert_eq!(
                metrics[0]["resource"]["target"]["averageUtilization"], 50,
                "{from} to {to}"
            );
        }
    }
    let wrong = SINGLECLOUD.replace("deployment", "job");
    let outcome = converted(&[&wrong], "hpa.v2");
    assert_eq!(outcome.text, wrong);
    assert_eq!(
        outcome.errors,
        [
            "f1: horizontalpodautoscaler web: scaleTargetKind: job isn't included in options [deployment statefulset]"
        ]
    );
}
