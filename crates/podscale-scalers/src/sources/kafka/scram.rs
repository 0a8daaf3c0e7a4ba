//! Proves a password without sending it (RFC 5802), and that the server knows it.

use crate::hmac::{hmac_sha256, hmac_sha512};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256, Sha512};

/// How often a password is hashed at most: a server says how often.
const MOST_ROUNDS: u32 = 100_000;

/// By which hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    /// What servers call it.
    pub(super) fn mechanism(self) -> &'static str {
        match self {
            Hash::Sha256 => "SCRAM-SHA-256",
            Hash::Sha512 => "SCRAM-SHA-512",
        }
    }

    fn hmac(self, key: &[u8], message: &[u8]) -> Vec<u8> {
        match self {
            Hash::Sha256 => hmac_sha256(key, message),
            Hash::Sha512 => hmac_sha512(key, message),
        }
    }

    fn digest(self, message: &[u8]) -> Vec<u8> {
        match self {
            Hash::Sha256 => Sha256::digest(message).to_vec(),
            Hash::Sha512 => Sha512::digest(message).to_vec(),
        }
    }

    fn salted(self, password: &[u8], salt: &[u8], rounds: u32) -> Vec<u8> {
        let mut last = self.hmac(password, &[salt, &[0, 0, 0, 1]].concat());
        let mut salted = last.clone();
        for _ in 1..rounds {
            last = self.hmac(password, &last);
            salted.iter_mut().zip(&last).for_each(|(sum, byte)| *sum ^= byte);
        }
        salted
    }
}

/// A proof that was begun.
pub(super) struct Scram<'a> {
    pub(super) hash: Hash,
    pub(super) user: &'a str,
    pub(super) password: &'a str,
    /// Something that was never said before.
    pub(super) nonce: &'a str,
}

/// What to say last, and what the server must answer to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Final {
    pub(super) message: String,
    pub(super) expected: String,
}

impl Scram<'_> {
    fn bare(&self) -> String {
        let user = self.user.replace('=', "=3D").replace(',', "=2C");
        format!("n={user},r={}", self.nonce)
    }

    /// What to say first.
    pub(super) fn first(&self) -> String {
        format!("n,,{}", self.bare())
    }

    /// What to say to what the server says first.
    ///
    /// # Errors
    /// It does not know the protocol, or wants too much.
    pub(super) fn last(&self, server: &str) -> Result<Final, &'static str> {
        let part = |name: &str| server.split(',').find_map(|part| part.strip_prefix(name));
        let (nonce, salt, rounds) = match (part("r="), part("s="), part("i=")) {
            (Some(nonce), Some(salt), Some(rounds)) => (nonce, salt, rounds),
            _ => return Err("it does not speak SCRAM"),
        };
        let salt = STANDARD.decode(salt).map_err(|_| "it does not speak SCRAM")?;
        let rounds: u32 = rounds.parse().map_err(|_| "it does not speak SCRAM")?;
        if !nonce.starts_with(self.nonce) || nonce.len() == self.nonce.len() {
            return Err("it answers somebody else");
        }
        if rounds == 0 || rounds > MOST_ROUNDS {
            return Err("it wants the password hashed too often, or not at all");
        }
        let hash = self.hash;
        let salted = hash.salted(self.password.as_bytes(), &salt, rounds);
        let without_proof = format!("c=biws,r={nonce}");
        let all = format!("{},{server},{without_proof}", self.bare());
        let client = hash.hmac(&salted, b"Client Key");
        let signature = hash.hmac(&hash.digest(&client), all.as_bytes());
        let proof: Vec<u8> = client.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        let key = hash.hmac(&salted, b"Server Key");
        let expected = STANDARD.encode(hash.hmac(&key, all.as_bytes()));
        Ok(Final {
            message: format!("{without_proof},p={}", STANDARD.encode(proof)),
            expected: format!("v={expected}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677.
    #[test]
    fn proofs_are_those_of_the_standard() {
        let scram = Scram {
            hash: Hash::Sha256,
            user: "user",
            password: "pencil",
            nonce: "rOprNGfwEbeRWgbNEkqO",
        };
        assert_eq!(scram.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let server = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let last = scram.last(server).expect("an answer");
        assert_eq!(
            last.message,
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        assert_eq!(last.expected, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn servers_that_say_something_else_are_not_answered() {
        let scram = Scram { hash: Hash::Sha512, user: "a=b,c", password: "p", nonce: "n" };
        assert_eq!(scram.first(), "n,,n=a=3Db=2Cc,r=n");
        for (server, expected) in [
            ("r=nx,s=AAAA,i=1", "ok"),
            ("r=n,s=AAAA,i=1", "it answers somebody else"),
            ("r=x,s=AAAA,i=1", "it answers somebody else"),
            ("r=nx,s=AAAA,i=0", "it wants the password hashed too often, or not at all"),
            ("r=nx,s=AAAA,i=9999999", "it wants the password hashed too often, or not at all"),
            ("r=nx,s=%,i=1", "it does not speak SCRAM"),
            ("hello", "it does not speak SCRAM"),
        ] {
            assert_eq!(scram.last(server).map_or_else(|problem| problem, |_| "ok"), expected);
        }
    }
}
