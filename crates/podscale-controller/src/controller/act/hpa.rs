//! Writes the HPAs that stand beside objects of other kinds.

use super::Actor;
use crate::dialect::Beside;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::translate::scaled_object::own_hpa::HpaSeen;
use podscale_client::call::{self, About, CallError, segment};
use serde_json::{Value, json};

const RESOURCE: &str = "horizontalpodautoscalers.autoscaling";

/// The path of the HPAs of a namespace.
fn folder(namespace: &str) -> String {
    format!("/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers", segment(namespace))
}

impl Actor {
    /// Brings the HPA beside an object into being, or puts it right; what became of it.
    pub(in crate::controller) async fn ensure_hpa(
        &self,
        namespace: &str,
        beside: &Beside,
        wanted: &HorizontalPodAutoscaler,
    ) -> HpaSeen {
        let written = match self.find_hpa(namespace, &wanted.metadata.name).await {
            Ok(Some(found)) => match beside.updated(&found) {
                Ok(None) => return HpaSeen::There(Box::new(found)),
                Ok(Some(new)) => self.put_hpa("PUT", namespace, &new).await,
                Err(problem) => return HpaSeen::Failed(problem),
            },
            Ok(None) => self.put_hpa("POST", namespace, wanted).await,
            Err(error) => Err(error),
        };
        match written {
            Ok(stored) => HpaSeen::There(Box::new(stored)),
            Err(error) => HpaSeen::Failed(error.to_string()),
        }
    }

    /// Deletes an HPA that was made for an object; whether there is none of that name any more.
    ///
    /// # Errors
    /// The API server refused it.
    pub(in crate::controller) async fn remove_hpa(
        &self,
        namespace: &str,
        name: &str,
        beside: &Beside,
    ) -> Result<bool, CallError> {
        let Some(found) = self.find_hpa(namespace, name).await? else { return Ok(true) };
        if !beside.is_made_for_it(&found) {
            return Ok(false);
        }
        let path = format!("{}/{}", folder(namespace), segment(name));
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": {"uid": found.metadata.uid}});
        let about = About { resource: RESOURCE, name };
        match call::send::<Value>(&self.client, "DELETE", &path, &options, about).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn find_hpa(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<HorizontalPodAutoscaler>, CallError> {
        let path = format!("{}/{}", folder(namespace), segment(name));
        match call::get(&self.client, &path, About { resource: RESOURCE, name }).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn put_hpa(
        &self,
        verb: &'static str,
        namespace: &str,
        hpa: &HorizontalPodAutoscaler,
    ) -> Result<HorizontalPodAutoscaler, CallError> {
        let name = &*hpa.metadata.name;
        let path = match verb {
            "POST" => folder(namespace),
            _ => format!("{}/{}", folder(namespace), segment(name)),
        };
        call::send(&self.client, verb, &path, hpa, About { resource: RESOURCE, name }).await
    }
}
