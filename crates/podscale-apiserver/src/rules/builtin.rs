//! The rules of each built-in resource.

use podscale_api::field_error::names;

use super::{
    Generation, PLAIN, Rules, SPEC, STATUS, autoscaling, batch, claims, cluster, config, daemons,
    networking, pod_defaults, pods, policy, quota, services, workloads,
};

static ANY: Rules = PLAIN;

static RBAC: Rules = Rules { name: names::path_segment, create_on_update: true, ..PLAIN };

static LEASES: Rules = Rules {
    create_on_update: true,
    unconditional: false,
    check: cluster::check_lease,
    check_update: cluster::check_lease_update,
    ..PLAIN
};

static CONFIG_MAPS: Rules = Rules {
    check: config::check_config_map,
    check_update: config::check_config_map_update,
    ..PLAIN
};

static SECRETS: Rules = Rules {
    default: config::default_secret,
    check: config::check_secret,
    check_update: config::check_secret_update,
    fields: config::secret_fields,
    selectable: &["type"],
    ..PLAIN
};

static SERVICE_ACCOUNTS: Rules = Rules { returns_deleted: true, ..PLAIN };

static NAMESPACES: Rules = Rules {
    name: names::dns_label,
    default: cluster::default_namespace,
    prepare_create: cluster::prepare_namespace,
    prepare_update: cluster::prepare_namespace_update,
    prepare_status: cluster::prepare_namespace_status,
    fields: cluster::namespace_fields,
    selectable: &["status.phase"],
    returns_deleted: true,
    reset: STATUS,
    reset_status: SPEC,
    ..PLAIN
};

static NODES: Rules = Rules {
    default: cluster::default_node,
    prepare_create: cluster::prepare_node,
    check: cluster::check_node,
    check_update: cluster::check_node_update,
    prepare_update: cluster::prepare_node_update,
    fields: cluster::node_fields,
    selectable: &["spec.unschedulable"],
    reset: STATUS,
    reset_status: SPEC,
    ..PLAIN
};

static EVENTS: Rules = Rules {
    create_on_update: true,
    check: cluster::check_event,
    fields: cluster::event_fields,
    selectable: cluster::EVENT_FIELDS,
    ..PLAIN
};

static PODS: Rules = Rules {
    default: pod_defaults::default_pod,
    prepare_create: pods::prepare_create,
    prepare_update: pods::prepare_update,
    prepare_status: pods::prepare_status,
    check: pods::check,
    check_update: pods::check_update,
    fields: pods::fields,
    selectable: pods::SELECTABLE,
    generation: Generation::Spec,
    graceful: true,
    returns_deleted: true,
    reset: STATUS,
    reset_status: &[
        &["f:spec"],
        &["f:metadata", "f:deletionTimestamp"],
        &["f:metadata", "f:ownerReferences"],
    ],
    ..PLAIN
};

static SERVICES: Rules = Rules {
    name: names::dns_label,
    default: services::default,
    prepare_create: services::prepare_create,
    prepare_update: services::prepare_update,
    check: services::check,
    check_update: services::check_update,
    fields: services::fields,
    selectable: &["spec.clusterIP", "spec.type"],
    returns_deleted: true,
    reset: STATUS,
    reset_status: SPEC,
    ..PLAIN
};

static ENDPOINTS: Rules =
    Rules { default: services::default_endpoints, create_on_update: true, ..PLAIN };

static ENDPOINT_SLICES: Rules = Rules {
    default: services::default_endpoint_slice,
    check: services::check_endpoint_slice,
    check_update: services::check_endpoint_slice_update,
    generation: Generation::Custom,
    ..PLAIN
};

static DEPLOYMENTS: Rules = Rules {
    default: workloads::default_deployment,
    check: workloads::check_deployment,
    check_update: workloads::check_deployment_update,
    check_status: workloads::check_deployment_status,
    prepare_status: workloads::keep_labels,
    generation: Generation::SpecOrAnnotations,
    reset: STATUS,
    reset_status: &[&["f:spec"], &["f:metadata", "f:labels"]],
    ..PLAIN
};

