//! What an HPA leaves to the PodAutoscaler that takes its place: what it last did, so that rate policies,
//! windows and a size of zero count on.

use super::{API_VERSION, PLURAL, Place};
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::pod_autoscaler::adopt::{ReportedEvent, changes, with_left_behind};
use podscale_api::pod_autoscaler::{PodAutoscaler, PodAutoscalerStatus};
use podscale_client::call::{self, About, CallError, query, segment};
use serde::Deserialize;
use serde_json::Value;

/// How often a status is sent while somebody else writes it as well.
const TRIES: u32 = 5;
/// How many events are read; Kubernetes keeps them for an hour.
const MOST_EVENTS: &str = "500";

/// What an HPA leaves.
pub(super) struct LeftBehind {
    pub(super) status: PodAutoscalerStatus,
    /// Why its events could not be read, if so.
    unread: Option<CallError>,
}

impl LeftBehind {
    /// What is said about it.
    pub(super) fn words(&self) -> String {
        match (&self.unread, self.status.decisions.len()) {
            (Some(error), _) => {
                format!("; its events could not be read, so that rate policies begin anew: {error}")
            }
            (None, 0) => String::new(),
            (None, 1) => ", with the last change of its size".to_owned(),
            (None, count) => format!(", with the last {count} changes of its size"),
        }
    }
}

impl Place<'_> {
    /// A status with the last changes of size that events tell of.
    pub(super) async fn left_behind(
        &self,
        hpa: &HorizontalPodAutoscaler,
        mut status: PodAutoscalerStatus,
    ) -> LeftBehind {
        let target = &hpa.spec.scale_target_ref;
        let of_hpa = format!("involvedObject.uid={}", hpa.metadata.uid);
        let of_target =
            format!("involvedObject.kind={},involvedObject.name={}", target.kind, target.name);
        let events = async {
            Ok::<_, CallError>((self.events(&of_hpa).await?, self.events(&of_target).await?))
        };
        let unread = match events.await {
            Ok((of_hpa, of_target)) => {
                status.decisions = changes(&of_hpa, &of_target);
                None
            }
            Err(error) => Some(error),
        };
        LeftBehind { status, unread }
    }

    async fn events(&self, fields: &str) -> Result<Vec<ReportedEvent>, CallError> {
        #[derive(Deserialize)]
        struct Events {
            items: Option<Vec<ReportedEvent>>,
        }
        let query = query(&[("fieldSelector", fields), ("limit", MOST_EVENTS)]);
        let path = format!("/api/v1/namespaces/{}/events{query}", segment(self.namespace));
        let about = About { resource: "events", name: "" };
        Ok(call::get::<Events>(self.client, &path, about).await?.items.unwrap_or_default())
    }

    /// Stores in a PodAutoscaler's status what was left to it, beside what the controller may have stored
    /// there meanwhile.
    pub(super) async fn leave(
        &self,
        mut created: PodAutoscaler,
        left: &PodAutoscalerStatus,
    ) -> Result<(), CallError> {
        let about = About { resource: PLURAL, name: self.name };
        let path = format!("{}/{}/status", self.path(API_VERSION, PLURAL), segment(self.name));
        for _ in 1..TRIES {
            created.status = Some(with_left_behind(created.status.take(), left));
            match call::send::<Value>(self.client, "PUT", &path, &created, about).await {
                Err(error) if error.is_conflict() => {
                    created = self.read(API_VERSION, PLURAL).await?;
                }
                ended => return ended.map(drop),
            }
        }
        created.status = Some(with_left_behind(created.status.take(), left));
        call::send::<Value>(self.client, "PUT", &path, &created, about).await.map(drop)
    }
}
