//! Tokens of service accounts: JSON Web Tokens that say whose they are, for whom and until when, signed
//! with a secret that no other server has.

use std::hash::{BuildHasher, RandomState};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Who issues the tokens, and for whom they are if nobody is named.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
const BLOCK_BYTES: usize = 64;

/// Signs tokens, and knows its own.
pub(crate) struct Signer {
    key: [u8; 32],
}

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    #[serde(rename = "aud")]
    pub audiences: Vec<String>,
    /// Seconds since 1970.
    #[serde(rename = "exp")]
    pub expires: i64,
    #[serde(rename = "iat")]
    pub issued: i64,
    #[serde(rename = "iss")]
    pub issuer: String,
    #[serde(rename = "jti")]
    pub id: String,
    #[serde(rename = "kubernetes.io")]
    pub account: Account,
    #[serde(rename = "nbf")]
    pub not_before: i64,
    #[serde(rename = "sub")]
    pub subject: String,
}

/// Whose a token is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub namespace: String,
    pub serviceaccount: Named,
    /// The object with which the token ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Named>,
    /// The same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Named>,
}

/// An object, and which one of that name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Named {
    pub name: String,
    pub uid: String,
}

impl Signer {
    /// One whose secret nobody can guess: the hasher's keys come from the system's random numbers.
    pub(crate) fn new() -> Signer {
        let mut hash = Sha256::new();
        for part in 0..8u8 {
            hash.update(RandomState::new().hash_one(part).to_be_bytes());
        }
        Signer { key: hash.finalize().into() }
    }

    /// The token that says this.
    pub(crate) fn sign(&self, claims: &Claims) -> serde_json::Result<String> {
        let [header, claims] = [HEADER.as_bytes(), &serde_json::to_vec(claims)?]
            .map(|part| URL_SAFE_NO_PAD.encode(part));
        let signed = format!("{header}.{claims}");
        let signature = URL_SAFE_NO_PAD.encode(hmac_sha256(&self.key, signed.as_bytes()));
        Ok(format!("{signed}.{signature}"))
    }

    /// What a token says, if it is one of ours and its time is not over.
    pub(crate) fn read(&self, token: &str, now: Timestamp) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        if !same_secret(&signature, &hmac_sha256(&self.key, signed.as_bytes())) {
            return None;
        }
        let (_, claims) = signed.split_once('.')?;
        let claims: Claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
        let now = now.as_second();
        (claims.not_before <= now && now < claims.expires).then_some(claims)
    }
}

/// Compares without telling by its duration where two secrets differ.
pub(crate) fn same_secret(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// A keyed hash, as RFC 2104 has it, for keys that are no longer than a block.
fn hmac_sha256(key: &[u8; 32], text: &[u8]) -> [u8; 32] {
    let padded = |with: u8| {
        let mut block = [with; BLOCK_BYTES];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The second test of RFC 4231; its key is filled up with zeros, which changes nothing.
    #[test]
    fn the_keyed_hash_is_that_of_the_standard() {
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(&hmac_sha256(&key, b"what do ya want for nothing?")), expected);
    }

    #[test]
    fn only_own_tokens_are_read_and_only_in_their_time() {
        let signer = Signer::new();
        let named = |name: &str| Named { name: name.to_owned(), uid: "u".to_owned() };
        let claims = Claims {
            audiences: vec![ISSUER.to_owned()],
            expires: 700,
            issued: 100,
            issuer: ISSUER.to_owned(),
            id: "1".to_owned(),
            account: Account {
                namespace: "shop".to_owned(),
                serviceaccount: named("editor"),
                pod: Some(named("web-1")),
                secret: None,
            },
            not_before: 100,
            subject: "system:serviceaccount:shop:editor".to_owned(),
        };
        let token = signer.sign(&claims).expect("a token");
        let at = |second| Timestamp::from_second(second).expect("a time");
        assert_eq!(signer.read(&token, at(100)), Some(claims.clone()));
        assert_eq!(signer.read(&token, at(699)), Some(claims));
        for second in [99, 700] {
            assert_eq!(signer.read(&token, at(second)), None, "{second}");
        }
        assert_eq!(Signer::new().read(&token, at(100)), None, "of another server");
        let (signed, signature) = token.rsplit_once('.').expect("two parts");
        for wrong in ["", "a.b.c", &format!("{signed}."), &format!("{signed}x.{signature}")] {
            assert_eq!(signer.read(wrong, at(100)), None, "{wrong}");
        }
    }
}
