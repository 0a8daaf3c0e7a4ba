//! Reads the size of targets: from the watched workloads where there are any, else through the scale
//! subresource.

use super::targets::Targets;
use kube::Client;
use podscale_api::scale::Scale;
use podscale_client::call::{self, About, Answer, CallError, segment};
use podscale_client::discovery::{Resource, RestMapper};
use podscale_core::model::TargetRef;
use podscale_core::snapshot::ScaleError;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// How up to date a target must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freshness {
    /// As the watch shows it, where it is watched.
    Watched,
    /// As the API server has it now.
    Current,
}

/// The scale of a target, and where it was read.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) scale: Scale,
    pub(super) resource: Arc<Resource>,
    pub(super) path: String,
    pub(super) freshness: Freshness,
}

/// Reads targets.
pub(super) struct TargetReader {
    client: Client,
    mapper: RestMapper,
    targets: Arc<Targets>,
}

impl TargetReader {
    /// Reads through this API server.
    pub(super) fn new(client: Client, mapper: RestMapper, targets: Arc<Targets>) -> TargetReader {
        TargetReader { client, mapper, targets }
    }

    /// The workloads that are watched.
    pub(super) fn watched(&self) -> &Targets {
        &self.targets
    }

    /// The scale of a target.
    ///
    /// # Errors
    /// The target's kind is not known, or its scale could not be read.
    pub(super) async fn read(
        &self,
        namespace: &str,
        target: &TargetRef,
        freshness: Freshness,
    ) -> Result<Target, ScaleError> {
        let version = &target.api_version;
        if version.matches('/').count() > 1 {
            let error = format!("unexpected GroupVersion string: {version}");
            return Err(ScaleError::ApiVersion(error.into()));
        }
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let resource = self.mapper.of_group(group, &target.kind).await;
        let resource =
            resource.map_err(|error| ScaleError::NoResource(error.to_string().into()))?;
        let path = format!("{}/{}/scale", resource.path(namespace), segment(&target.name));
        if freshness == Freshness::Watched
            && let Some(scale) = self.targets.scale(&resource, namespace, &target.name).await
        {
            return Ok(Target { scale, resource, path, freshness });
        }
        // Few targets are read so, and thousands of reconciles may wait: only these take the room that it needs.
        let reading = read_scale(&self.client, &resource, &path, &target.name);
        match Box::pin(reading).await {
            Ok(scale) => Ok(Target { scale, resource, path, freshness: Freshness::Current }),
            Err(error) => {
                if error.is_not_found() {
                    // Perhaps not only the object is gone, but its kind as well.
                    self.mapper.forget(&resource);
                }
                Err(ScaleError::Unreadable(error.to_string().into()))
            }
        }
    }
}

/// Reads a scale subresource.
///
/// # Errors
/// It could not be read, or is no Scale.
pub(super) async fn read_scale(
    client: &Client,
    resource: &Resource,
    path: &str,
    name: &str,
) -> Result<Scale, CallError> {
    // Upstream's scale client names the resource without its group.
    let about = About { resource: &resource.plural, name };
    let answer = call::get_answer(client, path, about, &AtomicUsize::new(0)).await?;
    decode(&answer)
}

/// The Scale in an answer.
///
/// # Errors
/// It is none.
pub(super) fn decode(answer: &Answer) -> Result<Scale, CallError> {
    Scale::decode(&answer.body).map_err(|error| CallError::Unreadable(error.to_string()))
}
