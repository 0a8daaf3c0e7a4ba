//! How much of a resource a pod requests, as utilization is measured against it.

use podscale_core::snapshot::MissingRequest;

use super::{Container, Pod};
use crate::quantity::Quantity;

impl Pod {
    /// What the pod, or one container of it, requests of a resource, in thousandths.
    ///
    /// Requests of the pod as a whole win unless a container is named; otherwise every container
    /// that runs must request the resource.
    pub fn requested_milli(
        &self,
        resource: &str,
        container: Option<&str>,
    ) -> Result<i64, MissingRequest> {
        if container.is_none() && self.has_pod_level_requests() {
            return self.pod_level_request(resource).map_or_else(
                || {
                    Err(MissingRequest::PodLevel {
                        resource: resource.into(),
                        pod: (*self.metadata.name).into(),
                    })
                },
                |request| Ok(request.milli_value()),
            );
        }
        let sidecars = self.spec.init_containers.iter().filter(|container| container.is_sidecar());
        let running = self.spec.containers.iter().chain(sidecars);
        match container {
            None => running
                .map(|container| self.container_request(container, resource))
                .try_fold(0_i64, |sum, request| Ok(sum.wrapping_add(request?))),
            Some(name) => running
                .filter(|container| *container.name == *name)
                .map(|container| self.container_request(container, resource))
                .next()
                .unwrap_or_else(|| {
                    Err(MissingRequest::NoContainer {
                        container: name.into(),
                        pod: (*self.metadata.name).into(),
                    })
                }),
        }
    }

    /// What the pod, or one container of it, is limited to of a resource, in thousandths.
    ///
    /// A limit of the pod as a whole wins unless a container is named; otherwise every container that
    /// runs must have a limit.
    pub fn limit_milli(
        &self,
        resource: &str,
        container: Option<&str>,
    ) -> Result<i64, MissingRequest> {
        let own = self.spec.resources.limits.get(resource).filter(|_| container.is_none());
        if let Some(own) = own.filter(|_| is_pod_level_resource(resource)) {
            return Ok(own.milli_value());
        }
        let pod = || (*self.metadata.name).into();
        let limit = |limited: &Container| match limited.resources.limits.get(resource) {
            Some(limit) => Ok(limit.milli_value()),
            None => Err(MissingRequest::Limit {
                resource: resource.into(),
                container: (*limited.name).into(),
                pod: pod(),
            }),
        };
        let sidecars = self.spec.init_containers.iter().filter(|container| container.is_sidecar());
        let mut running = self.spec.containers.iter().chain(sidecars);
        match container {
            None => running.try_fold(0_i64, |sum, c| Ok(sum.wrapping_add(limit(c)?))),
            Some(name) => running.find(|c| *c.name == *name).map_or_else(
                || Err(MissingRequest::NoContainer { container: name.into(), pod: pod() }),
                limit,
            ),
        }
    }

    fn container_request(
        &self,
        container: &Container,
        resource: &str,
    ) -> Result<i64, MissingRequest> {
        match container.resources.requests.get(resource) {
            Some(request) => Ok(request.milli_value()),
            None => Err(MissingRequest::Container {
                resource: resource.into(),
                container: (*container.name).into(),
                pod: (*self.metadata.name).into(),
            }),
        }
    }

    /// Whether the pod as a whole requests a resource that can be requested that way.
    pub fn has_pod_level_requests(&self) -> bool {
        self.spec.resources.requests.iter().any(|(name, _)| is_pod_level_resource(name))
    }

    /// The pod's own request, else what its containers need at most at any time; overhead included.
    fn pod_level_request(&self, resource: &str) -> Option<Quantity> {
        let own = self.spec.resources.requests.get(resource);
        let request = match own.filter(|_| is_pod_level_resource(resource)) {
            Some(own) => Some(own.clone()),
            None => self.container_level_request(resource),
        };
        sum(request, self.spec.overhead.get(resource))
    }

    fn container_level_request(&self, resource: &str) -> Option<Quantity> {
        let mut running = None;
        for container in &self.spec.containers {
            running = sum(running, container.resources.requests.get(resource));
        }
        // While an init container runs, only the sidecars started before it run beside it.
        let (mut sidecars, mut starting) = (None, None);
        for container in &self.spec.init_containers {
            let request = container.resources.requests.get(resource);
            let at_once = if container.is_sidecar() {
                running = sum(running, request);
                sidecars = sum(sidecars, request);
                sidecars.clone()
            } else {
                sum(request.cloned(), sidecars.as_ref())
            };
            starting = larger(starting, at_once);
        }
        larger(running, starting)
    }
}

