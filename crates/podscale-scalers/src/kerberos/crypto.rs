//! Encryption and checksums with AES: RFC 3961 and 3962 with SHA-1, RFC 8009 with SHA-2.

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes256};
use ring::{hmac, pbkdf2};
use std::fmt;
use std::num::NonZeroU32;

const BLOCK: usize = 16;
/// How often a password is hashed at least and at most: the KDC says how often, and nothing proves that it is one.
const ROUNDS: std::ops::RangeInclusive<u32> = 4096..=100_000;

/// What is added to a key's use, for its three purposes.
const ENCRYPTS: u8 = 0xaa;
const PROVES: u8 = 0x55;
const SIGNS: u8 = 0x99;

/// A random block that begins what is encrypted.
pub(super) type Confounder = [u8; BLOCK];

/// A type of encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Etype {
    Aes128Sha1,
    Aes256Sha1,
    Aes128Sha2,
    Aes256Sha2,
}

impl Etype {
    /// All that are known, those first that every server has.
    pub(super) const ALL: [Etype; 4] =
        [Etype::Aes256Sha1, Etype::Aes128Sha1, Etype::Aes256Sha2, Etype::Aes128Sha2];

    /// Its number.
    pub(super) fn number(self) -> i64 {
        match self {
            Etype::Aes128Sha1 => 17,
            Etype::Aes256Sha1 => 18,
            Etype::Aes128Sha2 => 19,
            Etype::Aes256Sha2 => 20,
        }
    }

    /// The type with a number, if it is known.
    pub(super) fn of(number: i64) -> Option<Etype> {
        Etype::ALL.into_iter().find(|etype| etype.number() == number)
    }

    /// The number of its checksums.
    pub(super) fn checksum(self) -> i64 {
        match self {
            Etype::Aes128Sha1 => 15,
            Etype::Aes256Sha1 => 16,
            Etype::Aes128Sha2 => 19,
            Etype::Aes256Sha2 => 20,
        }
    }

    fn key_bytes(self) -> usize {
        match self {
            Etype::Aes128Sha1 | Etype::Aes128Sha2 => 16,
            Etype::Aes256Sha1 | Etype::Aes256Sha2 => 32,
        }
    }

    fn hash_bytes(self) -> usize {
        match self {
            Etype::Aes128Sha1 | Etype::Aes256Sha1 => 12,
            Etype::Aes128Sha2 => 16,
            Etype::Aes256Sha2 => 24,
        }
    }

    fn hash(self) -> hmac::Algorithm {
        match self {
            Etype::Aes128Sha1 | Etype::Aes256Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Etype::Aes128Sha2 => hmac::HMAC_SHA256,
            Etype::Aes256Sha2 => hmac::HMAC_SHA384,
        }
    }

    /// The name of those that are a part of the salt.
    fn name(self) -> Option<&'static str> {
        match self {
            Etype::Aes128Sha1 | Etype::Aes256Sha1 => None,
            Etype::Aes128Sha2 => Some("aes128-cts-hmac-sha256-128"),
            Etype::Aes256Sha2 => Some("aes256-cts-hmac-sha384-192"),
        }
    }

    fn hmac(self, key: &[u8], message: &[u8], bytes: usize) -> Vec<u8> {
        let tag = hmac::sign(&hmac::Key::new(self.hash(), key), message);
        tag.as_ref().iter().take(bytes).copied().collect()
    }

    /// A key that is made of another, for something.
    fn derive(self, key: &[u8], constant: &[u8], bytes: usize) -> Vec<u8> {
        if self.name().is_some() {
            let bits = u32::try_from(bytes.saturating_mul(8)).unwrap_or(u32::MAX);
            let message = [&[0, 0, 0, 1], constant, &[0], &bits.to_be_bytes()].concat();
            return self.hmac(key, &message, bytes);
        }
        let cipher = Cipher::new(key);
        let mut block: [u8; BLOCK] = fold(constant);
        let mut derived = Vec::with_capacity(bytes.next_multiple_of(BLOCK));
        while derived.len() < bytes {
            cipher.encrypt(&mut block);
            derived.extend(block);
        }
        derived.truncate(bytes);
        derived
    }
}

/// A key. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) etype: Etype,
    /// As many as its type has.
    bytes: Vec<u8>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", self.etype)
    }
}

