//! Everything that is served right now: built-in resources, custom ones, forwarded groups.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use podscale_api::hpa::convert::Version;

use crate::autoscaling;
use crate::custom::Custom;
use crate::resource::{self, GroupResource, ResourceInfo};
use crate::rules::{self, Rules};
use crate::table::Printer;
use crate::types::{self, Type};

/// A served resource with all that is needed to handle its objects.
#[derive(Debug)]
pub(crate) struct Served {
    pub info: ResourceInfo,
    /// Where its objects are stored; versions of a resource share it.
    pub storage: GroupResource,
    /// How stored objects become objects of this version.
    pub view: View,
    /// The type, where it is built in.
    pub ty: Option<Type>,
    /// The definition, where it is custom.
    pub custom: Option<Custom>,
    pub rules: &'static Rules,
    pub printer: Printer,
}

/// How stored objects relate to objects of a served version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// They are the same.
    Stored,
    /// Only the version's name differs.
    Renamed,
    /// Another version of autoscaling over autoscaling/v2.
    Autoscaling(Version),
    /// events.k8s.io/v1 over core/v1.
    EventsV1,
}

/// A group or version that another server answers for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Forwarded {
    pub group: String,
    pub version: String,
    /// Namespace and name of the service.
    pub service: (String, String),
    pub port: u16,
    pub group_priority: i64,
    pub version_priority: i64,
}

/// Everything that is served at one moment.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    /// In discovery's order.
    resources: Vec<Arc<Served>>,
    by_path: HashMap<(String, String, String), Arc<Served>>,
    forwarded: Vec<Forwarded>,
}

impl Registry {
    /// The built-in resources; `removed_versions` are those of autoscaling that servers of before had.
    pub(crate) fn builtin(removed_versions: bool) -> Self {
        let mut registry = Self::default();
        for info in resource::builtin() {
            let last = (info.group == "autoscaling" && info.version == "v1").then(|| info.clone());
            registry.add(Arc::new(served_builtin(info)));
            let removed = last.filter(|_| removed_versions).into_iter().flat_map(|info| {
                let version = |version: Version| version.api_version().replace("autoscaling/", "");
                let older = autoscaling::REMOVED.into_iter().map(version);
                older.map(move |version| ResourceInfo { version, ..info.clone() })
            });
            for info in removed {
                registry.add(Arc::new(served_builtin(info)));
            }
        }
        registry
    }

    /// The built-in resources with these custom ones and forwarded groups.
    pub(crate) fn with(
        custom: Vec<Custom>,
        forwarded: Vec<Forwarded>,
        removed_versions: bool,
    ) -> Self {
        let mut registry = Self::builtin(removed_versions);
        for custom in custom {
            registry.add(Arc::new(served_custom(custom)));
        }
        registry.forwarded = forwarded;
        registry
    }

    fn add(&mut self, served: Arc<Served>) {
        let info = &served.info;
        let path = (info.group.clone(), info.version.clone(), info.plural.clone());
        self.by_path.insert(path, served.clone());
        self.resources.push(served);
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Served>> {
        self.by_path.get(&(group.to_owned(), version.to_owned(), plural.to_owned())).cloned()
    }

    /// All resources, in discovery's order.
    pub(crate) fn resources(&self) -> &[Arc<Served>] {
        &self.resources
    }

    /// The resources of one version of a group.
    pub(crate) fn of_version(&self, group: &str, version: &str) -> Vec<Arc<Served>> {
        let matches =
            |served: &&Arc<Served>| served.info.group == group && served.info.version == version;
        self.resources.iter().filter(matches).cloned().collect()
    }

    /// Who answers for a version of a group, if not this server.
    pub(crate) fn forwarded(&self, group: &str, version: &str) -> Option<&Forwarded> {
        self.forwarded.iter().find(|one| one.group == group && one.version == version)
    }

    /// The groups besides the core one, each with its versions, the preferred first.
    pub(crate) fn groups(&self) -> Vec<(String, Vec<String>)> {
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        let mut at: BTreeMap<String, usize> = BTreeMap::new();
        let local = self.resources.iter().map(|served| (&served.info.group, &served.info.version));
        let remote = self.forwarded.iter().map(|one| (&one.group, &one.version));
        for (group, version) in local.chain(remote).filter(|(group, _)| !group.is_empty()) {
            let index = *at.entry(group.clone()).or_insert_with(|| {
                groups.push((group.clone(), Vec::new()));
                groups.len() - 1
            });
            if let Some((_, versions)) = groups.get_mut(index)
                && !versions.contains(version)
            {
                versions.push(version.clone());
            }
        }
        groups
    }
}

fn served_builtin(info: ResourceInfo) -> Served {
    let (storage, view) = match (info.group.as_str(), info.version.as_str(), info.plural.as_str()) {
        ("autoscaling", version, "horizontalpodautoscalers") if version != "v2" => {
            let version = Version::of(&info.api_version()).unwrap_or(Version::V1);
            (info.group_resource(), View::Autoscaling(version))
        }
        ("events.k8s.io", _, "events") => {
            (GroupResource { group: "".into(), resource: "events".into() }, View::EventsV1)
        }
        _ => (info.group_resource(), View::Stored),
    };
    let ty = types::kubernetes().find(&types::name_of(&info.group, &info.version, &info.kind));
    Served {
        storage,
        view,
        ty,
        custom: None,
        rules: rules::of(&info.group, &info.plural),
        printer: Printer::built_in(&info.group, &info.plural),
        info,
    }
}

fn served_custom(custom: Custom) -> Served {
    Served {
        storage: custom.info.group_resource(),
        view: View::Renamed,
        ty: None,
        rules: &rules::CUSTOM,
        printer: Printer::custom(custom.columns.clone()),
        info: custom.info.clone(),
        custom: Some(custom),
    }
}

impl Served {
    /// The type or version of the object as sent by clients.
    pub(crate) fn api_version(&self) -> String {
        self.info.api_version()
    }
}
