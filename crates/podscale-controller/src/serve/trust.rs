//! Whose certificates and whose word are trusted: what the API server publishes for aggregated servers
//! in the ConfigMap `extension-apiserver-authentication`.

use axum::http::HeaderName;
use parking_lot::RwLock;
use podscale_client::instrument::Instruments;
use podscale_client::watch::{Change, Presence, follow};
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use serde_json::Value;
use std::sync::Arc;

/// The ConfigMap, with its namespace.
const NAME: &str = "kube-system/extension-apiserver-authentication";
/// Where the ConfigMap is; its name is asked for, since rights to it name it.
const PATH: &str = "/api/v1/namespaces/kube-system/configmaps\
    ?fieldSelector=metadata.name%3Dextension-apiserver-authentication";

/// What is wrong with the ConfigMap.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum TrustError {
    /// A key holds no list of texts.
    #[error("{0} is no list of texts in JSON")]
    List(&'static str),
    /// A header cannot have that name.
    #[error("{key} has {name:?}, which is no name of a header")]
    Header {
        /// The key of the ConfigMap.
        key: &'static str,
        /// What it has.
        name: String,
    },
    /// A key holds no usable certificates.
    #[error("{key} has no usable certificates: {problem}")]
    Certificates {
        /// The key of the ConfigMap.
        key: &'static str,
        /// Why not.
        problem: String,
    },
}

/// An authority that signs certificates of clients.
#[derive(Clone, Debug)]
pub struct Authority(Arc<dyn ClientCertVerifier>);

impl Authority {
    /// Reads certificates in PEM.
    ///
    /// # Errors
    /// There are none, or they are unusable.
    pub fn read(key: &'static str, pem: &str) -> Result<Authority, TrustError> {
        let fail = |problem: String| TrustError::Certificates { key, problem };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|error| fail(error.to_string()))?;
            roots.add(certificate).map_err(|error| fail(error.to_string()))?;
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        Ok(Authority(verifier.build().map_err(|error| fail(error.to_string()))?))
    }

    /// Whether it signed a certificate that is valid now.
    ///
    /// # Errors
    /// Says why not.
    pub fn verify(&self, chain: &[CertificateDer<'_>]) -> Result<(), rustls::Error> {
        let Some((first, others)) = chain.split_first() else {
            return Err(rustls::Error::NoCertificatesPresented);
        };
        self.0.verify_client_cert(first, others, UnixTime::now()).map(drop)
    }
}

/// The front proxy: who it is, and in which headers it says for whom it asks.
#[derive(Clone, Debug)]
pub struct FrontProxy {
    /// Who signs its certificate.
    pub authority: Authority,
    /// The names that its certificate may have; any if there are none.
    pub names: Vec<String>,
    /// Headers with the user's name, the first that is there counts.
    pub users: Vec<HeaderName>,
    /// Headers with the user's uid.
    pub uids: Vec<HeaderName>,
    /// Headers with the user's groups.
    pub groups: Vec<HeaderName>,
    /// How headers begin that say more of the user, in small letters.
    pub extra_prefixes: Vec<String>,
}

/// Everybody who is trusted.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Signs the certificates of users.
    pub clients: Option<Authority>,
    /// Asks for others.
    pub proxy: Option<FrontProxy>,
}

impl Trust {
    /// Reads the ConfigMap.
    ///
    /// # Errors
    /// Says which key is wrong.
    pub fn read(config_map: &Value) -> Result<Trust, TrustError> {
        let text = |key: &str| config_map["data"][key].as_str().filter(|text| !text.is_empty());
        let authority =
            |key: &'static str| text(key).map(|pem| Authority::read(key, pem)).transpose();
        let texts = |key: &'static str| match text(key) {
            None => Ok(Vec::new()),
            Some(text) => {
                serde_json::from_str::<Vec<String>>(text).map_err(|_| TrustError::List(key))
            }
        };
        let headers = |key: &'static str| {
            let header = |name: String| {
                HeaderName::try_from(&name).map_err(|_| TrustError::Header { key, name })
            };
            texts(key)?.into_iter().map(header).collect::<Result<Vec<_>, _>>()
        };
        let proxy = match authority("requestheader-client-ca-file")? {
            None => None,
            Some(authority) => Some(FrontProxy {
                authority,
                names: texts("requestheader-allowed-names")?,
                users: headers("requestheader-username-headers")?,
                uids: headers("requestheader-uid-headers")?,
                groups: headers("requestheader-group-headers")?,
                extra_prefixes: texts("requestheader-extra-headers-prefix")?
                    .into_iter()
                    .map(|prefix| prefix.to_lowercase())
                    .collect(),
            }),
        };
        Ok(Trust { clients: authority("client-ca-file")?, proxy })
    }
}

impl Trust {
    /// What it means that there is no ConfigMap.
    pub(super) fn without_config_map(&self) -> &'static str {
        if self.clients.is_some() || self.proxy.is_some() {
            "whom it named before stays trusted"
        } else {
            "only tokens are trusted until there is one"
        }
    }
}

/// Who is trusted now. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Trusted(Arc<RwLock<Arc<Trust>>>);

impl Trusted {
    /// Who is trusted now.
    #[must_use]
    pub fn now(&self) -> Arc<Trust> {
        Arc::clone(&self.0.read())
    }

    /// Trusts others from now on.
    pub fn set(&self, trust: Trust) {
        *self.0.write() = Arc::new(trust);
    }

    /// Follows the ConfigMap until dropped; `read` is called once it was read for the first time, or is known not
    /// to be there. What cannot be read, or is deleted, leaves everything as it was.
    pub async fn follow(
        self,
        client: kube::Client,
        instruments: Instruments,
        read: impl Fn() + Send,
    ) {
        let mut absent = false;
        let take = |config_map: &Value| match Trust::read(config_map) {
            Ok(trust) => {
                if trust.proxy.is_none() {
                    tracing::warn!(
                        "the ConfigMap {NAME} names no front proxy; requests through the API server \
                         cannot be authenticated"
                    );
                }
                self.set(trust);
                read();
            }
            Err(error) => tracing::warn!(
                %error, "the ConfigMap {NAME} is not usable"
            ),
        };
        let apply = |change: Change<Value>| {
            let found = match change {
                Change::All(all) => all.into_iter().next(),
                Change::Applied(config_map) => Some(config_map),
                Change::Deleted(_) => None,
            };
            let Some(config_map) = found else {
                if !std::mem::replace(&mut absent, true) {
                    let consequence = self.now().without_config_map();
                    tracing::warn!("there is no ConfigMap {NAME}; {consequence}");
                }
                return read();
            };
            absent = false;
            take(&config_map);
        };
        follow(&client, PATH, "configmaps", Presence::Always, &instruments, apply).await;
    }
}
