//! The tokens of service accounts: who gets one, and whose one is.

use axum::response::Response;
use http::{HeaderMap, StatusCode, header};
use podscale_api::field_error::{FieldError, FieldPath};
use serde_json::{Value, json};

use super::mutate::{Context, body_format};
use super::{Call, respond};
use crate::server::Inner;
use crate::status::{ApiError, ApiResult};
use crate::store::key;
use crate::tokens::{Account, Claims, ISSUER, Named};
use crate::types::decode::time_text;
use crate::value::{list, text};
use crate::write::{check_namespace, decode};

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
/// How long a token is good for if nobody says so, and at least.
const DEFAULT_SECONDS: i64 = 3600;
const LEAST_SECONDS: i64 = 600;
const MOST_SECONDS: i64 = 1 << 32;
/// How many audiences a token may have.
const MAX_AUDIENCES: usize = 32;

/// Issues a token of a service account.
pub(super) fn create(call: &Call) -> ApiResult<Response> {
    let format = body_format(call)?;
    let ty = "authentication/v1.TokenRequest";
    let (body, _) = decode::parse(&call.body, format, Some(ty)).map_err(ApiError::bad_request)?;
    check_namespace(&body, call.namespace())?;
    Context::of(call, "CreateOptions")?;
    let account = account(call, &body)?;
    let seconds = seconds(&body)?;
    let audiences = audiences(&body)?;
    let now = call.server.now();
    let expires = now.as_second().saturating_add(seconds);
    let claims = Claims {
        audiences: audiences.clone(),
        expires,
        issued: now.as_second(),
        issuer: ISSUER.to_owned(),
        id: call.server.new_uid(),
        subject: format!("system:serviceaccount:{}:{}", call.namespace(), call.name()),
        account,
        not_before: now.as_second(),
    };
    let token = call.server.signer.sign(&claims).map_err(ApiError::internal)?;
    let until = jiff::Timestamp::from_second(expires).map_err(ApiError::internal)?;
    let answer = json!({
        "kind": KIND,
        "apiVersion": format!("{GROUP}/v1"),
        "metadata": {
            "name": call.name(),
            "namespace": call.namespace(),
            "creationTimestamp": time_text(now),
        },
        "spec": {
            "audiences": audiences,
            "expirationSeconds": seconds,
            "boundObjectRef": body.pointer("/spec/boundObjectRef").cloned().unwrap_or_default(),
        },
        "status": { "token": token, "expirationTimestamp": time_text(until) },
    });
    respond::render(call, StatusCode::CREATED, &answer)
}

/// The service account of a request, with what its token is bound to.
fn account(call: &Call, body: &Value) -> ApiResult<Account> {
    let uid = uid(&call.server, "serviceaccounts", call.namespace(), call.name());
    let uid = uid.ok_or_else(|| ApiError::not_found(&call.served.info, call.name()))?;
    let serviceaccount = Named { name: call.name().to_owned(), uid };
    let namespace = call.namespace().to_owned();
    let mut account = Account { namespace, serviceaccount, pod: None, secret: None };
    let bound = body.pointer("/spec/boundObjectRef").filter(|bound| !bound.is_null());
    let Some(bound) = bound else { return Ok(account) };
    let (kind, name) = (text(bound, "/kind"), text(bound, "/name"));
    let (plural, place) = match (text(bound, "/apiVersion"), kind) {
        ("v1", "Pod") => ("pods", &mut account.pod),
        ("v1", "Secret") => ("secrets", &mut account.secret),
        (version, kind) => {
            let what = format!("{version}, Kind={kind}");
            let why = format!("cannot bind token for serviceaccount to a type {what}");
            return Err(ApiError::bad_request(why));
        }
    };
    let served = call.server.registry().find("", "v1", plural);
    let served = served.ok_or_else(ApiError::no_such_resource)?;
    let uid = self::uid(&call.server, plural, call.namespace(), name);
    let uid = uid.ok_or_else(|| ApiError::not_found(&served.info, name))?;
    let wanted = text(bound, "/uid");
    if !wanted.is_empty() && wanted != uid {
        let why = format!(
            "the UID in the bound object reference ({wanted}) does not match the UID in record. The \
             object might have been deleted and then recreated"
        );
        return Err(ApiError::conflict(&served.info, name, &why));
    }
    *place = Some(Named { name: name.to_owned(), uid });
    Ok(account)
}

fn seconds(body: &Value) -> ApiResult<i64> {
    let given = body.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    let seconds = given.unwrap_or(DEFAULT_SECONDS);
    let detail = match seconds {
        ..LEAST_SECONDS => "may not specify a duration less than 10 minutes",
        LEAST_SECONDS..=MOST_SECONDS => return Ok(seconds),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let field = FieldPath::new("spec").child("expirationSeconds");
    let error = FieldError::invalid(&field, seconds, detail);
    Err(ApiError::invalid(GROUP, KIND, "", &[error]))
}

/// For whom the token is; for this server if nobody is named.
fn audiences(body: &Value) -> ApiResult<Vec<String>> {
    let named = list(body, "/spec/audiences").iter().filter_map(Value::as_str);
    let mut named: Vec<String> = named.map(str::to_owned).collect();
    if named.len() > MAX_AUDIENCES {
        let field = FieldPath::new("spec").child("audiences");
        let error = FieldError::too_many(&field, named.len(), MAX_AUDIENCES);
        return Err(ApiError::invalid(GROUP, KIND, "", &[error]));
    }
    if named.is_empty() {
        named.push(ISSUER.to_owned());
    }
    Ok(named)
}

/// Which object of this name there is.
fn uid(server: &Inner, plural: &str, namespace: &str, name: &str) -> Option<String> {
    let served = server.registry().find("", "v1", plural)?;
    let object = server.store.get(&served.storage, &key(namespace, name))?;
    Some(text(&object.value(), "/metadata/uid").to_owned())
}

/// What a token of a service account says, if it is good now and its account, and what it is bound to, are
/// still there.
pub(super) fn claims(server: &Inner, token: &str) -> Option<Claims> {
    let claims = server.signer.read(token, server.now())?;
    let Account { namespace, serviceaccount, pod, secret } = &claims.account;
    let there = |plural: &str, named: &Named| {
        uid(server, plural, namespace, &named.name).is_some_and(|uid| uid == named.uid)
    };
    let good = there("serviceaccounts", serviceaccount)
        && pod.as_ref().is_none_or(|pod| there("pods", pod))
        && secret.as_ref().is_none_or(|secret| there("secrets", secret));
    good.then_some(claims)
}

/// The token that a request carries; empty if it carries none.
pub(super) fn carried(headers: &HeaderMap) -> &str {
    let given = headers.get(header::AUTHORIZATION).and_then(|given| given.to_str().ok());
    given.and_then(|given| given.strip_prefix("Bearer ")).unwrap_or_default()
}

/// Whether a token of a service account is good for this server.
pub(super) fn is_for_this_server(server: &Inner, token: &str) -> bool {
    claims(server, token).is_some_and(|claims| claims.audiences.iter().any(|one| one == ISSUER))
}

/// Whoever has such a token.
pub(super) fn user(claims: &Claims) -> Value {
    let Account { namespace, serviceaccount, .. } = &claims.account;
    json!({
        "username": claims.subject,
        "uid": serviceaccount.uid,
        "groups": [
            "system:serviceaccounts",
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated",
        ],
    })
}
