//! Endpoints as data.

use super::*;
use serde_json::json;

fn service(ports: serde_json::Value) -> Service {
    serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "a", "uid": "s"},
        "spec": {"selector": {"app": "web"}, "ports": ports}}))
    .unwrap()
}

fn pod(number: usize, traits: &str) -> Arc<Pod> {
    let name = format!("p{number:04}");
    let mut json = json!({"metadata": {"name": name, "uid": name},
        "spec": {"containers": [{"name": "c", "ports": [{"name": "http", "containerPort": 8080}]}]},
        "status": {"podIP": format!("10.0.{}.{}", number / 250, number % 250), "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}]}});
    for word in traits.split(' ') {
        match word {
            "unready" => json["status"]["conditions"] = json!([]),
            "ends" => json["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
            "failed" => json["status"]["phase"] = json!("Failed"),
            "noip" => json["status"]["podIP"] = json!(null),
            "other" => json["spec"]["containers"][0]["ports"][0]["containerPort"] = json!(9090),
            _ => {}
        }
    }
    Arc::new(serde_json::from_value(json).unwrap())
}

fn text_of(endpoints: &Endpoints) -> Vec<String> {
    let ips = |list: &Option<Vec<EndpointAddress>>| {
        let ips = list.iter().flatten().map(|address| address.ip.clone());
        ips.collect::<Vec<_>>().join(" ")
    };
    let subsets = endpoints.subsets.iter().flatten();
    subsets
        .map(|subset| {
            let ports = subset.ports.iter().flatten().map(|port| port.port.to_string());
            let ports = ports.collect::<Vec<_>>().join(",");
            format!("{ports}: {} | {}", ips(&subset.addresses), ips(&subset.not_ready_addresses))
        })
        .collect()
}

#[test]
fn ready_and_unready_addresses_by_port() {
    let pods = [
        pod(1, ""),
        pod(2, "unready"),
        pod(3, "ends"),
        pod(4, "failed"),
        pod(5, "noip"),
        pod(6, "other"),
    ];
    let numbered = service(json!([{"port": 80, "targetPort": 8000}]));
    assert_eq!(text_of(&endpoints(&numbered, &pods)), ["8000: 10.0.0.1 10.0.0.6 | 10.0.0.2"]);
    let named = service(json!([{"port": 80, "targetPort": "http"}]));
    assert_eq!(
        text_of(&endpoints(&named, &pods)),
        ["8080: 10.0.0.1 | 10.0.0.2", "9090: 10.0.0.6 | "]
    );
    let same = service(json!([{"port": 80}]));
    assert_eq!(text_of(&endpoints(&same, &pods[..1])), ["80: 10.0.0.1 | "]);
    let mut all = service(json!([{"port": 80}]));
    all.spec.as_mut().unwrap().publish_not_ready_addresses = Some(true);
    assert_eq!(text_of(&endpoints(&all, &pods[..3])), ["80: 10.0.0.1 10.0.0.2 10.0.0.3 | "]);
}

#[test]
fn too_many_addresses_are_cut_off() {
    let pods: Vec<_> = (0..1200).map(|number| pod(number, "")).collect();
    let cut = endpoints(&service(json!([{"port": 80}])), &pods);
    assert_eq!(cut.subsets.unwrap()[0].addresses.as_ref().unwrap().len(), 1000);
    assert_eq!(cut.metadata.annotations.unwrap()[OVER_CAPACITY], "truncated");
}

/// Stores what is written, as the API server would.
fn obey(stored: &mut Vec<Arc<EndpointSlice>>, writes: Vec<Write>) {
    for write in writes {
        match write {
            Write::Create(mut slice) => {
                slice.metadata.name = Some(format!("web-{}", stored.len()));
                stored.push(Arc::new(slice));
            }
            Write::Update(slice) => {
                let name = &slice.metadata.name;
                let known = stored.iter_mut().find(|known| known.metadata.name == *name).unwrap();
                *known = Arc::new(slice);
            }
            Write::Delete(name) => {
                stored.retain(|known| known.metadata.name.as_ref() != Some(&name));
            }
        }
    }
}

#[test]
fn slices_change_as_little_as_possible() {
    let service = service(json!([{"port": 80}]));
    let mut pods: Vec<_> = (0..250).map(|number| pod(number, "")).collect();
    let mut stored = Vec::new();
    obey(&mut stored, slices(&service, &pods, &[]));
    let sizes = |stored: &[Arc<EndpointSlice>]| -> Vec<usize> {
        stored.iter().map(|slice| slice.endpoints.as_ref().map_or(0, Vec::len)).collect()
    };
    assert_eq!(sizes(&stored), [100, 100, 50]);
    assert_eq!(slices(&service, &pods, &stored), []);
    pods[120] = pod(120, "unready");
    let writes = slices(&service, &pods, &stored);
    assert!(matches!(&writes[..], [Write::Update(_)]), "{writes:?}");
    obey(&mut stored, writes);
    pods.remove(0);
    pods.push(pod(900, "ends"));
    let writes = slices(&service, &pods, &stored);
    obey(&mut stored, writes);
    assert_eq!(sizes(&stored), [100, 100, 50]);
    let last = stored[0].endpoints.as_ref().unwrap().last().unwrap();
    let conditions = last.conditions.as_ref().unwrap();
    assert_eq!((conditions.ready, conditions.serving), (Some(false), Some(true)));
    let writes = slices(&service, &pods[..10], &stored);
    obey(&mut stored, writes);
    assert_eq!(sizes(&stored), [10]);
    let writes = slices(&service, &[], &stored);
    obey(&mut stored, writes);
    assert_eq!(stored.len(), 1, "one empty slice stays");
    assert_eq!(slices(&service, &[], &stored), []);
}
