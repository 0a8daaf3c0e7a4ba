//! Lints about what is scaled, and between which bounds.

use super::workload::group;
use super::{Autoscaler, Lint, Manifests, Remark, remark};
use crate::hpa::v2::KIND;

pub(super) const LINTS: &[Lint] = &[
    Lint {
        name: "min-equals-max",
        reason: "An autoscaler whose bounds are equal never changes anything; a fixed size belongs into the workload.",
        check: min_equals_max,
    },
    Lint {
        name: "removed-target-version",
        reason: "The group that scaleTargetRef.apiVersion names no longer has this kind, so the target is not found.",
        check: removed_target_version,
    },
    Lint {
        name: "replicas-in-manifest",
        reason: "Whoever applies the workload's manifest again sets its size back to spec.replicas, against the autoscaler.",
        check: replicas_in_manifest,
    },
    Lint {
        name: "two-autoscalers",
        reason: "Two autoscalers of one target undo each other's decisions; put all metrics into one of them.",
        check: two_autoscalers,
    },
    Lint {
        name: "unknown-target-kind",
        reason: "Only kinds with a scale subresource can be scaled; of Kubernetes' own these are Deployment, StatefulSet, ReplicaSet and ReplicationController.",
        check: unknown_target_kind,
    },
];

/// Groups and kinds of Kubernetes itself that can be scaled.
const SCALABLE: [(&str, &str); 4] = [
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("", "ReplicationController"),
];

fn min_equals_max(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    let spec = &autoscaler.hpa.spec;
    // Schedules have other bounds, and an idle target is below them.
    let moves = ["schedules", "scaleToZero"];
    let moves = moves.iter().any(|name| autoscaler.object["spec"].get(name).is_some());
    if moves || spec.min_replicas.unwrap_or(1) != spec.max_replicas {
        return Vec::new();
    }
    vec![remark(
        "spec.maxReplicas",
        format!(
            "minReplicas and maxReplicas are both {}: nothing can be scaled",
            spec.max_replicas
        ),
    )]
}

fn unknown_target_kind(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    let target = &autoscaler.hpa.spec.scale_target_ref;
    let group = group(&target.api_version);
    // Of groups that are not Kubernetes' own nothing is known here.
    let own = !group.contains('.') || group.ends_with(".k8s.io");
    let scalable = SCALABLE.iter().any(|(_, kind)| kind.eq_ignore_ascii_case(&target.kind));
    if target.kind.is_empty() || !own || scalable {
        return Vec::new();
    }
    vec![remark(
        "spec.scaleTargetRef.kind",
        format!("Kubernetes has no kind {:?} that can be scaled", target.kind),
    )]
}

fn removed_target_version(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    let target = &autoscaler.hpa.spec.scale_target_ref;
    let known = SCALABLE.iter().find(|(_, kind)| kind.eq_ignore_ascii_case(&target.kind));
    let Some((right, kind)) = known else { return Vec::new() };
    let instead = if right.is_empty() { "v1" } else { "apps/v1" };
    let given = target.api_version.as_str();
    let gone = group(given) == "extensions" || (group(given) == *right && given != instead);
    if !gone || given.is_empty() {
        return Vec::new();
    }
    vec![remark(
        "spec.scaleTargetRef.apiVersion",
        format!("{given} has no {kind} any more; say {instead}"),
    )]
}

fn replicas_in_manifest(autoscaler: &Autoscaler<'_>, manifests: &Manifests<'_>) -> Vec<Remark> {
    let hpa = autoscaler.hpa;
    let workload = manifests.workloads.iter().find(|workload| workload.is_target_of(hpa));
    let Some((workload, replicas)) = workload.and_then(|one| Some((one, one.replicas?))) else {
        return Vec::new();
    };
    vec![remark(
        "spec.scaleTargetRef",
        format!(
            "the manifest of {} {} sets spec.replicas to {replicas}; leave it out",
            workload.kind, workload.name
        ),
    )]
}

fn two_autoscalers(autoscaler: &Autoscaler<'_>, manifests: &Manifests<'_>) -> Vec<Remark> {
    let of = |autoscaler: &Autoscaler<'_>| {
        let target = &autoscaler.hpa.spec.scale_target_ref;
        (
            autoscaler.hpa.metadata.namespace.clone(),
            group(&target.api_version).to_owned(),
            target.kind.to_lowercase(),
            target.name.clone(),
        )
    };
    // Singlecloud's has no kind, since it becomes an HPA.
    let kind = |one: &Autoscaler<'_>| one.object["kind"].as_str().unwrap_or(KIND).to_owned();
    // The same object in two files is still one.
    let is_same = |other: &Autoscaler<'_>| {
        kind(other) == kind(autoscaler)
            && other.hpa.metadata.name == autoscaler.hpa.metadata.name
            && other.hpa.metadata.namespace == autoscaler.hpa.metadata.namespace
    };
    let wanted = of(autoscaler);
    let others = manifests.autoscalers.iter();
    let other = others.filter(|other| !is_same(other)).find(|other| of(other) == wanted);
    other
        .map(|other| {
            let problem = format!(
                "{} {} scales {} {} as well",
                kind(other),
                other.hpa.metadata.name,
                autoscaler.hpa.spec.scale_target_ref.kind,
                wanted.3
            );
            remark("spec.scaleTargetRef", problem)
        })
        .into_iter()
        .collect()
}
