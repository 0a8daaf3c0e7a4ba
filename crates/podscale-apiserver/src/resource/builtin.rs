//! The resources that are always served.

use super::{ALL_VERBS, ResourceInfo, ScalePaths, Subresource};

/// Verbs of resources that only answer a question.
const REVIEW_VERBS: &[&str] = &["create"];

/// `group version plural Kind [singular] flags`, one line each, in discovery's order. Flags: `ns`
/// namespaced, `status`, `scale`, `finalize`, `eviction`, `binding`, `log`, `token`, `all` (the category),
/// `short=a,b`, `review`.
const TABLE: &str = "
- v1 bindings Binding ns review
- v1 configmaps ConfigMap ns short=cm
- v1 endpoints Endpoints ns short=ep
- v1 events Event ns short=ev
- v1 limitranges LimitRange ns short=limits
- v1 namespaces Namespace status finalize short=ns
- v1 nodes Node status short=no
- v1 persistentvolumeclaims PersistentVolumeClaim ns status short=pvc
- v1 pods Pod ns status eviction binding log all short=po
- v1 replicationcontrollers ReplicationController ns status scale all short=rc
- v1 resourcequotas ResourceQuota ns status short=quota
- v1 secrets Secret ns
- v1 serviceaccounts ServiceAccount ns token short=sa
- v1 services Service ns status all short=svc
apiregistration.k8s.io v1 apiservices APIService status category=api-extensions
apps v1 controllerrevisions ControllerRevision ns
apps v1 daemonsets DaemonSet ns status all short=ds
apps v1 deployments Deployment ns status scale all short=deploy
apps v1 replicasets ReplicaSet ns status scale all short=rs
apps v1 statefulsets StatefulSet ns status scale all short=sts
events.k8s.io v1 events Event ns short=ev
authentication.k8s.io v1 selfsubjectreviews SelfSubjectReview review
authentication.k8s.io v1 tokenreviews TokenReview review
authorization.k8s.io v1 localsubjectaccessreviews LocalSubjectAccessReview ns review
authorization.k8s.io v1 selfsubjectaccessreviews SelfSubjectAccessReview review
authorization.k8s.io v1 selfsubjectrulesreviews SelfSubjectRulesReview review
authorization.k8s.io v1 subjectaccessreviews SubjectAccessReview review
autoscaling v2 horizontalpodautoscalers HorizontalPodAutoscaler ns status all short=hpa
autoscaling v1 horizontalpodautoscalers HorizontalPodAutoscaler ns status all short=hpa
batch v1 cronjobs CronJob ns status all short=cj
batch v1 jobs Job ns status all
networking.k8s.io v1 ingressclasses IngressClass
networking.k8s.io v1 ingresses Ingress ns status short=ing
networking.k8s.io v1 networkpolicies NetworkPolicy ns short=netpol
policy v1 poddisruptionbudgets PodDisruptionBudget ns status short=pdb
rbac.authorization.k8s.io v1 clusterrolebindings ClusterRoleBinding
rbac.authorization.k8s.io v1 clusterroles ClusterRole
rbac.authorization.k8s.io v1 rolebindings RoleBinding ns
rbac.authorization.k8s.io v1 roles Role ns
coordination.k8s.io v1 leases Lease ns
discovery.k8s.io v1 endpointslices EndpointSlice ns
apiextensions.k8s.io v1 customresourcedefinitions CustomResourceDefinition status category=api-extensions short=crd,crds
";

/// The resources that are always served, in discovery's order.
pub fn builtin() -> Vec<ResourceInfo> {
    TABLE.lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<ResourceInfo> {
    let mut words = line.split_whitespace();
    let group = words.next()?;
    let version = words.next()?;
    let plural = words.next()?;
    let kind = words.next()?;
    let mut info = ResourceInfo {
        group: if group == "-" { String::new() } else { group.to_owned() },
        version: version.to_owned(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: false,
        verbs: ALL_VERBS,
        subresources: Vec::new(),
        custom: false,
    };
    for word in words {
        let (word, value) = word.split_once('=').unwrap_or((word, ""));
        match word {
            "ns" => info.namespaced = true,
            "all" => info.categories.push("all".to_owned()),
            "category" => info.categories.push(value.to_owned()),
            "short" => info.short_names = value.split(',').map(str::to_owned).collect(),
            "review" => info.verbs = REVIEW_VERBS,
            "status" => info.subresources.push(Subresource::Status),
            "finalize" => info.subresources.push(Subresource::Finalize),
            "eviction" => info.subresources.push(Subresource::Eviction),
            "binding" => info.subresources.push(Subresource::Binding),
            "log" => info.subresources.push(Subresource::Log),
            "token" => info.subresources.push(Subresource::Token),
            "scale" => info.subresources.push(Subresource::Scale(ScalePaths {
                spec_replicas: ".spec.replicas".to_owned(),
                status_replicas: ".status.replicas".to_owned(),
                selector: Some(".spec.selector".to_owned()),
            })),
            _ => {}
        }
    }
    Some(info)
}
