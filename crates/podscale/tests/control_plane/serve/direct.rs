//! Requests to `podscale serve` that do not come through the API server: with tokens, certificates and
//! headers of all sorts.

use super::{NAMESPACE, SERVICE};
use crate::certificates::{Authority, Signed};
use crate::fixture::api;
use crate::plane::ControlPlane;
use anyhow::{Context, Result, ensure};
use axum::http::Request;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt;
use kube::client::Body;
use kube::{Client, Config};

const PODS: &str = "/apis/metrics.k8s.io/v1beta1/pods";

/// One request.
#[derive(Clone, Copy, Default)]
pub(super) struct Asked<'a> {
    pub(super) port: u16,
    pub(super) path: &'a str,
    pub(super) token: &'a str,
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) certificate: Option<&'a Signed>,
}

impl Asked<'_> {
    /// The code and the body of the answer. The certificate of the server must be that of the Secret.
    pub(super) async fn ask(&self, plane: &ControlPlane) -> Result<(u16, String)> {
        let mut config = Config::new(format!("https://127.0.0.1:{}", self.port).parse()?);
        let authority = authority(plane).await?;
        let certificates = pem(&authority)?;
        config.root_cert = Some(certificates);
        config.tls_server_name = Some(format!("{SERVICE}.{NAMESPACE}.svc"));
        if let Some(signed) = self.certificate {
            let (certificate, key) = signed.pems();
            config.auth_info.client_certificate_data = Some(STANDARD.encode(certificate));
            config.auth_info.client_key_data = Some(STANDARD.encode(key).into());
        }
        let client = Client::try_from(config)?;
        let mut request = Request::get(self.path);
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        for (name, value) in self.headers {
            request = request.header(*name, *value);
        }
        let answer = client.send(request.body(Body::empty())?).await?;
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await?.to_bytes();
        Ok((code, String::from_utf8_lossy(&body).into_owned()))
    }
}

/// The authorities that the Secret publishes.
pub(super) async fn authority(plane: &ControlPlane) -> Result<String> {
    let secrets = api(&plane.client, Some(NAMESPACE), "v1", "Secret");
    let secret = secrets.get("podscale-serving").await?;
    let text = secret.data["data"]["ca.crt"].as_str().context("no ca.crt")?;
    Ok(String::from_utf8(STANDARD.decode(text)?)?)
}

fn pem(text: &str) -> Result<Vec<Vec<u8>>> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    Ok(certificates?.into_iter().map(|certificate| certificate.to_vec()).collect())
}

/// Who may ask, and what the others are told.
pub(super) async fn everybody(plane: &ControlPlane, port: u16) -> Result<()> {
    let forbidden = |user: &str| {
        format!(
            "pods.metrics.k8s.io is forbidden: User \\\"{user}\\\" cannot list resource \\\"pods\\\" in API \
             group \\\"metrics.k8s.io\\\" at the cluster scope"
        )
    };
    let nobody = plane.token_of(NAMESPACE, "nobody").await?;
    let (elsewhere, account) =
        (Authority::new()?, format!("system:serviceaccount:{NAMESPACE}:nobody"));
    let proxy = plane.authority.sign("front-proxy", &[])?;
    let (forged, stranger) =
        (elsewhere.sign("front-proxy", &[])?, plane.authority.sign("stranger", &[])?);
    let jane = [("x-remote-user", "jane"), ("x-remote-group", "dev")];
    let master = [("x-remote-user", "root"), ("x-remote-group", "system:masters")];
    let asked = Asked { port, path: PODS, ..Asked::default() };
    let cases = [
        (
            "the administrator's token",
            Asked { token: "podscale-test-admin", ..asked },
            200,
            "\"PodMetricsList\"".to_owned(),
        ),
        ("a token without rights", Asked { token: &nobody, ..asked }, 403, forbidden(&account)),
        ("a wrong token", Asked { token: "wrong", ..asked }, 401, "Unauthorized".to_owned()),
        ("nobody", asked, 403, forbidden("system:anonymous")),
        ("headers alone", Asked { headers: &master, ..asked }, 403, forbidden("system:anonymous")),
        (
            "the front proxy for a user",
            Asked { headers: &jane, certificate: Some(&proxy), ..asked },
            403,
            forbidden("jane"),
        ),
        (
            "the front proxy for a master",
            Asked { headers: &master, certificate: Some(&proxy), ..asked },
            200,
            "PodMetricsList".to_owned(),
        ),
        (
            "a forged front proxy",
            Asked { headers: &master, certificate: Some(&forged), ..asked },
            401,
            "Unauthorized".to_owned(),
        ),
        (
            "another certificate",
            Asked { headers: &master, certificate: Some(&stranger), ..asked },
            403,
            forbidden("stranger"),
        ),
        ("a probe", Asked { path: "/livez", ..asked }, 200, "ok".to_owned()),
        (
            "metrics without rights",
            Asked { path: "/metrics", ..asked },
            403,
            "cannot get path \\\"/metrics\\\"".to_owned(),
        ),
        (
            "metrics",
            Asked { path: "/metrics", token: "podscale-test-admin", ..asked },
            200,
            "podscale_serve_requests_total".to_owned(),
        ),
        (
            "plain numbers",
            Asked { path: "/plain/nodes/node-1", token: "podscale-test-admin", ..asked },
            200,
            "\"memory\":1073741824".to_owned(),
        ),
        (
            "discovery",
            Asked { path: "/openapi/v2", token: &nobody, ..asked },
            200,
            "PodMetrics".to_owned(),
        ),
    ];
    for (what, asked, code, part) in cases {
        let (found, body) = asked.ask(plane).await.with_context(|| what.to_owned())?;
        ensure!(found == code && body.contains(&part), "{what}: {found} {body}");
    }
    Ok(())
}
