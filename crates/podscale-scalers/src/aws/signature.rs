//! Signatures of requests to Amazon, version 4: what proves who asks without sending the secret.

use super::Keys;
use crate::address::encode;
use crate::hmac::{hex, hmac_sha256};
use crate::http::add_secret;
use crate::secret::Secret;
use crate::trigger::TriggerError;
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// A request that is to be signed.
pub(crate) struct Signed<'a> {
    pub(crate) method: &'a str,
    pub(crate) service: &'a str,
    pub(crate) region: &'a str,
    pub(crate) host: &'a str,
    /// As it is sent.
    pub(crate) path: &'a str,
    /// As it is sent, in the form of [`canonical_query`].
    pub(crate) query: &'a str,
    pub(crate) content_type: Option<&'a str>,
    /// The action, where the body does not say it.
    pub(crate) target: Option<&'a str>,
    pub(crate) body: &'a [u8],
    pub(crate) now: Timestamp,
}

impl Signed<'_> {
    /// All headers of the request, with the signature among them.
    ///
    /// # Errors
    /// A value has characters that no header can have.
    pub(crate) fn headers(&self, keys: &Keys) -> Result<HeaderMap, TriggerError> {
        let date = self.now.strftime("%Y%m%dT%H%M%SZ").to_string();
        let day = self.now.strftime("%Y%m%d").to_string();
        let session = keys.session.as_ref().map(Secret::expose);
        // In the order of their names, as the signature wants them.
        let mut fields = Vec::new();
        fields.extend(self.content_type.map(|kind| (CONTENT_TYPE, kind)));
        fields.push((HOST, self.host));
        fields.push((HeaderName::from_static("x-amz-date"), date.as_str()));
        fields
            .extend(session.map(|token| (HeaderName::from_static("x-amz-security-token"), token)));
        fields.extend(self.target.map(|target| (HeaderName::from_static("x-amz-target"), target)));
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(";");
        let lines: String =
            fields.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let body = hex(&Sha256::digest(self.body));
        let (method, query) = (self.method, self.query);
        // What is encoded in a path is encoded once more.
        let path: Vec<String> = self.path.split('/').map(encode).collect();
        let path = path.join("/");
        let request = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{body}");
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let key = key(keys.secret.expose(), &day, self.region, self.service);
        let signature = sign(&key, &date, &scope, &request);
        let mut headers = HeaderMap::new();
        for (name, value) in &fields {
            add_secret(&mut headers, name.clone(), value)?;
        }
        let id = &keys.id;
        let authorization = format!(
            "{ALGORITHM} Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
        );
        add_secret(&mut headers, AUTHORIZATION, &authorization)?;
        Ok(headers)
    }
}

/// A query whose signature all compute alike: sorted, with everything encoded that can be.
pub(crate) fn canonical_query<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let pairs = pairs.into_iter().map(|(name, value)| (encode(name), encode(value)));
    let mut pairs: Vec<(String, String)> = pairs.collect();
    pairs.sort();
    let pairs: Vec<String> =
        pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

/// An address whose query has the signature of a request for it, good for a while.
pub(crate) struct Presigned<'a> {
    pub(crate) service: &'a str,
    pub(crate) region: &'a str,
    pub(crate) host: &'a str,
    /// Name and value.
    pub(crate) parameter: (&'a str, &'a str),
    pub(crate) seconds: u32,
    pub(crate) now: Timestamp,
}

