mod takeover;

use super::*;
use clap::Parser;
use podscale_api::pod_autoscaler::crd;
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

#[tokio::test]
async fn objects_change_places_and_back() {
    let client = cluster().await;
    let run = async |line: &str| {
        let arguments = arguments(line).expect("flags");
        replace_all(&client, &arguments).await.map_err(|error| error.to_string())
    };
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
    run("--all --namespace elsewhere").await.expect("nothing to do");
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
    ] {
        let error = arguments(line).expect_err("refused");
        assert!(error.contains(words), "{line}: {error}");
    }
}
