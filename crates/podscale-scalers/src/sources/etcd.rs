//! `etcd`: the number that a key holds; whoever changes it tells.

mod protocol;
#[cfg(test)]
mod tests;

use super::Draft;
use crate::context::Context;
use crate::grpc::{Grpc, Questions, Target};
use crate::http::add_secret;
use crate::metadata::{AUTH, Fields, METADATA, Place};
use crate::push::{Push, Teller};
use crate::scaler::{About, Scaler, Settings};
use crate::secret::Secret;
use crate::server::Server;
use crate::tls::Tls;
use crate::trigger::{ServerKey, TriggerError, TriggerValue};
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use prost::Message;
use protocol::{
    AuthenticateRequest, AuthenticateResponse, RangeRequest, RangeResponse, WatchCreateRequest,
    WatchRequest, WatchResponse,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

const AUTH_ENV: &[Place] = &[Place::Auth, Place::Env];
/// How long one member may take, so that another can be asked within a poll's time.
const MEMBER_PATIENCE: Duration = Duration::from_secs(2);
/// How long asking may take altogether.
const PATIENCE: Duration = Duration::from_secs(5);
const TOKEN: HeaderName = HeaderName::from_static("token");

/// Which key, where, and who asks.
#[derive(Clone, Debug)]
struct Question {
    cluster: Cluster,
    key: Box<str>,
    /// How long a member may say nothing to whoever listens.
    silence: Duration,
}

/// Members that know the same, and who asks them.
#[derive(Clone, Debug)]
struct Cluster {
    members: Vec<String>,
    user: Option<(Secret, Secret)>,
    /// None if TLS is not spoken.
    tls: Option<Tls>,
}

/// Reads the fields.
pub(super) fn read(fields: &mut Fields<'_>) -> Draft {
    let members = fields.field(&["endpoints"], METADATA).required().list();
    let key = fields.field(&["watchKey"], METADATA).required().text();
    let target = fields.field(&["value"], METADATA).required().number_or(0.0);
    let activation = fields.field(&["activationValue"], METADATA).number_or(0.0);
    let interval = fields.field(&["watchProgressNotifyInterval"], METADATA).integer_or(600);
    let user = fields.field(&["username"], AUTH_ENV).secret();
    let password = fields.field(&["password"], AUTH_ENV).secret();
    let enabled = fields.field(&["tls"], AUTH).text();
    let has_certificate = fields.field(&["cert", "Cert"], AUTH).is_given();
    let has_key = fields.field(&["key"], AUTH).is_given();
    let tls = Tls::read(fields, false);
    let problem = match enabled.as_str() {
        _ if interval <= 0 => Some("watchProgressNotifyInterval must be greater than 0".to_owned()),
        "enable" if has_key && !has_certificate => {
            Some("cert must be provided with key".to_owned())
        }
        "enable" if has_certificate && !has_key => {
            Some("key must be provided with cert".to_owned())
        }
        "" | "enable" | "disable" if password.is_some() && user.is_none() => {
            Some("username must be provided with password".to_owned())
        }
        "" | "enable" | "disable" if user.is_some() && password.is_none() => {
            Some("password must be provided with username".to_owned())
        }
        "" | "enable" | "disable" => None,
        other => Some(format!("incorrect value for TLS given: {other}")),
    };
    if let Some(problem) = problem {
        fields.refuse(problem, "see the page of etcd for what goes together");
    }
    let tls = (enabled == "enable").then_some(tls);
    let members = members.iter().map(|member| host_and_port(member)).collect();
    let cluster = Cluster { members, user: user.zip(password), tls };
    let seconds = u64::try_from(interval).unwrap_or(1).saturating_mul(2);
    Draft {
        name: format!("etcd-{key}"),
        target,
        target_field: Some("value"),
        activation,
        server: Some(cluster.key()),
        settings: Box::new(Question {
            cluster,
            key: key.into(),
            silence: Duration::from_secs(seconds),
        }),
    }
}

/// Members are often written as addresses; whether TLS is spoken, another field says.
fn host_and_port(member: &str) -> String {
    let bare = ["http://", "https://"].iter().find_map(|scheme| member.strip_prefix(scheme));
    bare.unwrap_or(member).trim_end_matches('/').to_owned()
}

impl Cluster {
    fn key(&self) -> ServerKey {
        let (user, password) = match &self.user {
            Some((user, password)) => (user.expose(), password.expose()),
            None => ("", ""),
        };
        let mut key = vec![user, password, if self.tls.is_some() { "tls" } else { "" }];
        key.extend(self.tls.iter().flat_map(Tls::key));
        ServerKey::new("etcd", &format!("etcd {}", self.members.join(",")), &key)
    }
}

/// A cluster that triggers share.
struct EtcdClient {
    members: Vec<Grpc>,
    /// The member that answered last.
    current: AtomicUsize,
    user: Option<(Secret, Secret)>,
    /// Proves who asks; fetched when it is needed.
    token: Mutex<Option<Secret>>,
}

impl EtcdClient {
    fn new(cluster: &Cluster) -> Result<EtcdClient, TriggerError> {
        let members = cluster.members.iter().map(|member| {
            Grpc::new(&Target { authority: member, tls: cluster.tls.as_ref(), name: "" })
        });
        let members: Result<Vec<Grpc>, TriggerError> = members.collect();
        Ok(EtcdClient {
            members: members?,
            current: AtomicUsize::new(0),
            user: cluster.user.clone(),
            token: Mutex::default(),
        })
    }

    /// What a key holds, by the member that answered last or the next that does.
    async fn get(&self, server: &Arc<str>, key: &str) -> Result<RangeResponse, TriggerError> {
        let question = RangeRequest { key: key.as_bytes().to_vec() };
        let mut last = TriggerError::Late(server.clone());
        for _ in &self.members {
            let Some((number, member)) = self.member() else { break };
            let asking = self.call(server, member, "etcdserverpb.KV/Range", &question);
            match tokio::time::timeout(MEMBER_PATIENCE, asking).await {
                Ok(Err(error)) if error.is_outage() => last = error,
                Ok(answer) => return answer,
                Err(_) => last = TriggerError::Late(server.clone()),
            }
            self.leave(number);
        }
        Err(last)
    }

    fn member(&self) -> Option<(usize, &Grpc)> {
        let number = self.current.load(Ordering::Relaxed);
        self.members.get(number % self.members.len().max(1)).map(|member| (number, member))
    }

    /// Goes on to the next member, unless somebody has already.
    fn leave(&self, number: usize) {
        let next = number.wrapping_add(1);
        let ordering = Ordering::Relaxed;
        let _ = self.current.compare_exchange(number, next, ordering, ordering);
    }

    /// A call with a token, which is fetched anew once if it is refused.
    async fn call<A: Message + Default>(
        &self,
        server: &Arc<str>,
        member: &Grpc,
        method: &str,
        question: &impl Message,
    ) -> Result<A, TriggerError> {
        let headers = self.headers(server, member).await?;
        let answer = member.call(server, method, question, &headers).await;
        match answer {
            Err(TriggerError::Unauthorized { .. }) if self.user.is_some() => {
                *self.token.lock() = None;
                let headers = self.headers(server, member).await?;
                member.call(server, method, question, &headers).await
            }
            answer => answer,
        }
    }

    async fn headers(&self, server: &Arc<str>, member: &Grpc) -> Result<HeaderMap, TriggerError> {
        let mut headers = HeaderMap::new();
        // A member that has lost the others answers that, and not what it knew before.
        headers.insert("hasleader", HeaderValue::from_static("true"));
        let Some((user, password)) = &self.user else { return Ok(headers) };
        let known = self.token.lock().clone();
        let token = match known {
            Some(token) => token,
            None => {
                let question = AuthenticateRequest {
                    name: user.expose().to_owned(),
                    password: password.expose().to_owned(),
                };
                let method = "etcdserverpb.Auth/Authenticate";
                let answer = member.call(server, method, &question, &HeaderMap::new()).await;
                let AuthenticateResponse { token } =
                    answer.map_err(|error| refused(server, error))?;
                let token = Secret::from(token);
                *self.token.lock() = Some(token.clone());
                token
            }
        };
        add_secret(&mut headers, TOKEN, token.expose())?;
        Ok(headers)
    }

    /// Tells of every change of a key, as long as a member speaks.
    async fn listen(&self, server: &Arc<str>, key: &str, silence: Duration, teller: &Teller) {
        let Some((number, member)) = self.member() else { return };
        let create = WatchCreateRequest { key: key.as_bytes().to_vec(), progress_notify: true };
        let question = WatchRequest { create_request: Some(create) };
        let listening = async {
            let headers = self.headers(server, member).await?;
            let method = "etcdserverpb.Watch/Watch";
            member.listen(server, method, &question, &headers, Questions::Many).await
        };
        let Ok(Ok(mut answers)) = tokio::time::timeout(MEMBER_PATIENCE, listening).await else {
            return self.leave(number);
        };
        loop {
            match tokio::time::timeout(silence, answers.next::<WatchResponse>()).await {
                Ok(Ok(Some(WatchResponse { canceled: false, events }))) if events.is_empty() => {}
                Ok(Ok(Some(WatchResponse { canceled: false, .. }))) => teller.tell(),
                _ => return self.leave(number),
            }
        }
    }
}

/// etcd says of a wrong password that the question is wrong.
fn refused(server: &Arc<str>, error: TriggerError) -> TriggerError {
    match error {
        TriggerError::Answer(problem) => {
            TriggerError::Unauthorized { server: server.clone(), problem }
        }
        other => other,
    }
}

impl Settings for Question {
    fn connect(
        self: Box<Self>,
        about: About,
        context: &Context,
    ) -> Result<Box<dyn Scaler>, TriggerError> {
        let Question { cluster, key, silence } = *self;
        let address = cluster.key();
        let server = context.connections.share(&address, || {
            let client = EtcdClient::new(&cluster)?;
            Ok::<_, TriggerError>(Server::new(&address, context.freshness, client))
        })?;
        Ok(Box::new(Etcd { about, server, key, silence, push: Push::new() }))
    }
}

/// Asks for one key.
struct Etcd {
    about: About,
    server: Arc<Server<EtcdClient>>,
    key: Box<str>,
    silence: Duration,
    push: Push,
}

impl Scaler for Etcd {
    fn poll(&self, deadline: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>> {
        Box::pin(async move {
            let deadline = deadline.min(Instant::now() + PATIENCE);
            let ask = || async {
                let (name, client) = (self.server.name(), &self.server.connection);
                let answer = client.get(name, &self.key).await?;
                number(&self.key, &answer).map(|number| vec![number])
            };
            let answer = self.server.ask(&self.key, deadline, ask).await?;
            Ok(self.about.value(answer.first().copied().unwrap_or_default()))
        })
    }

    fn notifications(&self) -> Option<watch::Receiver<u64>> {
        let (server, key, silence) = (self.server.clone(), self.key.clone(), self.silence);
        Some(self.push.subscribe(move |teller| {
            let (server, key) = (server.clone(), key.clone());
            async move {
                server.connection.listen(server.name(), &key, silence, &teller).await;
            }
        }))
    }
}

/// The number that a key holds.
fn number(key: &str, answer: &RangeResponse) -> Result<f64, TriggerError> {
    let wrong =
        |problem: String| TriggerError::answer(format!("error getting metric value: {problem}"));
    let Some(found) = answer.kvs.first() else {
        return Err(wrong(format!("watchKey {key} doesn't exist")));
    };
    let text = String::from_utf8_lossy(&found.value);
    text.trim().parse().map_err(|_| wrong(format!("watchKey {key} does not hold a number")))
}
