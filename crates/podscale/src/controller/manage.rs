//! Which autoscalers are looked after.

use crate::watch::Change;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use std::collections::BTreeSet;

/// The annotation or label by which an object says whether it is looked after.
pub const MANAGED: &str = "podscale.dev/managed";

/// Which objects are looked after if they say nothing themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Which {
    /// All HorizontalPodAutoscalers; for clusters where nobody else looks after them.
    #[default]
    Native,
    /// Only those with the annotation or label podscale.dev/managed: "true".
    Annotated,
}

impl Which {
    /// As the flag takes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Which::Native => "native",
            Which::Annotated => "annotated",
        }
    }
}

/// Which autoscalers are looked after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manage {
    /// Those that say nothing themselves.
    pub which: Which,
    /// If there are any, only those in these namespaces.
    pub namespaces: BTreeSet<String>,
    /// None in these namespaces.
    pub excluded: BTreeSet<String>,
}

impl Manage {
    /// Whether this one is.
    #[must_use]
    pub fn manages(&self, hpa: &HorizontalPodAutoscaler) -> bool {
        let metadata = &hpa.metadata;
        let elsewhere =
            !self.namespaces.is_empty() && !self.namespaces.contains(&metadata.namespace);
        if elsewhere || self.excluded.contains(&metadata.namespace) {
            return false;
        }
        let said = [metadata.annotations.get(MANAGED), metadata.labels.get(MANAGED)];
        let says = |word: &str| said.iter().flatten().any(|text| text.eq_ignore_ascii_case(word));
        !says("false") && (self.which == Which::Native || says("true"))
    }

    /// A change as those see it who only know what is looked after.
    #[must_use]
    pub fn filter(
        &self,
        change: Change<HorizontalPodAutoscaler>,
    ) -> Change<HorizontalPodAutoscaler> {
        match change {
            Change::All(mut all) => {
                all.retain(|hpa| self.manages(hpa));
                Change::All(all)
            }
            Change::Applied(hpa) if !self.manages(&hpa) => Change::Deleted(hpa),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hpa(namespace: &str, annotation: &str, label: &str) -> HorizontalPodAutoscaler {
        let marks = |text: &str| match text {
            "" => serde_json::json!({}),
            text => serde_json::json!({ MANAGED: text }),
        };
        let hpa = serde_json::json!({"metadata": {"name": "web", "namespace": namespace,
            "annotations": marks(annotation), "labels": marks(label)}, "spec": {"maxReplicas": 3,
            "scaleTargetRef": {"kind": "Deployment", "name": "web"}}});
        serde_json::from_value(hpa).expect("an autoscaler")
    }

    #[test]
    fn marks_and_namespaces_say_what_is_looked_after() {
        let set = |names: &str| names.split_whitespace().map(str::to_owned).collect();
        let manage = |which, namespaces: &str, excluded: &str| Manage {
            which,
            namespaces: set(namespaces),
            excluded: set(excluded),
        };
        let native = manage(Which::Native, "", "");
        let annotated = manage(Which::Annotated, "", "");
        let some = manage(Which::Native, "a b", "b");
        for (what, manage, namespace, annotation, label, expected) in [
            ("all", &native, "x", "", "", true),
            ("all but one", &native, "x", "false", "", false),
            ("false wins", &native, "x", "true", "false", false),
            ("no mark", &annotated, "x", "", "", false),
            ("an annotation", &annotated, "x", "true", "", true),
            ("a label", &annotated, "x", "", "true", true),
            ("nonsense", &annotated, "x", "yes", "", false),
            ("a namespace", &some, "a", "", "", true),
            ("excluded counts more", &some, "b", "", "", false),
            ("another namespace", &some, "c", "true", "", false),
        ] {
            assert_eq!(manage.manages(&hpa(namespace, annotation, label)), expected, "{what}");
        }
        let (one, other) = (hpa("a", "", ""), hpa("c", "", ""));
        let all = some.filter(Change::All(vec![one.clone(), other.clone()]));
        assert_eq!(all, Change::All(vec![one.clone()]));
        assert_eq!(some.filter(Change::Applied(one.clone())), Change::Applied(one));
        assert_eq!(some.filter(Change::Applied(other.clone())), Change::Deleted(other));
    }
}
