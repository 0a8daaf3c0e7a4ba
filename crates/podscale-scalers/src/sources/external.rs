//! `external`, `external-push`: whatever a server says that speaks KEDA's protocol for scalers of one's own.

mod protocol;
#[cfg(test)]
mod tests;

use super::Draft;
use crate::context::Context;
use crate::grpc::{Grpc, Questions, Target};
use crate::metadata::{AUTH, Fields, METADATA};
use crate::push::{Push, Teller};
use crate::scaler::{About, Scaler, Settings, in_milli};
use crate::secret::Secret;
use crate::server::Server;
use crate::tls::Tls;
use crate::trigger::{Metric, ServerKey, TriggerError, TriggerValue};
use futures::future::BoxFuture;
use http::HeaderMap;
use parking_lot::Mutex;
use prost::Message;
use protocol::{
    GetMetricSpecResponse, GetMetricsRequest, GetMetricsResponse, IsActiveResponse, MetricSpec,
    ScaledObjectRef,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;
use tokio::time::Instant;

/// How many metrics of one trigger are asked for.
const MOST_METRICS: usize = 32;

/// Whom to ask, and for which object.
#[derive(Clone, Debug)]
struct Question {
    address: Box<str>,
    tls: Option<Tls>,
    object: Object,
    index: usize,
    pushes: bool,
}

/// What the server is told of the object: values of the environment may be secret.
#[derive(Clone, Debug)]
struct Object {
    namespace: Box<str>,
    name: Box<str>,
    metadata: BTreeMap<Box<str>, Secret>,
}

/// Reads the fields.
pub(super) fn read(fields: &mut Fields<'_>) -> Draft {
    let address = fields.field(&["scalerAddress"], METADATA).required().text();
    let enabled = fields.field(&["enableTLS"], METADATA).bool_or(false);
    let insecure = fields.field(&["unsafeSsl"], METADATA).bool_or(false);
    let ca = fields.field(&["caCert"], AUTH).secret();
    let certificate = fields.field(&["tlsClientCert"], AUTH).secret();
    let key = fields.field(&["tlsClientKey"], AUTH).secret();
    fields.allow_all();
    let tls = Tls { ca, identity: certificate.zip(key), key_password: None, insecure };
    let spoken = enabled || tls.ca.is_some() || tls.identity.is_some();
    // Names that Go's library resolves in its own ways.
    let bare = ["dns:///", "passthrough:///"].iter().find_map(|way| address.strip_prefix(way));
    let address: Box<str> = bare.unwrap_or(&address).into();
    if !address.is_empty() && address.contains(['/', '@', '?', '#', ' ']) {
        fields.refuse(
            "parameter \"scalerAddress\" is not host:port",
            "write scaler.shop.svc:6000, without http://",
        );
    }
    let spec = fields.spec();
    let question = Question {
        address,
        tls: spoken.then_some(tls),
        object: Object {
            namespace: spec.namespace.as_str().into(),
            name: spec.name.as_str().into(),
            metadata: metadata(fields),
        },
        index: spec.index,
        pushes: spec.kind == "external-push",
    };
    Draft {
        name: String::new(),
        target: 0.0,
        target_field: None,
        activation: 0.0,
        server: Some(question.key()),
        settings: Box::new(question),
    }
}

/// All of the metadata; what `…FromEnv` names stands under that name, if it is anything.
fn metadata(fields: &Fields<'_>) -> BTreeMap<Box<str>, Secret> {
    let spec = fields.spec();
    let known = spec.metadata.iter().filter_map(|(name, value)| {
        let value = match name.ends_with("FromEnv") {
            true => spec.env.get(value).filter(|value| !value.is_empty())?.clone(),
            false => Secret::new(&**value),
        };
        Some((Box::from(name.as_str()), value))
    });
    known.collect()
}

impl Question {
    fn key(&self) -> ServerKey {
        let mut key = vec![if self.tls.is_some() { "tls" } else { "" }];
        key.extend(self.tls.iter().flat_map(Tls::key));
        ServerKey::new("external", &self.address, &key)
    }
}

impl Settings for Question {
    fn connect(
        self: Box<Self>,
        about: About,
        context: &Context,
    ) -> Result<Box<dyn Scaler>, TriggerError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let key = self.key();
        let server = context.connections.share(&key, || {
            let target = Target { authority: &self.address, tls: self.tls.as_ref(), name: "" };
            Ok::<_, TriggerError>(Server::new(&key, context.freshness, Grpc::new(&target)?))
        })?;
        let Question { object, index, pushes, .. } = *self;
        Ok(Box::new(External {
            about,
            server,
            object: Arc::new(object),
            index,
            // What two triggers ask is never the same.
            question: NUMBER.fetch_add(1, Ordering::Relaxed).to_string().into(),
            specs: Mutex::default(),
            push: pushes.then(Push::new),
        }))
    }
}

