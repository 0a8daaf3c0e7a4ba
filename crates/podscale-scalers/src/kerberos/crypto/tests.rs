use super::*;
use crate::hmac::hex;
use proptest::prelude::*;

fn bytes(hex: &str) -> Vec<u8> {
    let hex: String = hex.split_whitespace().collect();
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("text"), 16).expect("hex"))
        .collect()
}

/// The examples of RFC 3961, A.1.
#[test]
fn bytes_are_folded_as_the_standard_says() {
    assert_eq!(hex(&fold::<8>(b"012345")), "be072631276b1955");
    assert_eq!(hex(&fold::<7>(b"password")), "78a07b6caf85fa");
    assert_eq!(hex(&fold::<8>(b"Rough Consensus, and Running Code")), "bb6ed30870b7f0e0");
    assert_eq!(hex(&fold::<16>(b"kerberos")), "6b65726265726f737b9b5b2b93132b93");
    assert_eq!(
        hex(&fold::<21>(b"Q")),
        "518a54a2 15a8452a 518a54a2 15a8452a 518a54a2 15".replace(' ', "")
    );
}

/// The examples of RFC 3962, B, and RFC 8009, A.
#[test]
fn keys_of_passwords_are_those_of_the_standards() {
    let salt = b"ATHENA.MIT.EDUraeburn";
    let key = |etype, rounds: u32| {
        let rounds = rounds.to_be_bytes();
        Key::of_password(etype, "password", salt, Some(&rounds)).map(|key| hex(&key.bytes))
    };
    assert!(key(Etype::Aes128Sha1, 1200).is_err(), "too rarely");
    assert!(key(Etype::Aes128Sha1, 0).is_err());
    assert!(key(Etype::Aes128Sha1, u32::MAX).is_err());
    let random = bytes("10DF9DD783E5BC8ACEA1730E74355F61");
    let salt = [&random[..], b"ATHENA.MIT.EDUraeburn"].concat();
    let key = |etype| {
        let key = Key::of_password(etype, "password", &salt, None).expect("a key");
        hex(&key.bytes)
    };
    assert_eq!(key(Etype::Aes128Sha2), "089bca48b105ea6ea77ca5d2f39dc5e7");
    assert_eq!(
        key(Etype::Aes256Sha2),
        "45bd806dbf6a833a9cffc1c94589a222367a79bc21c413718906e9f578a78467"
    );
    assert!(Key::of_password(Etype::Aes256Sha2, "p", b"", Some(&[1])).is_err());
}

/// The derivation of RFC 3962's example with 1200 rounds: of PBKDF2's output, which the standard has, too.
#[test]
fn derived_keys_are_those_of_the_standards() {
    let hashed = bytes("5c08eb61fdf71e4e4ec3cf6ba1f5512b");
    assert_eq!(
        hex(&Etype::Aes128Sha1.derive(&hashed, b"kerberos", 16)),
        "4c01cd46d632d01e6dbe230a01ed642a"
    );
    let hashed = bytes("5c08eb61fdf71e4e4ec3cf6ba1f5512ba7e52ddbc5e5142f708a31e2e62b1e13");
    assert_eq!(
        hex(&Etype::Aes256Sha1.derive(&hashed, b"kerberos", 32)),
        "55a6ac740ad17b4846941051e1e8b0a7548d93b0ab30a8bc3ff16280382b8c2a"
    );
    let key =
        Key::new(Etype::Aes128Sha2, &bytes("3705D96080C17728A0E800EAB6E0D23C")).expect("a key");
    assert_eq!(hex(&key.for_use(2, SIGNS)), "b31a018a48f54776f403e9a396325dc3");
    assert_eq!(hex(&key.for_use(2, ENCRYPTS)), "9b197dd1e8c5609d6e67c3e37c62c72e");
    assert_eq!(hex(&key.for_use(2, PROVES)), "9fda0e56ab2d85e1569a688696c26a6c");
}

