//! What a demonstration manages, and the objects it begins with.

use super::{Demo, first_metrics};
use crate::scenario::{ApplyError, Scenario, apply, is_autoscaler};
use kube::Client;
use podscale_api::crds;
use podscale_api::keda::scaled_object::{PLURAL, RESOURCE};
use podscale_api::keda::{API_VERSION, authentication, scaled_job};
use podscale_client::call::{self, About};
use podscale_client::clock::Clock;
use podscale_client::discovery::RestMapper;
use podscale_controller::controller::{MetricSources, ResourceSource};
use podscale_controller::dialect::{self, AnyDialect, IsManaged, Managed};
use podscale_controller::settings::TriggerMode;
use podscale_controller::triggers::{Limits, Triggers};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// What texts of a scenario's objects have in the place of the dashboard's address.
const DASHBOARD: &str = "$(DASHBOARD)";
/// How often, and how many times, it is looked whether a new kind is served; wall-clock.
const SERVED: (Duration, u32) = (Duration::from_millis(20), 250);

/// All kinds, those with triggers too, and where metrics are read for them.
pub(super) fn with_triggers(
    client: &Client,
    clock: Clock,
    resource: ResourceSource,
) -> (Vec<Arc<dyn AnyDialect>>, MetricSources) {
    let limits = Limits { own_namespace: "default".to_owned(), ..Limits::default() };
    let triggers = Arc::new(Triggers::new(client, clock, limits));
    let all: IsManaged = Arc::new(|_: &Managed| true);
    let dialects =
        dialect::with_triggers(dialect::built_in(), &triggers, &all, TriggerMode::default());
    let triggers = Some(triggers);
    (dialects, MetricSources { triggers, ..MetricSources::from(resource) })
}

impl Demo {
    /// Creates the objects, the autoscalers last, once there are metrics for them to go by.
    pub(super) async fn create(&self, scenario: &Scenario) -> Result<(), ApplyError> {
        let mapper = RestMapper::new(self.client.clone(), self.clock);
        for definition in crds::keda::definitions() {
            apply(&self.client, &mapper, &definition).await?;
        }
        for (plural, resource) in [
            (PLURAL, RESOURCE),
            (scaled_job::PLURAL, scaled_job::RESOURCE),
            (authentication::PLURAL, authentication::RESOURCE),
        ] {
            self.until_served(plural, resource).await;
        }
        let url = self.dashboard_url();
        let manifests: Vec<Value> =
            scenario.manifests.iter().map(|manifest| addressed(manifest, &url)).collect();
        let (last, first): (Vec<&Value>, Vec<&Value>) =
            manifests.iter().partition(|manifest| is_autoscaler(manifest));
        for manifest in first {
            apply(&self.client, &mapper, manifest).await?;
        }
        if !last.is_empty() {
            let (table, store) = (self.parts.nodes.table(), &self.parts.metrics.store);
            let wanted = first_metrics::pods_of(&scenario.manifests);
            first_metrics::wait(self.clock, wanted, &table, store).await;
        }
        for manifest in last {
            apply(&self.client, &mapper, manifest).await?;
        }
        Ok(())
    }

    /// Waits until a kind is served; whoever needs it reports that it is not.
    async fn until_served(&self, plural: &str, resource: &str) {
        let path = format!("/apis/{API_VERSION}/{plural}");
        let (pause, times) = SERVED;
        for _ in 0..times {
            let about = About { resource, name: "" };
            if call::get::<Value>(&self.client, &path, about).await.is_ok() {
                return;
            }
            tokio::time::sleep(pause).await;
        }
    }
}

/// An object with the dashboard's address where it stands for it.
fn addressed(object: &Value, url: &str) -> Value {
    match object {
        Value::String(text) => Value::String(text.replace(DASHBOARD, url.trim_end_matches('/'))),
        Value::Array(all) => all.iter().map(|value| addressed(value, url)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            fields.map(|(name, value)| (name.clone(), addressed(value, url))).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_address_of_the_dashboard_is_put_in() {
        let object = json!({"a": ["$(DASHBOARD)/load", 1], "b": {"c": "plain", "d": null}});
        let expected = json!({"a": ["http://localhost:1/load", 1], "b": {"c": "plain", "d": null}});
        assert_eq!(addressed(&object, "http://localhost:1/"), expected);
    }
}
