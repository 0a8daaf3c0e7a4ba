//! Which resource stands for a kind, found by discovery and remembered; and all that there are.

mod list;

pub use list::{Listed, list};

use crate::call::{self, About, CallError, segment};
use crate::clock::Clock;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use parking_lot::Mutex;
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// How long an answer that a kind does not exist is used.
const ABSENT_MAX_AGE: SignedDuration = SignedDuration::from_secs(10);
/// How many kinds are remembered.
const REMEMBERED_KINDS: usize = 4096;

/// A resource of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its group; empty for the core group.
    pub group: String,
    /// The version in which it is served, the preferred one if nothing else was asked for.
    pub version: String,
    /// Its name in paths.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Resource {
    /// The path of its objects in a namespace, which is passed over if it has none.
    #[must_use]
    pub fn path(&self, namespace: &str) -> String {
        let Resource { group, version, plural, .. } = self;
        let root = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        if self.namespaced {
            format!("{root}/namespaces/{}/{plural}", segment(namespace))
        } else {
            format!("{root}/{plural}")
        }
    }

    /// Its name with its group: `deployments.apps`.
    #[must_use]
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }
}

/// Why no resource was found for a kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapperError {
    /// There is none.
    #[error("no matches for kind {} in {what}", podscale_api::quote::quote(kind))]
    NoMatch {
        /// The kind.
        kind: String,
        /// The group or version that was looked at.
        what: String,
    },
    /// The API server could not be asked.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// The resources of an API server; cheap to clone, clones share what they found.
#[derive(Clone)]
pub struct RestMapper {
    client: Client,
    clock: Clock,
    known: Arc<Mutex<HashMap<Question, Asked>>>,
}

/// Group, version if a certain one is asked for, kind.
type Question = (String, Option<String>, String);

/// A question that was asked, once for all who want to know.
#[derive(Clone)]
struct Asked {
    at: Timestamp,
    answer: Arc<OnceCell<Answer>>,
}

type Answer = Result<Option<Arc<Resource>>, CallError>;

impl Asked {
    /// Whether the answer, which may be on its way, is good enough now.
    fn holds(&self, now: Timestamp) -> bool {
        match self.answer.get() {
            None | Some(Ok(Some(_))) => true,
            Some(Ok(None)) => now.duration_since(self.at) < ABSENT_MAX_AGE,
            Some(Err(_)) => false,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    #[serde(default)]
    versions: Vec<Version>,
    #[serde(default)]
    preferred_version: Version,
}

impl Group {
    /// The versions, the preferred one first.
    fn in_order(self) -> Vec<String> {
        let preferred = self.preferred_version.version;
        let mut versions: Vec<String> = self.versions.into_iter().map(|v| v.version).collect();
        versions.sort_by_key(|version| *version != preferred);
        versions
    }
}

#[derive(Default, Deserialize)]
struct Version {
    #[serde(default)]
    version: String,
}

#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<ApiResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApiResource {
    name: String,
    kind: String,
    #[serde(default)]
    singular_name: String,
    #[serde(default)]
    namespaced: bool,
}

impl RestMapper {
    /// Asks this API server.
    #[must_use]
    pub fn new(client: Client, clock: Clock) -> RestMapper {
        RestMapper { client, clock, known: Arc::default() }
    }

    /// The resource of a kind in a group, in the version that the server prefers.
    ///
    /// # Errors
    /// There is no such kind, or the server could not be asked.
    pub async fn of_group(&self, group: &str, kind: &str) -> Result<Arc<Resource>, MapperError> {
        self.find((group.to_owned(), None, kind.to_owned())).await
    }

    /// The resource of a kind in an API version such as `apps/v1`.
    ///
    /// # Errors
    /// There is no such kind, or the server could not be asked.
    pub async fn of_version(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Result<Arc<Resource>, MapperError> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.find((group.to_owned(), Some(version.to_owned()), kind.to_owned())).await
    }

    /// Forgets a resource that turned out not to be there any more.
    pub fn forget(&self, resource: &Resource) {
        let fits = |asked: &Asked| match asked.answer.get() {
            Some(Ok(Some(found))) => **found != *resource,
            _ => true,
        };
        self.known.lock().retain(|_, asked| fits(asked));
    }

