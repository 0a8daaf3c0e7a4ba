//! Proofs of who asks other services of Amazon than SQS: signed requests over HTTP, and tokens that are signed addresses.

use super::Keys;
use super::asker::KeysOf;
use super::signature::{Presigned, Signed};
use crate::address::{Address, encode};
use crate::context::Clock;
use crate::http::token::Proof;
use crate::trigger::TriggerError;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;

/// How long a token for Kafka is good for; one is made for each connection.
const MSK_SECONDS: u32 = 900;

/// Signs requests to one service in one region.
pub(crate) struct Signer {
    pub(crate) service: &'static str,
    pub(crate) region: String,
    pub(crate) keys: KeysOf,
    pub(crate) clock: Clock,
}

impl Proof for Signer {
    fn headers<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<HeaderMap, TriggerError>> {
        Box::pin(async move {
            let address = Address::parse(uri).map_err(|problem| {
                TriggerError::Settings(format!("cannot sign: {problem}").into())
            })?;
            let keys = self.keys.get().await?;
            let signed = Signed {
                method: "GET",
                service: self.service,
                region: &self.region,
                host: &address.authority,
                path: &address.path,
                query: address.query.as_deref().unwrap_or_default(),
                content_type: None,
                target: None,
                body: b"",
                now: (self.clock)(),
            };
            signed.headers(&keys)
        })
    }

    /// Amazon refuses keys that it does not know any longer, and askers who may not ask: others help the former only.
    fn is_refused(&self, status: StatusCode, body: &[u8]) -> bool {
        let can_be_renewed = matches!(self.keys, KeysOf::Identity(_));
        if status != StatusCode::FORBIDDEN || !can_be_renewed {
            return false;
        }
        let text = String::from_utf8_lossy(body).to_lowercase();
        text.contains("security token") || text.contains("expiredtoken")
    }

    fn forget(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // Those that are kept, which nobody has to be asked for.
            if let Ok(refused) = self.keys.get().await {
                self.keys.forget(&refused).await;
            }
        })
    }
}

/// A token for Amazon's Kafka: the address of a request to connect, with its signature.
pub(crate) fn msk_token(keys: &Keys, region: &str, now: Timestamp) -> String {
    let presigned = Presigned {
        service: "kafka-cluster",
        region,
        host: &format!("kafka.{region}.amazonaws.com"),
        parameter: ("Action", "kafka-cluster:Connect"),
        seconds: MSK_SECONDS,
        now,
    };
    let agent = encode(concat!("podscale/", env!("CARGO_PKG_VERSION")));
    URL_SAFE_NO_PAD.encode(format!("{}&User-Agent={agent}", presigned.uri(keys)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn keys(session: Option<&str>) -> Keys {
        Keys {
            id: "AKIDEXAMPLE".to_owned(),
            secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session: session.map(Into::into),
        }
    }

    fn now() -> Timestamp {
        "2015-08-30T12:36:00Z".parse().expect("a time")
    }

    /// What Amazon's SDK for Go (1.47) makes of the same request.
    #[test]
    fn tokens_for_kafka_are_those_of_amazons_library() {
        const DATE: &str = "&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20150830%2Fus-east-1%2F\
                            kafka-cluster%2Faws4_request&X-Amz-Date=20150830T123600Z&X-Amz-Expires=900";
        for (session, part, signature) in [
            (None, "", "c413a83bc64a339e31a5e5e9ed99d778ff843206b427540cafa5122c01e3e993"),
            (
                Some("session/+=token"),
                "&X-Amz-Security-Token=session%2F%2B%3Dtoken",
                "665db53171d8007e7e98082155577ce918ee5826d03bae9a348157cede2f1c94",
            ),
        ] {
            let token = msk_token(&keys(session), "us-east-1", now());
            let uri = URL_SAFE_NO_PAD.decode(token).expect("base64");
            let uri = String::from_utf8(uri).expect("a text");
            let (signed, agent) = uri.split_once("&User-Agent=").expect("an agent");
            assert!(agent.starts_with("podscale%2F"), "{agent}");
            let expected = format!(
                "https://kafka.us-east-1.amazonaws.com/?Action=kafka-cluster%3AConnect{DATE}{part}\
                 &X-Amz-SignedHeaders=host&X-Amz-Signature={signature}"
            );
            assert_eq!(signed, expected);
        }
    }

    /// What Amazon's SDK for Go (1.47) makes of the same request.
    #[tokio::test]
    async fn requests_are_signed_as_by_amazons_library() {
        const URI: &str = "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-1%2Fx/api/v1/query?a=b%20c&\
                           query=sum%28rate%28http_requests_total%7Bjob%3D%22web%20a%22%2Cpath%3D~%22%2Fx%2A%22%7D\
                           %5B2m%5D%29%29";
        for (session, signature) in [
            (None, "ef569bd483950e1b5ec13336b23ef2e88163214e68d29819750881f27233aec1"),
            (
                Some("session/+=token"),
                "d85d4a7764cee353faef36efba1b03b69b94011b785674096ac8eeb71961cb1b",
            ),
        ] {
            let signer = Signer {
                service: "aps",
                region: "us-east-1".to_owned(),
                keys: KeysOf::Trigger(keys(session)),
                clock: Arc::new(now),
            };
            let headers = signer.headers(URI).await.expect("headers");
            let found = headers["authorization"].to_str().expect("a text");
            assert!(found.ends_with(&format!("Signature={signature}")), "{found}");
        }
    }
}
