//! Which autoscalers are managed.

use crate::dialect::Managed;
use podscale_api::meta::ObjectMeta;
use podscale_api::pod_autoscaler::API_VERSION as OWN;
use podscale_client::watch::Change;
use std::collections::BTreeSet;

/// The annotation or label by which an object says whether it is managed.
pub const MANAGED: &str = "podscale.dev/managed";

/// Which objects are managed if they say nothing themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Which {
    /// All autoscalers; for clusters where no other controller manages HorizontalPodAutoscalers or CHPAs.
    #[default]
    Native,
    /// HorizontalPodAutoscalers and CHPAs only with the annotation or label podscale.dev/managed: "true"; all objects of
    /// other kinds.
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

/// Which autoscalers are managed. Kinds that no other controller knows are managed unless they say no.
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
    pub fn manages(&self, managed: &Managed) -> bool {
        self.takes(managed.metadata(), managed.key.kind.api_version == OWN)
    }

    /// Whether an object with this metadata is managed, which is of a kind that no other controller knows or not.
    pub(crate) fn takes(&self, metadata: &ObjectMeta, ours: bool) -> bool {
        let elsewhere =
            !self.namespaces.is_empty() && !self.namespaces.contains(&metadata.namespace);
        if elsewhere || self.excluded.contains(&metadata.namespace) {
            return false;
        }
        let said = [metadata.annotations.get(MANAGED), metadata.labels.get(MANAGED)];
        let says = |word: &str| said.iter().flatten().any(|text| text.eq_ignore_ascii_case(word));
        !says("false") && (ours || self.which == Which::Native || says("true"))
    }

    /// A change as those see it who only know what is managed.
    pub(super) fn filter(&self, change: Change<Managed>) -> Change<Managed> {
        match change {
            Change::All(mut all) => {
                all.retain(|managed| self.manages(managed));
                Change::All(all)
            }
            Change::Applied(managed) if !self.manages(&managed) => Change::Deleted(managed),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::pod_autoscaler::POD_AUTOSCALER;

    fn object(namespace: &str, annotation: &str, label: &str) -> Managed {
        let marks = |text: &str| match text {
            "" => serde_json::json!({}),
            text => serde_json::json!({ MANAGED: text }),
        };
        let hpa = serde_json::json!({"metadata": {"name": "web", "namespace": namespace,
            "annotations": marks(annotation), "labels": marks(label)}, "spec": {"maxReplicas": 3,
            "scaleTargetRef": {"kind": "Deployment", "name": "web"}}});
        crate::dialect::hpa::managed(serde_json::from_value(hpa).expect("an autoscaler"))
    }

    #[test]
    fn marks_and_namespaces_say_what_is_managed() {
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
            assert_eq!(manage.manages(&object(namespace, annotation, label)), expected, "{what}");
        }
        let mut ours = object("x", "", "");
        ours.key.kind = &POD_AUTOSCALER;
        assert!(annotated.manages(&ours), "nobody else would");
        let mut not_ours = object("x", "false", "");
        not_ours.key.kind = &POD_AUTOSCALER;
        assert!(!annotated.manages(&not_ours), "it says no");
        let shown = |change| match some.filter(change) {
            Change::All(all) => format!("all {}", all.len()),
            Change::Applied(_) => "applied".to_owned(),
            Change::Deleted(_) => "deleted".to_owned(),
        };
        let (one, other) = (object("a", "", ""), object("c", "", ""));
        assert_eq!(shown(Change::All(vec![one.clone(), other.clone()])), "all 1");
        assert_eq!(shown(Change::Applied(one)), "applied");
        assert_eq!(shown(Change::Applied(other)), "deleted");
    }
}
