//! Signatures of requests to Amazon, version 4: what proves who asks without sending the secret.

use crate::hmac::{hex, hmac_sha256};
use crate::http::add_secret;
use crate::secret::Secret;
use crate::trigger::TriggerError;
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

const SERVICE: &str = "sqs";
const JSON: &str = "application/x-amz-json-1.0";

/// Who asks, and in which region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) key_id: String,
    pub(super) secret: Secret,
    pub(super) session: Option<Secret>,
    pub(super) region: String,
}

/// A request that is to be signed.
pub(super) struct Signed<'a> {
    pub(super) host: &'a str,
    pub(super) path: &'a str,
    pub(super) target: &'a str,
    pub(super) body: &'a [u8],
    pub(super) now: Timestamp,
}

impl Signed<'_> {
    /// All headers of the request, with the signature among them.
    ///
    /// # Errors
    /// A value has characters that no header can have.
    pub(super) fn headers(&self, credentials: &Credentials) -> Result<HeaderMap, TriggerError> {
        let date = self.now.strftime("%Y%m%dT%H%M%SZ").to_string();
        let day = self.now.strftime("%Y%m%d").to_string();
        let session = credentials.session.as_ref().map(Secret::expose);
        // In the order of their names, as the signature wants them.
        let mut fields = vec![
            (CONTENT_TYPE, JSON),
            (HOST, self.host),
            (HeaderName::from_static("x-amz-date"), date.as_str()),
        ];
        fields
            .extend(session.map(|token| (HeaderName::from_static("x-amz-security-token"), token)));
        fields.push((HeaderName::from_static("x-amz-target"), self.target));
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(";");
        let lines: String =
            fields.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let body = hex(&Sha256::digest(self.body));
        let request = format!("POST\n{}\n\n{lines}\n{names}\n{body}", self.path);
        let scope = format!("{day}/{}/{SERVICE}/aws4_request", credentials.region);
        let request = hex(&Sha256::digest(request));
        let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{request}");
        let key = key(credentials.secret.expose(), &day, &credentials.region, SERVICE);
        let signature = hex(&hmac_sha256(&key, text.as_bytes()));
        let mut headers = HeaderMap::new();
        for (name, value) in &fields {
            add_secret(&mut headers, name.clone(), value)?;
        }
        let id = &credentials.key_id;
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
        );
        add_secret(&mut headers, AUTHORIZATION, &authorization)?;
        Ok(headers)
    }
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

    /// The example of Amazon's documentation.
    #[test]
    fn keys_are_those_of_the_documentation() {
        let key = key("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20120215", "us-east-1", "iam");
        assert_eq!(hex(&key), "f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d");
    }

    #[test]
    fn all_that_is_signed_is_named_and_the_secret_is_not_sent() {
        for (session, names) in [
            (None, "content-type;host;x-amz-date;x-amz-target"),
            (Some("s"), "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"),
        ] {
            let credentials = Credentials {
                key_id: "AK".to_owned(),
                secret: "hunter2".into(),
                session: session.map(Secret::from),
                region: "eu-central-1".to_owned(),
            };
            let now = "2026-11-16T07:08:09Z".parse().expect("a time");
            let signed = |body| {
                let request = Signed { host: "h", path: "/", target: "t", body, now };
                request.headers(&credentials).expect("headers")
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
