//! Asks the API server what somebody may do, and remembers the answers for a moment.

use super::attributes::Attributes;
use super::reviews::Reviews;
use super::user::User;
use kube::Client;
use podscale_client::call::{self, About, CallError};
use podscale_metrics::answer::Refusal;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// What the API server said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Verdict {
    allowed: bool,
    reason: String,
}

#[derive(Deserialize)]
struct SubjectAccessReview {
    #[serde(default)]
    status: Verdict,
}

/// Finds out what somebody may do.
#[derive(Clone)]
pub struct Authorizer {
    client: Client,
    reviews: Reviews<Arc<(User, Attributes)>, Verdict>,
}

impl Authorizer {
    /// Asks this API server.
    #[must_use]
    pub fn new(client: Client) -> Authorizer {
        Authorizer { client, reviews: Reviews::default() }
    }

    /// How many answers are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.reviews.len()
    }

    /// Whether somebody may do something.
    ///
    /// # Errors
    /// They may not, or nobody knows.
    pub async fn authorize(&self, user: User, attributes: Attributes) -> Result<(), Refusal> {
        if user.may_everything() {
            return Ok(());
        }
        let question = Arc::new((user, attributes));
        let (user, attributes) = &*question;
        let verdict = self.reviews.get(&question, review(&self.client, user, attributes)).await;
        match verdict {
            Ok(Verdict { allowed: true, .. }) => Ok(()),
            Ok(Verdict { reason, .. }) => {
                let (text, details) = attributes.forbidden(&user.name, &reason);
                Err(Refusal::forbidden(text, details))
            }
            Err(error) => {
                tracing::warn!(%error, "cannot find out what somebody may do");
                Err(Refusal::internal(&format!("cannot review the access: {error}")))
            }
        }
    }
}

async fn review(
    client: &Client,
    user: &User,
    attributes: &Attributes,
) -> Result<Verdict, CallError> {
    let mut spec = user.review();
    let (field, value) = attributes.review();
    spec[field] = value;
    let object = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec,
    });
    let about = About { resource: "subjectaccessreviews.authorization.k8s.io", name: "" };
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let review: SubjectAccessReview = call::send(client, "POST", path, &object, about).await?;
    Ok(review.status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Method;
    use axum::routing::post;
    use axum::{Json, Router};
    use serde_json::Value;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test]
    async fn what_somebody_may_do_is_asked_once() {
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        let answer = move |Json(review): Json<Value>| {
            count.fetch_add(1, Ordering::Relaxed);
            let spec = &review["spec"];
            let allowed = spec["user"] == "reader" && spec["resourceAttributes"]["verb"] == "list";
            let answer = json!({"status": {"allowed": allowed, "reason": if allowed { "" } else { "no role" }}});
            async { Json(answer) }
        };
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let server = Router::new().route(path, post(answer));
        let authorizer = Authorizer::new(Client::new(server, "default"));
        let ask = async |name: &str, groups: &[&str], path: &str| {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            let user = User { name: name.to_owned(), groups, ..User::default() };
            let attributes = Attributes::of(&Method::GET, path, "");
            let refusal = authorizer.authorize(user, attributes).await.err();
            (refusal.map(|refusal| refusal.code()), asked.swap(0, Ordering::Relaxed))
        };
        let pods = "/apis/metrics.k8s.io/v1beta1/pods";
        assert_eq!(ask("reader", &[], pods).await, (None, 1));
        assert_eq!(ask("reader", &[], pods).await, (None, 0), "it is remembered");
        assert_eq!(ask("other", &[], pods).await, (Some(403), 1));
        assert_eq!(ask("other", &[], pods).await, (Some(403), 0), "a refusal as well");
        assert_eq!(ask("other", &["system:masters"], pods).await, (None, 0));
        assert_eq!(ask("reader", &[], "/metrics").await, (Some(403), 1));
        assert_eq!(authorizer.remembered(), 3);
    }
}
