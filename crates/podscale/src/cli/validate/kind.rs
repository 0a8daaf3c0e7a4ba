//! Documents whose kind or group is hardly what was meant: they would be passed over, and the API server has no such
//! thing.

use podscale_api::hpa::v2;
use podscale_api::{chpa, keda, pod_autoscaler as pa};

/// The kinds that are checked, each with its group and the version to write.
const KNOWN: [(&str, &str, &str); 4] = [
    ("autoscaling", v2::API_VERSION, v2::KIND),
    (pa::GROUP, pa::API_VERSION, pa::KIND),
    (chpa::GROUP, chpa::API_VERSION, chpa::KIND),
    (keda::GROUP, keda::API_VERSION, keda::scaled_object::KIND),
];
/// Other kinds of these groups, which may be in files.
const OTHERS: [&str; 5] =
    ["Scale", "Recording", "ScaledJob", "TriggerAuthentication", "ClusterTriggerAuthentication"];
/// A name is near another one with so many letters in another way at most, and a third of them.
const NEAR: usize = 4;

/// What is wrong with a group and kind: the field, and in which way; nothing if they are none of ours.
pub(super) fn misspelt(api_version: &str, kind: &str) -> Option<(&'static str, String)> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let no_matches = format!("no matches for kind \"{kind}\" in version \"{api_version}\"");
    let own = KNOWN.iter().find(|(known, ..)| *known == group);
    let named = KNOWN.iter().find(|(.., known)| *known == kind);
    match (own, named) {
        (Some((.., name)), _) if *name == kind => Some(("apiVersion", no_matches)),
        (Some((_, _, name)), _) if kind.is_empty() => {
            Some(("kind", format!("Required value: {api_version} has the kind {name}")))
        }
        (Some(_), Some((_, version, _))) => {
            Some(("apiVersion", format!("{no_matches}; did you mean {version}?")))
        }
        (Some((.., name)), None) if is_near(kind, name) => {
            Some(("kind", format!("{no_matches}; did you mean {name}?")))
        }
        (Some((.., name)), None) if !OTHERS.contains(&kind) && !kind.ends_with("List") => {
            Some(("kind", format!("{no_matches}; there is {name}")))
        }
        // Nobody else has a kind of this name; of the other names somebody may.
        (None, Some((_, version, name))) if *name == v2::KIND || is_near(api_version, version) => {
            Some(("apiVersion", format!("{no_matches}; did you mean {version}?")))
        }
        _ => None,
    }
}

fn is_near(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    let distance = strsim::damerau_levenshtein(&one, &other);
    distance <= NEAR && distance * 3 <= other.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_nearly_known_are_errors() {
        for (version, kind, expected) in [
            (
                "autoscaling/v2",
                "HorizontalPodAutoscalr",
                Some("kind: did you mean HorizontalPodAutoscaler?"),
            ),
            (
                "autoscaling/v1",
                "horizontalpodautoscaler",
                Some("kind: did you mean HorizontalPodAutoscaler?"),
            ),
            ("podscale.dev/v1alpha1", "PodAutoScaler", Some("kind: did you mean PodAutoscaler?")),
            ("podscale.dev/v1alpha1", "Widget", Some("kind: there is PodAutoscaler")),
            ("autoscalers.postmates.com/v1beta1", "CPHA", Some("kind: did you mean CHPA?")),
            ("keda.sh/v1alpha1", "ScaledObjekt", Some("kind: did you mean ScaledObject?")),
            ("keda.sh/v1alpha1", "ScaledJob", None),
            ("keda.sh/v1alpha1", "TriggerAuthentication", None),
            (
                "autoscaling/v2",
                "PodAutoscaler",
                Some("apiVersion: did you mean podscale.dev/v1alpha1?"),
            ),
            (
                "podscale.de/v1alpha1",
                "PodAutoscaler",
                Some("apiVersion: did you mean podscale.dev/v1alpha1?"),
            ),
            (
                "autoscaling.k8s.io/v1",
                "HorizontalPodAutoscaler",
                Some("apiVersion: did you mean autoscaling/v2?"),
            ),
            ("example.com/v1", "PodAutoscaler", None),
            ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", None),
            ("autoscaling/v1", "Scale", None),
            ("podscale.dev/v1alpha1", "Recording", None),
            ("apps/v1", "Deployment", None),
            ("v1", "Pod", None),
        ] {
            let found = misspelt(version, kind).map(|(field, problem)| {
                format!("{field}: {}", problem.rsplit("; ").next().unwrap_or_default())
            });
            assert_eq!(found.as_deref(), expected, "{version} {kind}");
        }
        let unset = misspelt("podscale.dev/v1alpha1", "").expect("an error");
        assert_eq!(unset.1, "Required value: podscale.dev/v1alpha1 has the kind PodAutoscaler");
        let gone = misspelt("autoscaling/v3", v2::KIND).expect("an error");
        assert_eq!(
            gone.1,
            "no matches for kind \"HorizontalPodAutoscaler\" in version \"autoscaling/v3\""
        );
    }
}