static REPLICA_SETS: Rules = Rules {
    default: workloads::default_replica_set,
    check: workloads::check_replica_set,
    check_update: workloads::check_replica_set_update,
    check_status: workloads::check_replica_set_status,
    fields: workloads::replica_fields,
    selectable: &["status.replicas"],
    generation: Generation::Spec,
    reset: STATUS,
    reset_status: SPEC,
    ..PLAIN
};

static REPLICATION_CONTROLLERS: Rules = Rules {
    default: workloads::default_replication_controller,
    check: workloads::check_replication_controller,
    check_update: workloads::check_replication_controller_update,
    check_status: workloads::check_replica_set_status,
    fields: workloads::replica_fields,
    selectable: &["status.replicas"],
    generation: Generation::Spec,
    reset: STATUS,
    reset_status: SPEC,
    ..PLAIN
};

static STATEFUL_SETS: Rules = Rules {
    name: names::dns_label,
    default: workloads::default_stateful_set,
    check: workloads::check_stateful_set,
    check_update: workloads::check_stateful_set_update,
    generation: Generation::Spec,
    reset: STATUS,
    reset_status: SPEC,
    ..PLAIN
};

static DAEMON_SETS: Rules = Rules {
    default: daemons::default_daemon_set,
    prepare_create: daemons::prepare_create,
    prepare_update: daemons::prepare_update,
    check: daemons::check_daemon_set,
    check_update: daemons::check_daemon_set_update,
    check_status: daemons::check_daemon_set_status,
    generation: Generation::Spec,
    reset: STATUS,
    reset_status: SPEC,
    ..PLAIN
};

static JOBS: Rules = Rules {
    default: batch::default_job,
    prepare_create: batch::prepare_job,
    finish_unlabelled: batch::label_like_template,
    prepare_update: batch::prepare_job_update,
    prepare_status: batch::prepare_job_status,
    check: batch::job::check_job,
    check_update: batch::check_job_update,
    check_status: batch::job_status::check_job_status,
    warnings: batch::job::job_warnings,
    fields: batch::job_fields,
    selectable: &["status.successful"],
    generation: Generation::Spec,
    orphans_dependents: true,
    reset: STATUS,
    reset_status: SPEC,
    ..PLAIN
};

static CRON_JOBS: Rules = Rules {
    default: batch::default_cron_job,
    prepare_create: batch::prepare_cron_job,
    prepare_update: batch::prepare_cron_job_update,
    check: batch::cron_job::check_cron_job,
    check_update: batch::cron_job::check_cron_job_update,
    warnings: batch::cron_job::cron_job_warnings,
    generation: Generation::Spec,
    reset: STATUS,
    reset_status: SPEC,
    ..PLAIN
};

static DISRUPTION_BUDGETS: Rules = Rules {
    name: names::path_segment,
    check: policy::check,
    check_update: policy::check_update,
    check_status: policy::check_status,
    generation: Generation::Spec,
    unconditional: false,
    reset: STATUS,
    reset_status: SPEC,
    ..PLAIN
};

static QUOTAS: Rules = Rules {
    check: quota::check_quota,
    check_update: quota::check_quota_update,
    check_status: quota::check_quota_status,
    warnings: quota::quota_warnings,
    returns_deleted: true,
    reset: STATUS,
    reset_status: SPEC,
    ..PLAIN
};

static LIMIT_RANGES: Rules = Rules {
    default: quota::limit_range::default_limit_range,
    check: quota::limit_range::check_limit_range,
    check_update: quota::limit_range::check_limit_range_update,
    create_on_update: true,
    ..PLAIN
};

static CLAIMS: Rules = Rules {
    default: claims::default_claim,
    prepare_create: claims::prepare_claim,
    prepare_update: claims::prepare_claim_update,
    check: claims::check_claim,
    check_update: claims::check_claim_update,
    check_status: claims::check_claim_status,
    warnings: claims::claim_warnings,
    returns_deleted: true,
    reset: STATUS,
    reset_status: SPEC,
    ..PLAIN
};