impl Presigned<'_> {
    /// The address.
    pub(crate) fn uri(&self, keys: &Keys) -> String {
        let date = self.now.strftime("%Y%m%dT%H%M%SZ").to_string();
        let day = self.now.strftime("%Y%m%d").to_string();
        let Presigned { service, region, host, parameter, .. } = *self;
        let scope = format!("{day}/{region}/{service}/aws4_request");
        let (credential, seconds) = (format!("{}/{scope}", keys.id), self.seconds.to_string());
        let session = keys.session.as_ref().map(Secret::expose);
        let mut pairs = vec![
            parameter,
            ("X-Amz-Algorithm", ALGORITHM),
            ("X-Amz-Credential", &credential),
            ("X-Amz-Date", &date),
            ("X-Amz-Expires", &seconds),
            ("X-Amz-SignedHeaders", "host"),
        ];
        pairs.extend(session.map(|token| ("X-Amz-Security-Token", token)));
        let query = canonical_query(pairs);
        let body = hex(&Sha256::digest(b""));
        let request = format!("GET\n/\n{query}\nhost:{host}\n\nhost\n{body}");
        let key = key(keys.secret.expose(), &day, region, service);
        let signature = sign(&key, &date, &scope, &request);
        format!("https://{host}/?{query}&X-Amz-Signature={signature}")
    }
}

/// The signature of a request in the form that all compute alike.
fn sign(key: &[u8], date: &str, scope: &str, request: &str) -> String {
    let request = hex(&Sha256::digest(request));
    let text = format!("{ALGORITHM}\n{date}\n{scope}\n{request}");
    hex(&hmac_sha256(key, text.as_bytes()))
}

/// The key for a day, a region and a service.
fn key(secret: &str, day: &str, region: &str, service: &str) -> Vec<u8> {
    let key = hmac_sha256(format!("AWS4{secret}").as_bytes(), day.as_bytes());
    let key = hmac_sha256(&key, region.as_bytes());
    let key = hmac_sha256(&key, service.as_bytes());
    hmac_sha256(&key, b"aws4_request")
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE_SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

    /// The example of Amazon's documentation.
    #[test]
    fn keys_are_those_of_the_documentation() {
        let key = key(EXAMPLE_SECRET, "20120215", "us-east-1", "iam");
        assert_eq!(hex(&key), "f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d");
    }

    /// One of the requests that Amazon publishes with their signatures.
    #[test]
    fn signatures_are_those_of_the_published_requests() {
        let keys =
            Keys { id: "AKIDEXAMPLE".to_owned(), secret: EXAMPLE_SECRET.into(), session: None };
        let request = Signed {
            method: "POST",
            service: "service",
            region: "us-east-1",
            host: "example.amazonaws.com",
            path: "/",
            query: "",
            content_type: Some("application/x-www-form-urlencoded"),
            target: None,
            body: b"Param1=value1",
            now: "2015-08-30T12:36:00Z".parse().expect("a time"),
        };
        assert_eq!(
            request.headers(&keys).expect("headers")[AUTHORIZATION],
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=content-type;host;x-amz-date, \
             Signature=ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"
        );
    }

    #[test]
    fn all_that_is_signed_is_named_and_the_secret_is_not_sent() {
        for (session, names) in [
            (None, "content-type;host;x-amz-date;x-amz-target"),
            (Some("s"), "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"),
        ] {
            let keys = Keys {
                id: "AK".to_owned(),
                secret: "hunter2".into(),
                session: session.map(Secret::from),
            };
            let signed = |body| {
                let request = Signed {
                    method: "POST",
                    service: "sqs",
                    region: "eu-central-1",
                    host: "h",
                    path: "/",
                    query: "",
                    content_type: Some("application/x-amz-json-1.0"),
                    target: Some("t"),
                    body,
                    now: "2026-11-16T07:08:09Z".parse().expect("a time"),
                };
                request.headers(&keys).expect("headers")
            };
            let headers = signed(b"{}".as_slice());
            let found = headers[AUTHORIZATION].to_str().expect("a text").to_owned();
            let begin = format!(
                "AWS4-HMAC-SHA256 Credential=AK/20261116/eu-central-1/sqs/aws4_request, \
                 SignedHeaders={names}, Signature="
            );
            assert!(found.starts_with(&begin), "{found}");
            assert_eq!(found.len(), begin.len() + 64);
            assert_eq!(headers["x-amz-date"], "20261116T070809Z");
            assert_ne!(signed(b"{ }".as_slice())[AUTHORIZATION], headers[AUTHORIZATION]);
            assert!(headers.values().all(|value| !value.as_bytes().ends_with(b"hunter2")));
        }
    }
}
