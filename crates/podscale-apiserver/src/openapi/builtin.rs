//! Schemas of the built-in kinds, with their descriptions.

use k8s_openapi::api::{
    apps, authentication, authorization, autoscaling, batch, coordination, core, discovery, events,
    networking, policy, rbac,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration;
use k8s_openapi::schemars::JsonSchema;
use k8s_openapi::schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use super::Resource;
use crate::resource::ResourceInfo;

/// A kind and how its schema is added.
struct BuiltIn {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    define: fn(&mut Schemas) -> String,
}

const fn built_in<T: k8s_openapi::Resource + JsonSchema>() -> BuiltIn {
    BuiltIn { group: T::GROUP, version: T::VERSION, kind: T::KIND, define: Schemas::define::<T> }
}

const BUILT_IN: [BuiltIn; 42] = [
    built_in::<core::v1::Binding>(),
    built_in::<core::v1::ConfigMap>(),
    built_in::<core::v1::Endpoints>(),
    built_in::<core::v1::Event>(),
    built_in::<core::v1::LimitRange>(),
    built_in::<core::v1::Namespace>(),
    built_in::<core::v1::Node>(),
    built_in::<core::v1::PersistentVolumeClaim>(),
    built_in::<core::v1::Pod>(),
    built_in::<core::v1::ReplicationController>(),
    built_in::<core::v1::ResourceQuota>(),
    built_in::<core::v1::Secret>(),
    built_in::<core::v1::ServiceAccount>(),
    built_in::<core::v1::Service>(),
    built_in::<apiregistration::v1::APIService>(),
    built_in::<apiextensions::v1::CustomResourceDefinition>(),
    built_in::<apps::v1::ControllerRevision>(),
    built_in::<apps::v1::DaemonSet>(),
    built_in::<apps::v1::Deployment>(),
    built_in::<apps::v1::ReplicaSet>(),
    built_in::<apps::v1::StatefulSet>(),
    built_in::<events::v1::Event>(),
    built_in::<autoscaling::v1::HorizontalPodAutoscaler>(),
    built_in::<autoscaling::v2::HorizontalPodAutoscaler>(),
    built_in::<batch::v1::CronJob>(),
    built_in::<batch::v1::Job>(),
    built_in::<networking::v1::Ingress>(),
    built_in::<networking::v1::IngressClass>(),
    built_in::<networking::v1::NetworkPolicy>(),
    built_in::<policy::v1::PodDisruptionBudget>(),
    built_in::<coordination::v1::Lease>(),
    built_in::<discovery::v1::EndpointSlice>(),
    built_in::<authentication::v1::SelfSubjectReview>(),
    built_in::<authentication::v1::TokenReview>(),
    built_in::<authorization::v1::LocalSubjectAccessReview>(),
    built_in::<authorization::v1::SelfSubjectAccessReview>(),
    built_in::<authorization::v1::SelfSubjectRulesReview>(),
    built_in::<authorization::v1::SubjectAccessReview>(),
    built_in::<rbac::v1::ClusterRole>(),
    built_in::<rbac::v1::ClusterRoleBinding>(),
    built_in::<rbac::v1::Role>(),
    built_in::<rbac::v1::RoleBinding>(),
];

/// Collects schemas, each with those that it refers to.
pub(super) struct Schemas {
    generator: SchemaGenerator,
}

impl Default for Schemas {
    fn default() -> Self {
        Self { generator: SchemaSettings::openapi3().into_generator() }
    }
}

impl Schemas {
    fn define<T: JsonSchema>(&mut self) -> String {
        self.generator.subschema_for::<T>();
        T::schema_name().into_owned()
    }

    /// Adds the schema of a built-in kind and gives its name; none if the kind is not known.
    pub(super) fn add(&mut self, info: &ResourceInfo) -> Option<String> {
        let known = BUILT_IN.iter().find(|known| {
            known.group == info.group && known.version == info.version && known.kind == info.kind
        })?;
        Some((known.define)(self))
    }

    /// Adds the schema of metadata, which custom objects have too.
    pub(super) fn add_metadata(&mut self) {
        self.define::<meta::v1::ObjectMeta>();
    }

    /// Adds the schema of the scale endpoint.
    pub(super) fn add_scale(&mut self) -> String {
        self.define::<autoscaling::v1::Scale>()
    }

    /// All schemas by name; those of served kinds tell which kind they are.
    pub(super) fn take(mut self, resources: &[Resource<'_>]) -> Map<String, Value> {
        let named: Vec<(String, Value)> = resources
            .iter()
            .filter(|resource| !resource.info.custom)
            .filter_map(|resource| Some((self.add(resource.info)?, resource.gvk())))
            .collect();
        let scale = autoscaling::v1::Scale::schema_name().into_owned();
        let mut schemas = self.generator.take_definitions(true);
        let scale_kind = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        for (name, kind) in named.into_iter().chain([(scale, scale_kind)]) {
            if let Some(Value::Object(schema)) = schemas.get_mut(&name) {
                schema.insert("x-kubernetes-group-version-kind".to_owned(), json!([kind]));
            }
        }
        schemas
    }
}