fn is_pod_level_resource(name: &str) -> bool {
    name == "cpu" || name == "memory" || name.starts_with("hugepages-")
}

fn sum(total: Option<Quantity>, more: Option<&Quantity>) -> Option<Quantity> {
    match (total, more) {
        (Some(mut total), Some(more)) => {
            total.add(more);
            Some(total)
        }
        (total, more) => total.or_else(|| more.cloned()),
    }
}

fn larger(a: Option<Quantity>, b: Option<Quantity>) -> Option<Quantity> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b > a { b } else { a }),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(spec: Value, container: Option<&str>, expected: &str) {
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec}))
            .expect("a pod");
        let found = match pod.requested_milli("cpu", container) {
            Ok(milli) => milli.to_string(),
            Err(missing) => missing.to_string(),
        };
        assert_eq!(found, expected);
    }

    fn container(name: &str, cpu: &str) -> Value {
        json!({"name": name, "resources": {"requests": {"cpu": cpu}}})
    }

    fn sidecar(name: &str, cpu: &str) -> Value {
        let mut container = container(name, cpu);
        container["restartPolicy"] = json!("Always");
        container
    }

    #[test]
    fn containers_and_sidecars_are_added() {
        let spec = json!({
            "containers": [container("a", "100m"), container("b", "1")],
            "initContainers": [container("i", "50"), sidecar("s", "10m")],
            "overhead": {"cpu": "7"},
        });
        check(spec.clone(), None, "1110");
        check(spec.clone(), Some("b"), "1000");
        check(spec.clone(), Some("s"), "10");
        check(spec, Some("i"), "container i not found in Pod p");
    }

    #[test]
    fn every_container_must_request() {
        let spec = json!({"containers": [container("a", "100m"), {"name": "b"}]});
        check(spec.clone(), None, "missing request for cpu in container b of Pod p");
        check(spec.clone(), Some("a"), "100");
        check(spec, Some("b"), "missing request for cpu in container b of Pod p");
        check(json!({"containers": []}), None, "0");
        // Upstream's sums wrap.
        let huge = container("a", "9223372036854775");
        check(json!({"containers": [huge, container("b", "1")]}), None, "-9223372036854775616");
    }

    #[test]
    fn limits_are_those_of_the_pod_or_of_every_container() {
        let limited =
            |name: &str, cpu: &str| json!({"name": name, "resources": {"limits": {"cpu": cpu}}});
        let limit = |spec: Value, container: Option<&str>| {
            let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec}))
                .expect("a pod");
            pod.limit_milli("cpu", container).map_err(|missing| missing.to_string())
        };
        let two = json!({"containers": [limited("a", "1"), limited("b", "500m")]});
        assert_eq!(limit(two.clone(), None), Ok(1500));
        assert_eq!(limit(two.clone(), Some("b")), Ok(500));
        assert_eq!(limit(two, Some("c")), Err("container c not found in Pod p".into()));
        let own = json!({"resources": {"limits": {"cpu": "3"}}, "containers": [limited("a", "1")]});
        assert_eq!(limit(own.clone(), None), Ok(3000));
        assert_eq!(limit(own, Some("a")), Ok(1000));
        let without = json!({"containers": [limited("a", "1"), container("b", "1")]});
        let error = "missing limit for cpu in container b of Pod p";
        assert_eq!(limit(without, None), Err(error.into()));
    }

    #[test]
    fn pod_level_requests_win_with_overhead() {
        let spec = json!({
            "resources": {"requests": {"cpu": "2"}},
            "containers": [container("a", "100m")],
            "overhead": {"cpu": "50m"},
        });
        check(spec.clone(), None, "2050");
        check(spec, Some("a"), "100");
    }

    #[test]
    fn pod_level_requests_fall_back_to_containers() {
        let memory_only = |containers: Value, init: Value| {
            json!({"resources": {"requests": {"memory": "1Gi"}}, "containers": containers,
                "initContainers": init})
        };
        check(
            memory_only(json!([{"name": "a"}]), json!([])),
            None,
            "missing pod-level request for cpu in Pod p",
        );
        check(memory_only(json!([container("a", "1"), {"name": "b"}]), json!([])), None, "1000");
        check(
            memory_only(json!([container("a", "1")]), json!([container("i", "3")])),
            None,
            "3000",
        );
        let init = json!([sidecar("s", "1"), container("i", "3"), sidecar("t", "1")]);
        check(memory_only(json!([container("a", "1")]), init), None, "4000");
        let init = json!([sidecar("s", "1"), sidecar("t", "1")]);
        check(memory_only(json!([container("a", "1")]), init), None, "3000");
    }
}