impl Key {
    /// A key of a type, if it has the right length.
    pub(super) fn new(etype: Etype, bytes: &[u8]) -> Option<Key> {
        (bytes.len() == etype.key_bytes()).then(|| Key { etype, bytes: bytes.to_vec() })
    }

    /// The key that a password gives, with what the KDC says of how.
    ///
    /// # Errors
    /// It wants something that is not done.
    pub(super) fn of_password(
        etype: Etype,
        password: &str,
        salt: &[u8],
        parameters: Option<&[u8]>,
    ) -> Result<Key, &'static str> {
        let usual = if etype.name().is_some() { 32_768 } else { 4096 };
        let rounds = match parameters {
            None => usual,
            Some(bytes) => {
                let bytes = bytes.try_into().map_err(|_| "it does not say how to hash")?;
                u32::from_be_bytes(bytes)
            }
        };
        let rounds = NonZeroU32::new(rounds).filter(|rounds| ROUNDS.contains(&rounds.get()));
        let rounds = rounds.ok_or("it wants the password hashed too rarely, or too often")?;
        let salt = match etype.name() {
            Some(name) => [name.as_bytes(), &[0], salt].concat(),
            None => salt.to_vec(),
        };
        let algorithm = match etype {
            Etype::Aes128Sha1 | Etype::Aes256Sha1 => pbkdf2::PBKDF2_HMAC_SHA1,
            Etype::Aes128Sha2 => pbkdf2::PBKDF2_HMAC_SHA256,
            Etype::Aes256Sha2 => pbkdf2::PBKDF2_HMAC_SHA384,
        };
        let mut hashed = vec![0; etype.key_bytes()];
        pbkdf2::derive(algorithm, rounds, &salt, password.as_bytes(), &mut hashed);
        let bytes = etype.derive(&hashed, b"kerberos", etype.key_bytes());
        Ok(Key { etype, bytes })
    }

    fn for_use(&self, usage: u32, purpose: u8) -> Vec<u8> {
        let etype = self.etype;
        let bytes = match (etype.name(), purpose) {
            (Some(_), PROVES | SIGNS) => etype.hash_bytes(),
            _ => etype.key_bytes(),
        };
        let [a, b, c, d] = usage.to_be_bytes();
        etype.derive(&self.bytes, &[a, b, c, d, purpose], bytes)
    }

    /// Encrypts, and proves that nothing was changed.
    pub(super) fn encrypt(&self, usage: u32, confounder: &Confounder, plain: &[u8]) -> Vec<u8> {
        let plain = [&confounder[..], plain].concat();
        let mut all = Cipher::new(&self.for_use(usage, ENCRYPTS)).encrypt_stealing(&plain);
        let proof = self.proof(usage, &plain, &all);
        all.extend(proof);
        all
    }

    /// What was encrypted, if nothing was changed.
    pub(super) fn decrypt(&self, usage: u32, encrypted: &[u8]) -> Option<Vec<u8>> {
        let length = encrypted.len().checked_sub(self.etype.hash_bytes())?;
        let (encrypted, given) = encrypted.split_at_checked(length)?;
        let plain = Cipher::new(&self.for_use(usage, ENCRYPTS)).decrypt_stealing(encrypted)?;
        let proof = self.proof(usage, &plain, encrypted);
        if !is_same(&proof, given) {
            return None;
        }
        plain.get(BLOCK..).map(<[u8]>::to_vec)
    }

    fn proof(&self, usage: u32, plain: &[u8], encrypted: &[u8]) -> Vec<u8> {
        let (key, etype) = (self.for_use(usage, PROVES), self.etype);
        match etype.name() {
            None => etype.hmac(&key, plain, etype.hash_bytes()),
            // The first block is that which encryption begins with.
            Some(_) => etype.hmac(&key, &[&[0; BLOCK], encrypted].concat(), etype.hash_bytes()),
        }
    }

    /// The checksum of a message.
    pub(super) fn sign(&self, usage: u32, message: &[u8]) -> Vec<u8> {
        let etype = self.etype;
        etype.hmac(&self.for_use(usage, SIGNS), message, etype.hash_bytes())
    }

    /// Whether a checksum is that of a message.
    pub(super) fn verifies(&self, usage: u32, message: &[u8], checksum: &[u8]) -> bool {
        is_same(&self.sign(usage, message), checksum)
    }
}

/// Whether bytes are the same, in a time that does not tell where they differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// AES with a key of either length.
enum Cipher {
    Short(Box<Aes128>),
    Long(Box<Aes256>),
}

