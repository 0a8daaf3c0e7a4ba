//! Lints about versions of the API and the annotations that carry what they cannot say.

use super::{Autoscaler, Lint, Manifests, Remark, lint, remark, silenced};
use crate::hpa::convert::{Version, present_annotations};
use crate::hpa::custom_metrics;
use crate::meta::ObjectMeta;
use serde::Deserialize;

pub(super) const LINTS: &[Lint] = &[
    Lint {
        name: "annotation-without-effect",
        reason: "The annotations autoscaling.alpha.kubernetes.io/… say what an older version cannot; a version that can say it itself drops them.",
        check: annotation_without_effect,
    },
    Lint {
        name: "custom-metrics-annotation",
        reason: "The annotations alpha/….custom-metrics.podautoscaler.kubernetes.io have had no effect since Kubernetes 1.6; podscale convert turns them into metrics.",
        check: custom_metrics_annotation,
    },
    Lint {
        name: "malformed-annotation",
        reason: "An API server ignores annotations of autoscaling.alpha.kubernetes.io/… that it cannot read, so what they say is silently not done.",
        check: malformed_annotation,
    },
    Lint {
        name: "removed-version",
        reason: "API servers refuse versions that are gone; podscale convert writes the object in autoscaling/v2.",
        check: removed_version,
    },
    Lint {
        name: "unknown-lint",
        reason: "A name in podscale.dev/ignore-lints that no lint has silences nothing; it may be misspelt.",
        check: unknown_lint,
    },
];

/// The metadata as it is written: that of the converted object has lost these annotations.
fn metadata(autoscaler: &Autoscaler<'_>) -> ObjectMeta {
    autoscaler
        .object
        .get("metadata")
        .and_then(|meta| ObjectMeta::deserialize(meta).ok())
        .unwrap_or_default()
}

fn field(annotation: &str) -> String {
    format!("metadata.annotations[{annotation}]")
}

/// Whether a version reads an annotation.
fn reads(version: Version, annotation: &str) -> bool {
    let name = annotation.rsplit('/').next().unwrap_or_default();
    match version {
        Version::V1 => !name.ends_with("-tolerance"),
        Version::V2alpha1 => matches!(name, "metrics" | "current-metrics" | "behavior"),
        Version::V2beta1 => name == "behavior",
        Version::V2beta2 => name.ends_with("-tolerance"),
        Version::V2 => false,
    }
}

fn annotation_without_effect(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    let Some(version) = Version::of_object(autoscaler.object) else { return Vec::new() };
    let present = present_annotations(&metadata(autoscaler)).into_iter();
    present
        .filter(|(name, _)| !reads(version, name))
        .map(|(name, _)| {
            remark(field(name), format!("{} drops this annotation", version.api_version()))
        })
        .collect()
}

fn malformed_annotation(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    let Some(version) = Version::of_object(autoscaler.object) else { return Vec::new() };
    let present = present_annotations(&metadata(autoscaler)).into_iter();
    present
        .filter(|(name, readable)| !readable && reads(version, name))
        .map(|(name, _)| remark(field(name), "this cannot be read and is ignored"))
        .collect()
}

fn custom_metrics_annotation(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    let metadata = metadata(autoscaler);
    let is_hpa = Version::of_object(autoscaler.object).is_some();
    if !is_hpa || metadata.annotations.get(custom_metrics::TARGET).is_none() {
        return Vec::new();
    }
    let errors = custom_metrics::check(&metadata);
    let problem = match errors.first() {
        None => "no Kubernetes since 1.6 scales by this".to_owned(),
        Some(error) => {
            let detail = &error.detail;
            format!("no Kubernetes since 1.6 scales by this, and none before could: {detail}")
        }
    };
    vec![remark(field(custom_metrics::TARGET), problem)]
}

fn removed_version(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    let version = Version::of_object(autoscaler.object);
    let gone = version.and_then(|version| Some((version, version.retired()?.1)));
    gone.map(|(version, since)| {
        let version = version.api_version();
        remark("apiVersion", format!("{version} is gone since Kubernetes {since}"))
    })
    .into_iter()
    .collect()
}

fn unknown_lint(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    let unknown = silenced(autoscaler.hpa).into_iter().filter(|name| lint(name).is_none());
    unknown
        .map(|name| remark(field(super::IGNORE_ANNOTATION), format!("there is no lint {name:?}")))
        .collect()
}
