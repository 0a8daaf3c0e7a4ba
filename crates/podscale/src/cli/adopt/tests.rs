mod takeover;

use super::*;
use clap::Parser;
use podscale_api::pod_autoscaler::crd;
use podscale_api::singlecloud::TARGET_UID;
use podscale_apiserver::{ApiServer, Config};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

fn arguments(line: &str) -> Result<Arguments, String> {
    let words = ["adopt"].into_iter().chain(line.split_whitespace());
    Line::try_parse_from(words).map(|line| line.arguments).map_err(|error| error.to_string())
}

async fn cluster() -> Client {
    let server = ApiServer::new(Config::default());
    let client = Client::new(server.router(), "default");
    let post = async |path: &str, object: &Value| {
        let about = About { resource: "", name: "" };
        call::send::<Value>(&client, "POST", path, object, about).await.expect("created");
    };
    post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd::definition()).await;
    for (name, team) in [("web", "shop"), ("api", "shop"), ("db", "data")] {
        let hpa = json!({"apiVersion": HPA_VERSION, "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": name, "labels": {"team": team}},
            "spec": {"maxReplicas": 5, "scaleTargetRef":
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}});
        post("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", &hpa).await;
    }
    client
}

/// The names of all HPAs and of all PodAutoscalers.
async fn names(client: &Client) -> String {
    let mut texts = Vec::new();
    for path in ["autoscaling/v2/horizontalpodautoscalers", "podscale.dev/v1alpha1/podautoscalers"]
    {
        let about = About { resource: "", name: "" };
        let list: Value = call::get(client, &format!("/apis/{path}"), about).await.expect("a list");
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let names = items.iter().filter_map(|item| item["metadata"]["name"].as_str());
        texts.push(names.collect::<Vec<_>>().join(","));
    }
    texts.join(" | ")
}

/// Runs the command; what it says, or why it fails.
async fn run(client: &Client, line: &str) -> Result<String, String> {
    let (arguments, mut said) = (arguments(line).expect("flags"), String::new());
    let done = replace_all(client, &arguments, &mut |text: &str| said.push_str(text)).await;
    done.map(|()| said).map_err(|error| error.to_string())
}

async fn change(client: &Client, path: &str, patch: &Value) {
    let about = About { resource: "", name: "" };
    call::send::<Value>(client, "PATCH", path, patch, about).await.expect("changed");
}

#[tokio::test]
async fn edits_are_not_lost_by_accident() {
    let client = cluster().await;
    run(&client, "default/web").await.expect("adopted");
    let dry = run(&client, "default/web --undo --dry-run").await.expect("shown");
    assert!(dry.starts_with("---\n# would be deleted\n"), "{dry}");
    for absent in ["managedFields", "uid", "resourceVersion", "status:"] {
        assert!(!dry.contains(absent), "{absent} in\n{dry}");
    }
    let path = "/apis/podscale.dev/v1alpha1/namespaces/default/podautoscalers/web";
    let schedule = json!({"name": "n", "start": "0 22 * * *", "duration": "8h", "maxReplicas": 2});
    let patch = json!({"spec": {"maxReplicas": 9, "schedules": [schedule]}});
    change(&client, path, &patch).await;
    let both = ["spec.maxReplicas: 5 became 9", "spec.schedules was added"];
    let dry = run(&client, "default/web --undo --dry-run").await.expect("shown");
    let error = run(&client, "default/web --undo").await.expect_err("edited");
    assert!(error.contains("--force"), "{error}");
    assert_eq!(names(&client).await, "api,db | web");
    let done = run(&client, "default/web --undo --force").await.expect("undone");
    for edit in both {
        for text in [&dry, &error, &done] {
            assert!(text.contains(edit), "no {edit} in {text}");
        }
    }
    assert_eq!(names(&client).await, "api,db,web | ");
}

#[tokio::test]
async fn what_others_keep_is_skipped() {
    let client = cluster().await;
    let path = |name: &str| format!("/apis/autoscaling/v2/namespaces/default/{HPAS}/{name}");
    let kept = json!({"metadata": {"annotations": {TARGET_UID: "u"}}});
    change(&client, &path("web"), &kept).await;
    let owner =
        json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "q", "uid": "u"});
    let owned = json!({"metadata": {"ownerReferences": [owner]}});
    change(&client, &path("api"), &owned).await;
    let said = run(&client, "--all").await.expect("the others are adopted");
    let expected = "\
default/api: skipped, it belongs to ScaledObject \"q\", which would make it again
default/db: a PodAutoscaler has taken the place of the HPA
default/web: skipped, it is kept by singlecloud's API, which would not find it any more
";
    assert_eq!(said, expected);
    assert_eq!(names(&client).await, "api,web | db");
    let error = run(&client, "default/web").await.expect_err("refused");
    assert!(error.starts_with("it is kept by singlecloud's API"), "{error}");
}

#[tokio::test]
async fn without_the_definition_the_error_says_how_to_get_it() {
    let client = Client::new(ApiServer::new(Config::default()).router(), "default");
    for line in ["default/web", "default/web --undo", "--all --undo", "--all"] {
        let error = run(&client, line).await.expect_err("not defined");
        assert!(error.contains("podscale install --crds"), "{line}: {error}");
    }
}

#[tokio::test]
async fn objects_change_places_and_back() {
    let client = cluster().await;
    let run = async |line: &str| run(&client, line).await;
    assert_eq!(names(&client).await, "api,db,web | ");
    run("default/web --dry-run").await.expect("shown");
    assert_eq!(names(&client).await, "api,db,web | ", "nothing was changed");
    run("default/web").await.expect("adopted");
    assert_eq!(names(&client).await, "api,db | web");
    assert!(run("default/web").await.is_err(), "there is none any more");
    run("--selector team=shop").await.expect("adopted");
    assert_eq!(names(&client).await, "db | api,web");
    run("--all --undo").await.expect("undone");
    assert_eq!(names(&client).await, "api,db,web | ");
    let said = run("--all --namespace elsewhere").await.expect("nothing to do");
    let expected = "nothing to do: there is no HorizontalPodAutoscaler in namespace elsewhere\n";
    assert_eq!(said, expected);
    let said = run("--selector a=b --undo").await.expect("nothing to do");
    let expected = "nothing to do: there is no PodAutoscaler that has taken the place of an HPA with \
                    labels a=b\n";
    assert_eq!(said, expected);
    run("--all").await.expect("adopted");
    assert_eq!(names(&client).await, " | api,db,web");
    // One that is in the way stops only its own.
    run("default/db --undo").await.expect("undone");
    let pa = Place { client: &client, namespace: "default", name: "api" };
    let mut copy: PodAutoscaler = pa.read(API_VERSION, PLURAL).await.expect("it is there");
    copy.metadata = ObjectMeta { name: "db".into(), ..ObjectMeta::default() };
    let about = About { resource: "", name: "" };
    let path = pa.path(API_VERSION, PLURAL);
    call::send::<Value>(&client, "POST", &path, &copy, about).await.expect("created");
    let error = run("default/db").await.expect_err("in the way");
    assert!(error.contains("already exists"), "{error}");
    assert_eq!(names(&client).await, "db | api,db,web");
}

#[test]
fn wrong_flags_are_refused() {
    for (line, words) in [
        ("", "required"),
        ("web", "not a namespace and a name"),
        ("shop/web --all", "cannot be used with"),
        ("--selector a=b=c", "'--selector"),
        ("shop/web -n shop", "cannot be used with"),
        ("shop/web --force", "--undo"),
    ] {
        let error = arguments(line).expect_err("refused");
        assert!(error.contains(words), "{line}: {error}");
    }
}
