//! What the tests of sources share.

use crate::context::{Cluster, Context, Endpoint, PodPlace};
use crate::trigger::TriggerSpec;
use futures::future::BoxFuture;
use podscale_api::Selector;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A cluster with nothing in it.
pub(crate) struct Empty;

impl Cluster for Empty {
    fn pods<'a>(
        &'a self,
        _: &'a str,
        _: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<PodPlace>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn endpoints<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Endpoint>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// A context with an empty cluster.
pub(crate) fn context() -> Context {
    Context::new(Arc::new(Empty))
}

/// A trigger with metadata only.
pub(crate) fn spec(kind: &str, metadata: &[(&str, &str)]) -> TriggerSpec {
    TriggerSpec {
        kind: kind.to_owned(),
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        metadata: metadata.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        ..TriggerSpec::default()
    }
}

/// Reads `a=1;b=2` into metadata, and `auth.c=3` into the authentication.
pub(crate) fn spec_of(kind: &str, text: &str) -> TriggerSpec {
    let mut spec = spec(kind, &[]);
    for (name, value) in text.split(';').filter_map(|pair| pair.split_once('=')) {
        match name.strip_prefix("auth.") {
            Some(name) => drop(spec.auth.insert(name.to_owned(), value.into())),
            None => drop(spec.metadata.insert(name.to_owned(), value.to_owned())),
        }
    }
    spec
}

/// Name, target and activation of a trigger, or what is wrong with it.
pub(crate) fn outcome(kind: &str, text: &str) -> String {
    match crate::parse(&spec_of(kind, text)) {
        Err(errors) => errors.to_string(),
        Ok(parsed) => match &parsed.metric {
            crate::Metric::External { name, target, .. } => {
                format!("{name} {target} {}", parsed.activation)
            }
            other => format!("{other:?}"),
        },
    }
}

/// A deadline that tests do not reach.
pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}
