//! `kubernetes-workload`: how many pods of the namespace a selector finds, or on how many nodes.

use super::Draft;
use crate::context::{Cluster, Context, PodPlace};
use crate::metadata::{Fields, METADATA};
use crate::scaler::{About, Scaler, Settings};
use crate::trigger::{TriggerError, TriggerValue};
use futures::future::BoxFuture;
use podscale_api::Selector;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::time::Instant;

/// Which pods are counted, and how.
#[derive(Clone, Debug)]
struct Counted {
    namespace: Box<str>,
    selector: Selector,
    by_node: bool,
}

/// Reads the fields.
pub(super) fn read(fields: &mut Fields<'_>) -> Draft {
    let text = fields.field(&["podSelector"], METADATA).required().text();
    let target = fields.field(&["value"], METADATA).number_or(0.0);
    let activation = fields.field(&["activationValue"], METADATA).number_or(0.0);
    let by_node = fields.field(&["groupByNode"], METADATA).bool_or(false);
    if target <= 0.0 {
        fields.refuse(
            "value must be a float greater than 0",
            "set metadata.value to how many pods one replica is for",
        );
    }
    let selector = Selector::parse(&text).unwrap_or_else(|error| {
        fields.refuse_late(
            format!("error parsing pod selector: {error}"),
            "write a selector of labels such as app=web,tier in (a,b)",
        );
        Selector::nothing()
    });
    let namespace: Box<str> = fields.spec().namespace.as_str().into();
    Draft {
        name: format!("workload-{namespace}"),
        target,
        target_field: Some("value"),
        activation,
        server: None,
        settings: Box::new(Counted { namespace, selector, by_node }),
    }
}

impl Settings for Counted {
    fn connect(
        self: Box<Self>,
        about: About,
        context: &Context,
    ) -> Result<Box<dyn Scaler>, TriggerError> {
        Ok(Box::new(Workload { about, counted: *self, cluster: context.cluster.clone() }))
    }
}

/// Asks the cluster.
struct Workload {
    about: About,
    counted: Counted,
    cluster: Arc<dyn Cluster>,
}

impl Scaler for Workload {
    fn poll(&self, deadline: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>> {
        Box::pin(async move {
            let Counted { namespace, selector, by_node } = &self.counted;
            let asked = self.cluster.pods(namespace, selector);
            let pods = match tokio::time::timeout_at(deadline, asked).await {
                Ok(pods) => pods.map_err(|problem| {
                    TriggerError::answer(format!("error inspecting kubernetes workload: {problem}"))
                })?,
                Err(_) => return Err(TriggerError::Late("the cluster".into())),
            };
            Ok(self.about.value(count(&pods, *by_node)))
        })
    }
}

/// How many there are: those that have ended do not count, and with `by_node` those without a node neither.
fn count(pods: &[PodPlace], by_node: bool) -> f64 {
    let running = pods.iter().filter(|pod| !pod.ended);
    let count = if by_node {
        running.filter_map(|pod| pod.node.as_deref()).collect::<HashSet<_>>().len()
    } else {
        running.count()
    };
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_that_have_ended_do_not_count() {
        let pod =
            |node: &str, ended| PodPlace { node: (!node.is_empty()).then(|| node.into()), ended };
        let pods =
            [pod("a", false), pod("a", false), pod("b", false), pod("", false), pod("c", true)];
        assert_eq!((count(&pods, false), count(&pods, true)), (4.0, 2.0));
        assert_eq!((count(&[], false), count(&[], true)), (0.0, 0.0));
    }
}
