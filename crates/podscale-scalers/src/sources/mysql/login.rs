//! Says who asks: the server's greeting, and what a password becomes in each way of proving it.

use super::dsn::Connection as Settings;
use super::wire::Reader;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

pub(super) const SSL: u32 = 0x800;
const PLUGIN_AUTH: u32 = 0x8_0000;
/// Long passwords, protocol 4.1, transactions, and secure connections.
const BASIC: u32 = 0x1 | 0x200 | 0x2000 | 0x8000;
const WITH_DATABASE: u32 = 0x8;
const UTF8: u8 = 45;
const MOST_PACKET: u32 = 1 << 24;
/// How long the random bytes of a greeting are, without the zero at their end.
const SEED_BYTES: usize = 20;

/// What the server says first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) capabilities: u32,
    pub(super) seed: Vec<u8>,
    pub(super) plugin: String,
}

impl Greeting {
    /// Reads it.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn read(packet: &[u8]) -> Result<Greeting, &'static str> {
        let mut reader = Reader(packet);
        let [version] = reader.array();
        if version != 10 {
            return Err("it answers something that is not MySQL");
        }
        reader.text();
        let _thread: [u8; 4] = reader.array();
        let mut seed = reader.bytes(8).to_vec();
        let _zero: [u8; 1] = reader.array();
        let low = u16::from_le_bytes(reader.array());
        let _charset_and_status: [u8; 3] = reader.array();
        let high = u16::from_le_bytes(reader.array());
        let [length] = reader.array();
        let _reserved: [u8; 10] = reader.array();
        seed.extend(reader.bytes(usize::from(length).saturating_sub(8).max(13)));
        seed.truncate(SEED_BYTES);
        let capabilities = (u32::from(high) << 16) | u32::from(low);
        let plugin = String::from_utf8_lossy(reader.text()).into_owned();
        Ok(Greeting { capabilities, seed, plugin })
    }
}

fn flags(settings: &Settings, encrypted: bool) -> u32 {
    let database = if settings.database.is_empty() { 0 } else { WITH_DATABASE };
    BASIC | PLUGIN_AUTH | database | if encrypted { SSL } else { 0 }
}

/// What comes first of an answer to the greeting, and alone before TLS is spoken.
pub(super) fn head(settings: &Settings, encrypted: bool) -> Vec<u8> {
    let mut head = flags(settings, encrypted).to_le_bytes().to_vec();
    head.extend(MOST_PACKET.to_le_bytes());
    head.push(UTF8);
    head.extend([0; 23]);
    head
}

/// The answer to the greeting.
pub(super) fn answer(settings: &Settings, encrypted: bool, plugin: &str, proof: &[u8]) -> Vec<u8> {
    let mut packet = head(settings, encrypted);
    packet.extend(settings.user.as_bytes());
    packet.push(0);
    // Proofs have 32 bytes at most.
    packet.push(u8::try_from(proof.len()).unwrap_or(0));
    packet.extend(proof);
    if !settings.database.is_empty() {
        packet.extend(settings.database.as_bytes());
        packet.push(0);
    }
    packet.extend(plugin.as_bytes());
    packet.push(0);
    packet
}

/// What proves a password in a way that the server names.
///
/// # Errors
/// It is not known, or would let others read the password.
pub(super) fn proof(
    settings: &Settings,
    encrypted: bool,
    plugin: &str,
    seed: &[u8],
) -> Result<Vec<u8>, String> {
    let password = settings.password.expose().as_bytes();
    let seed = seed.get(..SEED_BYTES).unwrap_or(seed);
    match plugin {
        "mysql_native_password" if password.is_empty() => Ok(Vec::new()),
        "mysql_native_password" => Ok(native(password, seed)),
        "caching_sha2_password" if password.is_empty() => Ok(Vec::new()),
        "caching_sha2_password" => Ok(caching(password, seed)),
        "mysql_clear_password" if encrypted && settings.cleartext => Ok(cleartext(settings)),
        other => Err(format!("users of the way {other:?} to log in are not supported")),
    }
}

/// The password itself, with a zero at its end.
pub(super) fn cleartext(settings: &Settings) -> Vec<u8> {
    [settings.password.expose().as_bytes(), &[0]].concat()
}

fn native(password: &[u8], seed: &[u8]) -> Vec<u8> {
    let sha1 = |bytes: &[u8]| digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
    let once = sha1(password);
    let twice = sha1(once.as_ref());
    let with_seed = sha1(&[seed, twice.as_ref()].concat());
    xor(once.as_ref(), with_seed.as_ref())
}

fn caching(password: &[u8], seed: &[u8]) -> Vec<u8> {
    let sha256 = |bytes: &[u8]| digest(&SHA256, bytes);
    let once = sha256(password);
    let twice = sha256(once.as_ref());
    let with_seed = sha256(&[twice.as_ref(), seed].concat());
    xor(once.as_ref(), with_seed.as_ref())
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_are_taken_apart() {
        let mut packet = b"\x0a8.0.36\0".to_vec();
        packet.extend([1, 0, 0, 0]);
        packet.extend(b"abcdefgh\0");
        packet.extend([0xFF, 0xF7, 45, 2, 0, 0xFF, 0xDF, 21]);
        packet.extend([0; 10]);
        packet.extend(b"ijklmnopqrst\0caching_sha2_password\0");
        let greeting = Greeting::read(&packet).expect("a greeting");
        assert_eq!(greeting.seed, b"abcdefghijklmnopqrst");
        assert_eq!(
            (greeting.capabilities, &*greeting.plugin),
            (0xDFFF_F7FF, "caching_sha2_password")
        );
        assert!(Greeting::read(b"HTTP/1.1 400").is_err());
        // What is cut off has zeros.
        assert!(Greeting::read(&packet[..12]).is_ok());
    }

    /// What a server checks: it knows the password hashed twice, and the hash of what it undoes must be that.
    #[test]
    fn servers_can_check_proofs() {
        let seed = b"abcdefghijklmnopqrst";
        let sha1 = |bytes: &[u8]| digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref().to_vec();
        let stored = sha1(&sha1(b"hunter2"));
        let once = xor(&native(b"hunter2", seed), &sha1(&[&seed[..], &stored[..]].concat()));
        assert_eq!(sha1(&once), stored);
        let sha256 = |bytes: &[u8]| digest(&SHA256, bytes).as_ref().to_vec();
        let stored = sha256(&sha256(b"hunter2"));
        let once = xor(&caching(b"hunter2", seed), &sha256(&[&stored[..], &seed[..]].concat()));
        assert_eq!(sha256(&once), stored);
    }

    #[test]
    fn passwords_are_sent_as_they_are_only_if_both_sides_want_it_and_nobody_listens() {
        let known = Settings { password: "p".into(), cleartext: true, ..Settings::default() };
        let careful = Settings { cleartext: false, ..known.clone() };
        for (settings, encrypted, plugin, expected) in [
            (&known, true, "mysql_clear_password", Some(2)),
            (&known, false, "mysql_clear_password", None),
            (&careful, true, "mysql_clear_password", None),
            (&careful, false, "mysql_native_password", Some(20)),
            (&careful, false, "caching_sha2_password", Some(32)),
            (&careful, true, "client_ed25519", None),
        ] {
            let found = proof(settings, encrypted, plugin, &[7; 21]).ok();
            assert_eq!(found.map(|proof| proof.len()), expected, "{plugin}");
        }
    }
}
