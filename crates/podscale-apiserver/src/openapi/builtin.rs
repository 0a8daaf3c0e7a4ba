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
        let kind = (info.group.as_str(), info.version.as_str(), info.kind.as_str());
        Some(match kind {
            ("", "v1", "Binding") => self.define::<core::v1::Binding>(),
            ("", "v1", "ConfigMap") => self.define::<core::v1::ConfigMap>(),
            ("", "v1", "Endpoints") => self.define::<core::v1::Endpoints>(),
            ("", "v1", "Event") => self.define::<core::v1::Event>(),
            ("", "v1", "LimitRange") => self.define::<core::v1::LimitRange>(),
            ("", "v1", "Namespace") => self.define::<core::v1::Namespace>(),
            ("", "v1", "Node") => self.define::<core::v1::Node>(),
            ("", "v1", "PersistentVolumeClaim") => self.define::<core::v1::PersistentVolumeClaim>(),
            ("", "v1", "Pod") => self.define::<core::v1::Pod>(),
            ("", "v1", "ReplicationController") => self.define::<core::v1::ReplicationController>(),
            ("", "v1", "ResourceQuota") => self.define::<core::v1::ResourceQuota>(),
            ("", "v1", "Secret") => self.define::<core::v1::Secret>(),
            ("", "v1", "ServiceAccount") => self.define::<core::v1::ServiceAccount>(),
            ("", "v1", "Service") => self.define::<core::v1::Service>(),
            ("apiregistration.k8s.io", "v1", "APIService") => {
                self.define::<apiregistration::v1::APIService>()
            }
            ("apiextensions.k8s.io", "v1", "CustomResourceDefinition") => {
                self.define::<apiextensions::v1::CustomResourceDefinition>()
            }
            ("apps", "v1", "ControllerRevision") => self.define::<apps::v1::ControllerRevision>(),
            ("apps", "v1", "DaemonSet") => self.define::<apps::v1::DaemonSet>(),
            ("apps", "v1", "Deployment") => self.define::<apps::v1::Deployment>(),
            ("apps", "v1", "ReplicaSet") => self.define::<apps::v1::ReplicaSet>(),
            ("apps", "v1", "StatefulSet") => self.define::<apps::v1::StatefulSet>(),
            ("events.k8s.io", "v1", "Event") => self.define::<events::v1::Event>(),
            ("autoscaling", "v1", "HorizontalPodAutoscaler") => {
                self.define::<autoscaling::v1::HorizontalPodAutoscaler>()
            }
            ("autoscaling", "v2", "HorizontalPodAutoscaler") => {
                self.define::<autoscaling::v2::HorizontalPodAutoscaler>()
            }
            ("batch", "v1", "CronJob") => self.define::<batch::v1::CronJob>(),
            ("batch", "v1", "Job") => self.define::<batch::v1::Job>(),
            ("networking.k8s.io", "v1", "Ingress") => self.define::<networking::v1::Ingress>(),
            ("networking.k8s.io", "v1", "IngressClass") => {
                self.define::<networking::v1::IngressClass>()
            }
            ("networking.k8s.io", "v1", "NetworkPolicy") => {
                self.define::<networking::v1::NetworkPolicy>()
            }
            ("policy", "v1", "PodDisruptionBudget") => {
                self.define::<policy::v1::PodDisruptionBudget>()
            }
            ("coordination.k8s.io", "v1", "Lease") => self.define::<coordination::v1::Lease>(),
            ("discovery.k8s.io", "v1", "EndpointSlice") => {
                self.define::<discovery::v1::EndpointSlice>()
            }
            ("authentication.k8s.io", "v1", "SelfSubjectReview") => {
                self.define::<authentication::v1::SelfSubjectReview>()
            }
            ("authentication.k8s.io", "v1", "TokenReview") => {
                self.define::<authentication::v1::TokenReview>()
            }
            ("authorization.k8s.io", "v1", "LocalSubjectAccessReview") => {
                self.define::<authorization::v1::LocalSubjectAccessReview>()
            }
            ("authorization.k8s.io", "v1", "SelfSubjectAccessReview") => {
                self.define::<authorization::v1::SelfSubjectAccessReview>()
            }
            ("authorization.k8s.io", "v1", "SelfSubjectRulesReview") => {
                self.define::<authorization::v1::SelfSubjectRulesReview>()
            }
            ("authorization.k8s.io", "v1", "SubjectAccessReview") => {
                self.define::<authorization::v1::SubjectAccessReview>()
            }
            ("rbac.authorization.k8s.io", "v1", "ClusterRole") => {
                self.define::<rbac::v1::ClusterRole>()
            }
            ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding") => {
                self.define::<rbac::v1::ClusterRoleBinding>()
            }
            ("rbac.authorization.k8s.io", "v1", "Role") => self.define::<rbac::v1::Role>(),
            ("rbac.authorization.k8s.io", "v1", "RoleBinding") => {
                self.define::<rbac::v1::RoleBinding>()
            }
            _ => return None,
        })
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