    async fn find(&self, question: Question) -> Result<Arc<Resource>, MapperError> {
        let answer = self.asked(&question).answer;
        let found = answer.get_or_init(|| Box::pin(self.discover(&question))).await.clone()?;
        found.ok_or_else(|| {
            let (group, version, kind) = question;
            let what = match version {
                Some(version) if group.is_empty() => format!("version \"{version}\""),
                Some(version) => format!("version \"{group}/{version}\""),
                None => format!("group \"{group}\""),
            };
            MapperError::NoMatch { kind, what }
        })
    }

    fn asked(&self, question: &Question) -> Asked {
        let (mut known, now) = (self.known.lock(), self.clock.now());
        if let Some(asked) = known.get(question).filter(|asked| asked.holds(now)) {
            return asked.clone();
        }
        if known.len() >= REMEMBERED_KINDS {
            known.clear();
        }
        let asked = Asked { at: now, answer: Arc::default() };
        known.insert(question.clone(), asked.clone());
        asked
    }

    async fn discover(&self, (group, version, kind): &Question) -> Answer {
        let versions = match version {
            Some(version) => vec![version.clone()],
            None => self.versions(group).await?,
        };
        for version in versions {
            let path = if group.is_empty() {
                format!("/api/{}", segment(&version))
            } else {
                format!("/apis/{}/{}", segment(group), segment(&version))
            };
            let Some(found) = self.read::<Resources>(&path).await? else { continue };
            // As upstream's mapper does, a kind may also be written in lower case.
            let named = |r: &ApiResource| r.kind == *kind || r.kind.to_lowercase() == *kind;
            let is_it = |r: &ApiResource| named(r) && !r.name.contains('/');
            if let Some(resource) = found.resources.into_iter().find(is_it) {
                return Ok(Some(Arc::new(Resource {
                    group: group.clone(),
                    version,
                    plural: resource.name,
                    namespaced: resource.namespaced,
                })));
            }
        }
        Ok(None)
    }

    /// The versions of a group, the preferred one first.
    async fn versions(&self, group: &str) -> Result<Vec<String>, CallError> {
        if group.is_empty() {
            return Ok(vec!["v1".to_owned()]);
        }
        let path = format!("/apis/{}", segment(group));
        let Some(found) = self.read::<Group>(&path).await? else { return Ok(Vec::new()) };
        Ok(found.in_order())
    }

    async fn read<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<T>, CallError> {
        match call::get(&self.client, path, About { resource: "", name: "" }).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::http::StatusCode;
    use axum::routing::get;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn many_who_want_to_know_ask_once() {
        let (asked, down) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(1)));
        let (counted, fails) = (Arc::clone(&asked), Arc::clone(&down));
        let answer = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let down = fails.load(Ordering::Relaxed) > 0;
            async move {
                tokio::time::sleep(Duration::from_millis(10)).await;
                match down {
                    true => (StatusCode::INTERNAL_SERVER_ERROR, "no"),
                    false => (StatusCode::OK, r#"{"resources":[{"name":"pods","kind":"Pod"}]}"#),
                }
            }
        };
        let router = Router::new().route("/api/v1", get(answer));
        let kinds = RestMapper::new(Client::new(router, "default"), Clock::wall());
        let all = async |kind: &'static str| {
            let asking = (0..100).map(|_| kinds.of_group("", kind));
            let found = futures::future::join_all(asking).await;
            assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
            let what = match &found[0] {
                Ok(resource) => resource.plural.clone(),
                Err(MapperError::NoMatch { .. }) => "absent".to_owned(),
                Err(MapperError::Call(_)) => "failed".to_owned(),
            };
            format!("{what} {}", asked.swap(0, Ordering::Relaxed))
        };
        assert_eq!(all("Pod").await, "failed 1");
        assert_eq!(all("Pod").await, "failed 1", "a failure is not remembered");
        down.store(0, Ordering::Relaxed);
        assert_eq!(all("Pod").await, "pods 1");
        assert_eq!(all("Pod").await, "pods 0");
        assert_eq!(all("Car").await, "absent 1");
        assert_eq!(all("Car").await, "absent 0", "it is believed for a while");
        let resource = kinds.of_group("", "Pod").await.unwrap();
        kinds.forget(&resource);
        assert_eq!(all("Pod").await, "pods 1");
    }
}