impl Cipher {
    /// Keys have one of two lengths by their types.
    fn new(key: &[u8]) -> Cipher {
        if let Ok(key) = <[u8; 32]>::try_from(key) {
            return Cipher::Long(Box::new(Aes256::new(&Array::from(key))));
        }
        let mut short = [0; 16];
        short.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
        Cipher::Short(Box::new(Aes128::new(&Array::from(short))))
    }

    fn encrypt(&self, block: &mut [u8; BLOCK]) {
        let mut array = Array::from(*block);
        match self {
            Cipher::Short(aes) => aes.encrypt_block(&mut array),
            Cipher::Long(aes) => aes.encrypt_block(&mut array),
        }
        *block = array.into();
    }

    fn decrypt(&self, block: &[u8; BLOCK]) -> [u8; BLOCK] {
        let mut array = Array::from(*block);
        match self {
            Cipher::Short(aes) => aes.decrypt_block(&mut array),
            Cipher::Long(aes) => aes.decrypt_block(&mut array),
        }
        array.into()
    }

    /// Blocks in a chain; the last two are swapped and the last one cut off, so that nothing becomes longer.
    fn encrypt_stealing(&self, plain: &[u8]) -> Vec<u8> {
        let mut last = [0; BLOCK];
        let mut blocks = Vec::with_capacity(plain.len().div_ceil(BLOCK));
        for chunk in plain.chunks(BLOCK) {
            last.iter_mut().zip(chunk).for_each(|(sum, byte)| *sum ^= byte);
            self.encrypt(&mut last);
            blocks.push(last);
        }
        if let [.., a, b] = &mut blocks[..] {
            std::mem::swap(a, b);
        }
        let mut all = blocks.concat();
        all.truncate(plain.len());
        all
    }

    fn decrypt_stealing(&self, encrypted: &[u8]) -> Option<Vec<u8>> {
        let mut blocks: Vec<&[u8]> = encrypted.chunks(BLOCK).collect();
        let tail = blocks.pop()?;
        let Some(stolen) = blocks.pop() else {
            return Some(self.decrypt(&tail.try_into().ok()?).to_vec());
        };
        let (mut plain, mut last) = (Vec::with_capacity(encrypted.len()), [0; BLOCK]);
        for block in blocks {
            let block: [u8; BLOCK] = block.try_into().ok()?;
            let mut opened = self.decrypt(&block);
            opened.iter_mut().zip(last).for_each(|(sum, byte)| *sum ^= byte);
            plain.extend(opened);
            last = block;
        }
        // What was cut off the last block but one is in the last, under what was padded with zeros.
        let opened = self.decrypt(&stolen.try_into().ok()?);
        let mut whole = opened;
        whole.iter_mut().zip(tail).for_each(|(byte, given)| *byte = *given);
        let mut before = self.decrypt(&whole);
        before.iter_mut().zip(last).for_each(|(sum, byte)| *sum ^= byte);
        plain.extend(before);
        plain.extend(opened.iter().zip(tail).map(|(a, b)| a ^ b));
        Some(plain)
    }
}

/// Stretches or shrinks bytes to as many as wanted (RFC 3961, 5.1): copies, each turned by 13 bits more than the one before,
/// are added in pieces.
fn fold<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let bits = bytes.len().saturating_mul(8);
    let mut sum = [0_u8; N];
    if bits == 0 {
        return sum;
    }
    let copies = N / gcd(N, bytes.len());
    let turned = |copy: usize, bit: usize| {
        let from = (bit + bits - 13 * copy % bits) % bits;
        bytes[from / 8] >> (7 - from % 8) & 1
    };
    let all: Vec<u8> = (0..copies)
        .flat_map(|copy| (0..bytes.len()).map(move |byte| (copy, byte)))
        .map(|(copy, byte)| (0..8).fold(0, |sum, bit| sum << 1 | turned(copy, 8 * byte + bit)))
        .collect();
    for piece in all.chunks(N) {
        let mut carry = 0_u16;
        for (to, from) in sum.iter_mut().zip(piece).rev() {
            carry += u16::from(*to) + u16::from(*from);
            *to = carry.to_be_bytes()[1];
            carry >>= 8;
        }
        // What is carried over comes back at the other end.
        for to in sum.iter_mut().rev() {
            carry += u16::from(*to);
            *to = carry.to_be_bytes()[1];
            carry >>= 8;
        }
    }
    sum
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests;
