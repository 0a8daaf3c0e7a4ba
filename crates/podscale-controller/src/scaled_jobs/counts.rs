//! How many Jobs of a ScaledJob are unfinished, and how many of those wait for their pods.

use super::known::{Job, State};
use super::poll::Poller;
use podscale_api::keda::scaled_job::ScaledJob;
use podscale_api::pod::PodPhase;
use podscale_api::selector::Selector;
use podscale_api::translate::scaled_job::made::NAME_LABEL;
use podscale_client::call::{self, About, query, segment};
use podscale_core::jobs::JobCounts;
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};

/// The label that names the Job of a pod.
const JOB_LABEL: &str = "job-name";
/// The most pods whose conditions are looked at.
const MOST_PODS: &str = "5000";

/// Pods of which only the conditions are of interest.
#[derive(Deserialize)]
struct ListedPods {
    #[serde(default)]
    items: Vec<ListedPod>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListedPod {
    metadata: ListedMeta,
    status: ListedStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListedMeta {
    labels: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListedStatus {
    conditions: Vec<ListedCondition>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListedCondition {
    r#type: String,
    status: String,
}

impl ListedPod {
    /// Whether it has all of these conditions.
    fn has_all(&self, wanted: &[String]) -> bool {
        let holds = |kind: &String| {
            self.status.conditions.iter().any(|it| it.r#type == *kind && it.status == "True")
        };
        wanted.iter().all(holds)
    }
}

impl Poller {
    /// Counts the Jobs of an object that have not ended.
    ///
    /// # Errors
    /// The conditions of pods count, and they cannot be read.
    pub(super) async fn counts(
        &self,
        object: &ScaledJob,
        known: &[Job],
    ) -> Result<JobCounts, String> {
        let unfinished: Vec<&Job> =
            known.iter().filter(|job| job.state == State::Unfinished).collect();
        let conditions = &object.spec.scaling_strategy.pending_pod_conditions;
        let pending = match (unfinished.is_empty(), conditions.is_empty()) {
            (true, _) => 0,
            (false, true) => unfinished.iter().filter(|job| !self.has_begun(job)).count(),
            (false, false) => {
                let begun = self.begun_by_conditions(object, conditions).await?;
                unfinished.iter().filter(|job| !begun.contains(&*job.name)).count()
            }
        };
        let narrow = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        Ok(JobCounts { running: narrow(unfinished.len()), pending: narrow(pending) })
    }

    /// Whether a pod of a Job runs or has done its work.
    fn has_begun(&self, job: &Job) -> bool {
        let Some(pods) = self.triggers.pods() else { return false };
        let Ok(selector) = Selector::parse(&format!("{JOB_LABEL}={}", job.name)) else {
            return false;
        };
        let pods = pods.select(&job.namespace, &selector);
        pods.iter()
            .any(|pod| matches!(pod.status.phase, Some(PodPhase::Running | PodPhase::Succeeded)))
    }

    /// The Jobs with a pod that has all of these conditions. The watch of all pods keeps no conditions but one, so they
    /// are listed for the few objects that name some.
    async fn begun_by_conditions(
        &self,
        object: &ScaledJob,
        conditions: &[String],
    ) -> Result<HashSet<String>, String> {
        let metadata = &object.metadata;
        let selector = format!("{NAME_LABEL}={}", metadata.name);
        let query = query(&[("labelSelector", selector.as_str()), ("limit", MOST_PODS)]);
        let path = format!("/api/v1/namespaces/{}/pods{query}", segment(&metadata.namespace));
        let about = About { resource: "pods", name: "" };
        let listed = call::get::<ListedPods>(self.writer.client(), &path, about).await;
        let listed =
            listed.map_err(|error| format!("the pods of its Jobs cannot be listed: {error}"))?;
        let begun = listed.items.into_iter().filter(|pod| pod.has_all(conditions));
        Ok(begun.filter_map(|mut pod| pod.metadata.labels.remove(JOB_LABEL)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_has_begun_when_all_conditions_hold() {
        let pod: ListedPod = serde_json::from_value(json!({"status": {"conditions": [
            {"type": "Ready", "status": "True"}, {"type": "Warm", "status": "False"}]}}))
        .expect("a pod");
        for (wanted, expected) in
            [("Ready", true), ("Ready Warm", false), ("Warm", false), ("Other", false), ("", true)]
        {
            let wanted: Vec<String> = wanted.split_whitespace().map(str::to_owned).collect();
            assert_eq!(pod.has_all(&wanted), expected, "{wanted:?}");
        }
    }
}