static NETWORK_POLICIES: Rules = Rules {
    default: networking::default_policy,
    check: networking::check_policy,
    check_update: networking::check_policy_update,
    warnings: networking::policy_warnings,
    generation: Generation::Spec,
    ..PLAIN
};

static INGRESSES: Rules = Rules {
    check: networking::ingress::check_ingress,
    check_update: networking::ingress::check_ingress_update,
    check_status: networking::ingress::check_ingress_status,
    warnings: networking::ingress::ingress_warnings,
    generation: Generation::Spec,
    reset: STATUS,
    reset_status: SPEC,
    ..PLAIN
};

static INGRESS_CLASSES: Rules = Rules {
    default: networking::ingress::default_class,
    check: networking::ingress::check_class,
    check_update: networking::ingress::check_class_update,
    generation: Generation::Spec,
    ..PLAIN
};

static AUTOSCALERS: Rules = Rules {
    default: autoscaling::default,
    check: autoscaling::check,
    check_update: autoscaling::check_update,
    check_status: autoscaling::check_status,
    generation: Generation::Spec,
    reset: STATUS,
    reset_status: SPEC,
    ..PLAIN
};

static DEFINITIONS: Rules = Rules {
    default: cluster::default_definition,
    prepare_create: cluster::prepare_definition,
    check: cluster::check_definition,
    check_update: cluster::check_definition_update,
    generation: Generation::Spec,
    reset: STATUS,
    reset_status: &[&["f:spec"], &["f:metadata"]],
    ..PLAIN
};

static API_SERVICES: Rules = Rules {
    default: cluster::default_api_service,
    check: cluster::check_api_service,
    reset: STATUS,
    reset_status: SPEC,
    unconditional: false,
    ..PLAIN
};

/// The rules of a built-in resource.
pub(crate) fn of(group: &str, plural: &str) -> &'static Rules {
    match (group, plural) {
        ("", "pods") => &PODS,
        ("", "services") => &SERVICES,
        ("", "endpoints") => &ENDPOINTS,
        ("", "namespaces") => &NAMESPACES,
        ("", "nodes") => &NODES,
        ("", "configmaps") => &CONFIG_MAPS,
        ("", "secrets") => &SECRETS,
        ("", "serviceaccounts") => &SERVICE_ACCOUNTS,
        ("" | "events.k8s.io", "events") => &EVENTS,
        ("", "replicationcontrollers") => &REPLICATION_CONTROLLERS,
        ("apps", "daemonsets") => &DAEMON_SETS,
        ("apps", "deployments") => &DEPLOYMENTS,
        ("apps", "replicasets") => &REPLICA_SETS,
        ("apps", "statefulsets") => &STATEFUL_SETS,
        ("autoscaling", "horizontalpodautoscalers") => &AUTOSCALERS,
        ("", "limitranges") => &LIMIT_RANGES,
        ("", "persistentvolumeclaims") => &CLAIMS,
        ("", "resourcequotas") => &QUOTAS,
        ("batch", "cronjobs") => &CRON_JOBS,
        ("batch", "jobs") => &JOBS,
        ("networking.k8s.io", "ingressclasses") => &INGRESS_CLASSES,
        ("networking.k8s.io", "ingresses") => &INGRESSES,
        ("networking.k8s.io", "networkpolicies") => &NETWORK_POLICIES,
        ("policy", "poddisruptionbudgets") => &DISRUPTION_BUDGETS,
        ("coordination.k8s.io", "leases") => &LEASES,
        ("discovery.k8s.io", "endpointslices") => &ENDPOINT_SLICES,
        ("apiextensions.k8s.io", "customresourcedefinitions") => &DEFINITIONS,
        ("apiregistration.k8s.io", "apiservices") => &API_SERVICES,
        ("rbac.authorization.k8s.io", _) => &RBAC,
        _ => &ANY,
    }
}
