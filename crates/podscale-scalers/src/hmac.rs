//! Keyed hashes (RFC 2104), which signatures and passwords of some servers are made of.

use sha2::{Digest, Sha256, Sha512};

/// The hash of a message under a key, by SHA-256.
pub(crate) fn hmac_sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::<Sha256>(64, key, message)
}

/// The hash of a message under a key, by SHA-512.
pub(crate) fn hmac_sha512(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::<Sha512>(128, key, message)
}

fn hmac<D: Digest>(block: usize, key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut padded = match key.len() > block {
        true => D::digest(key).to_vec(),
        false => key.to_vec(),
    };
    padded.resize(block, 0);
    let with = |mask: u8| -> Vec<u8> { padded.iter().map(|byte| byte ^ mask).collect() };
    let inner = D::new().chain_update(with(0x36)).chain_update(message).finalize();
    D::new().chain_update(with(0x5c)).chain_update(inner).finalize().to_vec()
}

/// Bytes as they are written in texts.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test cases 2 and 6 of RFC 4231.
    #[test]
    fn hashes_are_those_of_the_standard() {
        let (key, message) = (b"Jefe".as_slice(), b"what do ya want for nothing?".as_slice());
        assert_eq!(
            hex(&hmac_sha256(key, message)),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            hex(&hmac_sha512(key, message)),
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554\
             9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
        );
        let message = b"Test Using Larger Than Block-Size Key - Hash Key First";
        assert_eq!(
            hex(&hmac_sha256(&[0xaa; 131], message)),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }
}
