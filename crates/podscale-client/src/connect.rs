//! Finds the cluster: by a kubeconfig, or because the program runs inside it.

mod transport;

use crate::cause::one_line;
use crate::instrument::{Instruments, RequestLayer};
use crate::rate_limit::{Rate, RateLimit};
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::client::ConfigExt;
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use rustls::ClientConfig;
use secrecy::ExposeSecret;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The namespace of Podscale's own objects, where it is not configured.
const DEFAULT_NAMESPACE: &str = "kube-system";
/// What API servers know the program by, in their logs and in the managed fields of objects.
const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("podscale/", env!("CARGO_PKG_VERSION")));

/// Why there is no way to a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A kubeconfig cannot be used.
    #[error("cannot use the kubeconfig{}: {}", named(.path.as_deref()), wrong(.source))]
    Kubeconfig {
        /// Which one, if it was named.
        path: Option<PathBuf>,
        /// What is wrong with it.
        source: KubeconfigError,
    },
    /// There is no kubeconfig, and this is not a pod.
    #[error(
        "no cluster: there is no kubeconfig (--kubeconfig, $KUBECONFIG, ~/.kube/config), and this \
         does not run in a cluster: {}", one_line(.0)
    )]
    Nowhere(InClusterError),
    /// The way is known, but cannot be gone.
    #[error("cannot connect to {url}: {}", one_line(.source))]
    Client {
        /// Where to.
        url: String,
        /// Why not.
        source: kube::Error,
    },
}

fn named(path: Option<&Path>) -> String {
    path.map(|path| format!(" {}", path.display())).unwrap_or_default()
}

/// What is wrong with a kubeconfig. Its lines are not quoted: they may be tokens.
fn wrong(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(error) => match error.location() {
            Some(place) => format!("line {} is not as it should be in a kubeconfig", place.line()),
            None => "it is no kubeconfig".to_owned(),
        },
        KubeconfigError::LoadContext(name) => format!("it has no context called {name}"),
        KubeconfigError::CurrentContextNotSet => {
            "it names no current context; choose one with --context".to_owned()
        }
        other => one_line(other),
    }
}

/// A way to a cluster.
pub struct Cluster {
    /// Its client.
    pub client: Client,
    /// Where its API server is.
    pub url: String,
    /// The namespace that the program runs in, or one that every cluster has.
    pub namespace: String,
    config: Config,
}

/// How the program identifies itself to the cluster's servers other than the API server.
pub struct Credentials {
    /// Whom it trusts, and the certificate that it shows, if it has one.
    pub tls: ClientConfig,
    /// The token that it shows, if it has one.
    pub token: Option<BearerToken>,
}

/// A token.
pub enum BearerToken {
    /// What a file holds at the time.
    File(PathBuf),
    /// Always this one.
    Text(String),
}

impl Cluster {
    /// What the program shows kubelets, and by which authorities it knows them: the same as with the
    /// API server.
    ///
    /// # Errors
    /// Certificates or keys cannot be read.
    pub fn credentials(&self) -> Result<Credentials, ConnectError> {
        let mut config = self.config.clone();
        // To trust one server blindly says nothing of others.
        config.accept_invalid_certs = false;
        let fail = |source| ConnectError::Client { url: self.url.clone(), source };
        let tls = config.rustls_client_config().map_err(fail)?;
        let auth = config.auth_info;
        let text = auth.token.map(|token| BearerToken::Text(token.expose_secret().to_owned()));
        let file = auth.token_file.map(|path| BearerToken::File(path.into()));
        Ok(Credentials { tls, token: file.or(text) })
    }
}

/// Finds the cluster as kubectl does; without a rate, calls are made as they come.
///
/// # Errors
/// There is none, or its kubeconfig makes no sense.
pub async fn connect(
    path: Option<&Path>,
    context: Option<&str>,
    rate: Option<Rate>,
    instruments: &Instruments,
) -> Result<Cluster, ConnectError> {
    let (mut config, namespace) = find(path, context).await?;
    let url = config.cluster_url.to_string();
    config.headers.push((USER_AGENT, AGENT));
    let rate_limit = rate.map(|rate| RateLimit::new(rate, Arc::clone(instruments)));
    let requests = RequestLayer::new(Arc::clone(instruments));
    match transport::client(config.clone(), requests, rate_limit) {
        Ok(client) => Ok(Cluster { client, url, namespace, config }),
        Err(source) => Err(ConnectError::Client { url, source }),
    }
}

async fn find(
    path: Option<&Path>,
    context: Option<&str>,
) -> Result<(Config, String), ConnectError> {
    let fail = |source| ConnectError::Kubeconfig { path: path.map(Path::to_owned), source };
    let variable = std::env::var_os("KUBECONFIG").is_some_and(|value| !value.is_empty());
    let read = match path {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let kubeconfig = match read {
        Ok(kubeconfig) => kubeconfig,
        Err(error) => {
            let absent =
                matches!(error, KubeconfigError::FindPath | KubeconfigError::ReadConfig(..));
            let asked = path.is_some() || context.is_some();
            if !absent || asked || variable {
                return Err(fail(error));
            }
            let config = Config::incluster().map_err(ConnectError::Nowhere)?;
            let namespace = config.default_namespace.clone();
            return Ok((config, namespace));
        }
    };
    let options =
        KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(fail)?;
    Ok((config, DEFAULT_NAMESPACE.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn outcome(yaml: &str, context: Option<&str>) -> String {
        let name = format!("podscale-connect-{}-{}", std::process::id(), yaml.len());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, yaml).unwrap();
        let outcome = connect(Some(&path), context, None, &(Arc::new(()) as Instruments)).await;
        std::fs::remove_file(&path).unwrap();
        match outcome {
            Ok(cluster) => format!("{} {}", cluster.url, cluster.namespace),
            Err(error) => error.to_string().replace(&path.display().to_string(), "FILE"),
        }
    }

    #[tokio::test]
    async fn an_unusable_kubeconfig_is_reported_in_one_line() {
        let good = "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: c, cluster: \
            {server: 'http://127.0.0.1:1'}}]\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n\
            users: [{name: u, user: {}}]\n";
        assert_eq!(outcome(good, None).await, "http://127.0.0.1:1/ kube-system");
        for (yaml, context, words) in [
            (good, Some("b"), "cannot use the kubeconfig FILE: it has no context called b"),
            (
                "apiVersion: [",
                None,
                "cannot use the kubeconfig FILE: line 1 is not as it should be",
            ),
            ("kind: Config", None, "cannot use the kubeconfig FILE: it names no current context"),
        ] {
            let text = outcome(yaml, context).await;
            assert!(text.starts_with(words) && !text.contains('\n'), "{text}");
        }
        for broken in
            ["users:\n- user:\n    token: SECRET\n   x: y\n", "users: [{user: {token: [SECRET]}}]"]
        {
            let text = outcome(broken, None).await;
            assert!(text.contains(" line ") && !text.contains("SECRET"), "{text}");
        }
        let absent = Path::new("/nonexistent/kubeconfig");
        let absent = connect(Some(absent), None, None, &(Arc::new(()) as Instruments)).await.err();
        let absent = absent.map(|error| error.to_string()).unwrap_or_default();
        assert!(
            absent.starts_with("cannot use the kubeconfig /nonexistent/kubeconfig: "),
            "{absent}"
        );
    }
}
