//! Private keys in PEM, also those that a password protects.

use crate::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pkcs8::pkcs5::EncryptionScheme;
use pkcs8::pkcs5::pbes2::Kdf;
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// What a key begins and ends with that a password protects.
const BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const END: &str = "-----END ENCRYPTED PRIVATE KEY-----";
/// How OpenSSL marks keys that it has encrypted in its own form.
const TRADITIONAL: &str = "Proc-Type: 4,ENCRYPTED";
/// How much work a key may ask for: whoever writes an authentication chooses it, and the controller does it.
const MOST_ROUNDS: u32 = 1_000_000;
const MOST_SCRYPT_BYTES: u64 = 64 << 20;
const MOST_SCRYPT_RUNS: u16 = 16;

/// Reads a key, decrypted if it is encrypted. A password is not used for one that is not.
///
/// # Errors
/// It is no key, or the password is not that of the key; the text holds neither of them.
pub(super) fn read(
    pem: &Secret,
    password: Option<&Secret>,
) -> Result<PrivateKeyDer<'static>, String> {
    let text = pem.expose();
    if text.contains(TRADITIONAL) {
        return Err(
            "it is encrypted in OpenSSL's traditional form: convert it by openssl pkcs8 -topk8"
                .to_owned(),
        );
    }
    let Some((_, encrypted)) = text.split_once(BEGIN) else {
        return PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| error.to_string());
    };
    let Some(password) = password else {
        return Err("it is encrypted: give keyPassword in the authentication".to_owned());
    };
    let encoded = encrypted.split_once(END).map_or("", |(encoded, _)| encoded);
    let encoded: String = encoded.split_whitespace().collect();
    let der = STANDARD.decode(encoded).map_err(|_| "it is not in PEM".to_owned())?;
    decrypt(&der, password)
}

fn decrypt(der: &[u8], password: &Secret) -> Result<PrivateKeyDer<'static>, String> {
    // What is wrong is not shown in full: it may quote the key.
    let unknown = || {
        "it is encrypted in a way that is not known: use PBES2 with PBKDF2 or scrypt and AES, as openssl pkcs8 -topk8 \
         does"
            .to_owned()
    };
    let info = EncryptedPrivateKeyInfoRef::try_from(der).map_err(|_| unknown())?;
    let EncryptionScheme::Pbes2(parameters) = &info.encryption_algorithm else {
        return Err(unknown());
    };
    let too_much = match &parameters.kdf {
        Kdf::Pbkdf2(pbkdf2) => pbkdf2.iteration_count > MOST_ROUNDS,
        Kdf::Scrypt(scrypt) => {
            let bytes = scrypt.cost_parameter.saturating_mul(u64::from(scrypt.block_size));
            let bytes = bytes.saturating_mul(128);
            bytes > MOST_SCRYPT_BYTES || scrypt.parallelization > MOST_SCRYPT_RUNS
        }
        _ => return Err(unknown()),
    };
    if too_much {
        return Err(format!(
            "its password takes too much work to check: use at most {MOST_ROUNDS} rounds of PBKDF2, or {} MiB for \
             scrypt",
            MOST_SCRYPT_BYTES >> 20
        ));
    }
    // Another password leaves bytes that are no key, if it is not noticed before.
    let wrong = || "keyPassword is not its password".to_owned();
    let plain = info.decrypt(password.expose()).map_err(|_| wrong())?;
    PrivateKeyInfoRef::try_from(plain.as_bytes()).map_err(|_| wrong())?;
    Ok(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(plain.as_bytes().to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same keys again and again, as the commands of OpenSSL 3.0 that stand above them have written them.
    fn keys() -> Vec<(&'static str, Secret)> {
        let file = include_str!("keys.pem");
        let parts = file.split("# ").filter_map(|part| part.split_once('\n'));
        parts.map(|(command, pem)| (command, Secret::from(pem))).collect()
    }

    #[test]
    fn keys_are_decrypted_as_openssl_encrypts_them() {
        let (password, other) = (Secret::from("hunter2"), Secret::from("planted"));
        let mut plain = None;
        for (command, pem) in keys() {
            let found = read(&pem, Some(&password));
            let expected = match command.split_once("pkcs8 -topk8").map(|(_, how)| how.trim()) {
                Some("-v1 PBE-SHA1-3DES") => "it is encrypted in a way that is not known: ",
                Some("-iter 2000001" | "-scrypt -scrypt_p 17") => "its password takes too much",
                None if command.ends_with("-aes256") => {
                    "it is encrypted in OpenSSL's traditional form"
                }
                None => {
                    plain = Some(found.expect("a key"));
                    continue;
                }
                Some(_) => {
                    assert_eq!(found.as_ref().ok(), plain.as_ref(), "{command}");
                    let wrong = read(&pem, Some(&other)).expect_err("another password");
                    assert_eq!(wrong, "keyPassword is not its password", "{command}");
                    let without = read(&pem, None).expect_err("no password");
                    assert_eq!(without, "it is encrypted: give keyPassword in the authentication");
                    continue;
                }
            };
            let problem = found.expect_err(command);
            assert!(problem.starts_with(expected), "{command}: {problem}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused_without_being_shown() {
        let password = Secret::from("hunter2");
        for text in [
            "planted",
            BEGIN,
            &format!("{BEGIN}\nplanted\n{END}"),
            &format!("{BEGIN}\nAAAA\n{END}"),
        ] {
            let problem = read(&Secret::from(text), Some(&password)).expect_err(text);
            assert!(!problem.contains("planted") && !problem.contains("hunter2"), "{problem}");
        }
    }
}