/// The examples of RFC 3962, B.
#[test]
fn blocks_are_chained_as_the_standard_says() {
    let cipher = Cipher::new(b"chicken teriyaki");
    for (plain, expected) in [
        (&b"I would like the "[..], "c6353568f2bf8cb4d8a580362da7ff7f97"),
        (
            b"I would like the General Gau's ",
            "fc00783e0efdb2c1d445d4c8eff7ed2297687268d6ecccc0c07b25e25ecfe5",
        ),
        (
            b"I would like the General Gau's C",
            "39312523a78662d5be7fcbcc98ebf5a897687268d6ecccc0c07b25e25ecfe584",
        ),
    ] {
        let encrypted = cipher.encrypt_stealing(plain);
        assert_eq!(hex(&encrypted), expected);
        assert_eq!(cipher.decrypt_stealing(&encrypted).as_deref(), Some(plain));
    }
}

/// The examples of RFC 8009, A.
#[test]
fn messages_with_sha_2_are_those_of_the_standard() {
    let short =
        Key::new(Etype::Aes128Sha2, &bytes("3705D96080C17728A0E800EAB6E0D23C")).expect("a key");
    let long = Key::new(
        Etype::Aes256Sha2,
        &bytes("6D404D37FAF79F9DF0D33568D320669800EB4836472EA8A026D16B7182460C52"),
    )
    .expect("a key");
    let confounder = |hex: &str| bytes(hex).try_into().expect("a block");
    assert_eq!(
        hex(&short.encrypt(
            2,
            &confounder("7BCA285E2FD4130FB55B1A5C83BC5B24"),
            &bytes("000102030405")
        )),
        "84d7f30754ed987bab0bf3506beb09cfb55402cef7e6877ce99e247e52d16ed4421dfdf8976c"
    );
    assert_eq!(
        hex(&long.encrypt(
            2,
            &confounder("B80D3251C1F6471494256FFE712D0B9A"),
            &bytes("000102030405")
        )),
        "4ed7b37c2bcac8f74f23c1cf07e62bc7b75fb3f637b9f559c7f664f69eab7b6092237526ea0d1f61cb20d69d10f2"
    );
    let message = bytes("000102030405060708090A0B0C0D0E0F1011121314");
    assert_eq!(hex(&short.sign(2, &message)), "d78367186643d67b411cba9139fc1dee");
    assert_eq!(hex(&long.sign(2, &message)), "45ee791567eefca37f4ac1e0222de80d43c3bfa06699672a");
}

fn etype() -> impl Strategy<Value = Etype> {
    proptest::sample::select(Etype::ALL.to_vec())
}

proptest! {
    #[test]
    fn what_is_encrypted_is_decrypted_and_changes_are_seen(
        etype in etype(), plain in proptest::collection::vec(any::<u8>(), 0..100), at: usize, usage in 1_u32..30,
    ) {
        let key = Key::new(etype, &vec![7; etype.key_bytes()]).expect("a key");
        let mut encrypted = key.encrypt(usage, &[9; 16], &plain);
        prop_assert_eq!(encrypted.len(), 16 + plain.len() + etype.hash_bytes());
        prop_assert_eq!(key.decrypt(usage, &encrypted), Some(plain.clone()));
        prop_assert_eq!(key.decrypt(usage + 1, &encrypted), None);
        let at = at % encrypted.len();
        encrypted[at] ^= 1;
        prop_assert_eq!(key.decrypt(usage, &encrypted), None);
        let signed = key.sign(usage, &plain);
        prop_assert!(key.verifies(usage, &plain, &signed));
        prop_assert!(!key.verifies(usage, &plain, &signed[1..]));
    }

    #[test]
    fn nothing_panics(etype in etype(), any: Vec<u8>) {
        let key = Key::new(etype, &vec![7; etype.key_bytes()]).expect("a key");
        prop_assert_eq!(key.decrypt(3, &any), None);
        prop_assert!(Key::new(etype, &any).is_none() || any.len() == etype.key_bytes());
    }
}
