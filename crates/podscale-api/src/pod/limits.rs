//! How much of a resource a pod is limited to, where a utilization is a share of that.

use podscale_core::snapshot::MissingRequest;

use super::{Container, Pod};

impl Pod {
    /// What the pod, or one container of it, is limited to of a resource, in thousandths.
    ///
    /// A limit of the pod as a whole wins unless a container is named; otherwise every container that
    /// runs must have one.
    ///
    /// # Errors
    /// The pod has no such container, or one has no limit.
    pub fn limited_milli(
        &self,
        resource: &str,
        container: Option<&str>,
    ) -> Result<i64, MissingRequest> {
        let whole = self.spec.resources.limits.get(resource);
        if let (None, Some(whole)) = (container, whole) {
            return Ok(whole.milli_value());
        }
        let sidecars = self.spec.init_containers.iter().filter(|container| container.is_sidecar());
        let mut running = self.spec.containers.iter().chain(sidecars);
        match container {
            None => running
                .map(|container| self.container_limit(container, resource))
                .try_fold(0_i64, |sum, limit| Ok(sum.saturating_add(limit?))),
            Some(name) => match running.find(|container| *container.name == *name) {
                Some(container) => self.container_limit(container, resource),
                None => Err(MissingRequest::NoContainer {
                    container: name.into(),
                    pod: (*self.metadata.name).into(),
                }),
            },
        }
    }

    fn container_limit(
        &self,
        container: &Container,
        resource: &str,
    ) -> Result<i64, MissingRequest> {
        match container.resources.limits.get(resource) {
            Some(limit) => Ok(limit.milli_value()),
            None => Err(MissingRequest::Limit {
                resource: resource.into(),
                container: (*container.name).into(),
                pod: (*self.metadata.name).into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(spec: Value, container: Option<&str>, expected: Result<i64, &str>) {
        let pod = json!({"metadata": {"name": "p"}, "spec": spec});
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        let found = pod.limited_milli("cpu", container).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned), "{spec} {container:?}");
    }

    #[test]
    fn limits_of_containers_add_up_and_that_of_the_pod_wins() {
        let limited = |name: &str, cpu: &str| json!({"name": name, "resources": {"limits": {"cpu": cpu}, "requests": {"cpu": "1m"}}});
        let (app, plain) = (limited("app", "500m"), json!({"name": "plain"}));
        let mut sidecar = limited("proxy", "1");
        sidecar["restartPolicy"] = json!("Always");
        let two = json!({"containers": [app, limited("log", "100m")],
            "initContainers": [sidecar, limited("setup", "9")]});
        check(two.clone(), None, Ok(1600));
        check(two.clone(), Some("app"), Ok(500));
        check(two, Some("none"), Err("container none not found in Pod p"));
        let missing = "missing limit for cpu in container plain of Pod p";
        check(json!({"containers": [app, plain]}), None, Err(missing));
        check(json!({"containers": [app, plain]}), Some("plain"), Err(missing));
        let whole = json!({"containers": [app, plain], "resources": {"limits": {"cpu": "3"}}});
        check(whole, None, Ok(3000));
    }
}