/// Asks one server about one object.
struct External {
    about: About,
    server: Arc<Server<Grpc>>,
    object: Arc<Object>,
    index: usize,
    question: Box<str>,
    /// What it said last that it scales by.
    specs: Mutex<Vec<MetricSpec>>,
    push: Option<Push>,
}

impl Scaler for External {
    fn poll(&self, deadline: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>> {
        Box::pin(async move {
            let answer = self.ask(deadline).await?;
            let [active, numbers @ ..] = &*answer else { return Ok(Vec::new()) };
            let specs = self.specs.lock();
            let values = specs.iter().zip(numbers).map(|(spec, number)| TriggerValue {
                metric_name: self.name(spec),
                value: in_milli(*number),
                active: *active > 0.0,
            });
            Ok(values.collect())
        })
    }

    fn metrics(
        &self,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<Option<Vec<Metric>>, TriggerError>> {
        Box::pin(async move {
            self.ask(deadline).await?;
            let specs = self.specs.lock();
            let metrics = specs.iter().map(|spec| Metric::External {
                name: self.name(spec),
                metric_type: self.about.metric_type,
                target: spec.target(),
            });
            Ok(Some(metrics.collect()))
        })
    }

    fn notifications(&self) -> Option<watch::Receiver<u64>> {
        let push = self.push.as_ref()?;
        let (server, object) = (self.server.clone(), self.object.clone());
        Some(push.subscribe(move |teller| listen(server.clone(), object.clone(), teller)))
    }
}

/// Tells whenever the server says that there is something to do, as long as it speaks. That there is nothing
/// is left to the next poll.
async fn listen(server: Arc<Server<Grpc>>, object: Arc<Object>, teller: Teller) {
    let method = protocol::method("StreamIsActive");
    let (grpc, none) = (&server.connection, HeaderMap::new());
    let Ok(mut answers) =
        grpc.listen(server.name(), &method, &object.message(), &none, Questions::One).await
    else {
        return;
    };
    while let Ok(Some(IsActiveResponse { result })) = answers.next().await {
        if result {
            teller.tell();
        }
    }
}

impl External {
    /// Whether it is active, and the values of the metrics that it has now.
    async fn ask(&self, deadline: Instant) -> Result<Arc<[f64]>, TriggerError> {
        self.server.ask(&self.question, deadline, || self.numbers()).await
    }

    async fn numbers(&self) -> Result<Vec<f64>, TriggerError> {
        let object = self.object.message();
        let specs: GetMetricSpecResponse = self.call("GetMetricSpec", &object).await?;
        let mut specs = specs.metric_specs;
        specs.truncate(MOST_METRICS);
        let mut numbers = Vec::with_capacity(1 + specs.len());
        let active: IsActiveResponse = self.call("IsActive", &object).await?;
        numbers.push(f64::from(u8::from(active.result)));
        for spec in &specs {
            let metric_name = spec.metric_name.clone();
            let request =
                GetMetricsRequest { scaled_object_ref: Some(object.clone()), metric_name };
            let answer: GetMetricsResponse = self.call("GetMetrics", &request).await?;
            numbers.push(answer.total());
        }
        *self.specs.lock() = specs;
        Ok(numbers)
    }

    async fn call<A: Message + Default>(
        &self,
        method: &str,
        question: &impl Message,
    ) -> Result<A, TriggerError> {
        let (grpc, method) = (&self.server.connection, protocol::method(method));
        grpc.call(self.server.name(), &method, question, &HeaderMap::new()).await
    }

    /// As KEDA numbers it; the rest of the name is the server's.
    fn name(&self, spec: &MetricSpec) -> String {
        format!("s{}-{}", self.index, spec.metric_name)
    }
}

impl Object {
    fn message(&self) -> ScaledObjectRef {
        let metadata = self.metadata.iter();
        ScaledObjectRef {
            name: self.name.to_string(),
            namespace: self.namespace.to_string(),
            scaler_metadata: metadata
                .map(|(name, value)| (name.to_string(), value.expose().to_owned()))
                .collect(),
        }
    }
}
