use super::*;
use crate::kerberos::crypto::Etype;
use crate::kerberos::der::time;
use crate::kerberos::message::{Principal, encrypted};
use proptest::prelude::*;

fn key(byte: u8) -> Key {
    Key::new(Etype::Aes256Sha1, &[byte; 32]).expect("a key")
}

fn now() -> Timestamp {
    "2026-11-18T06:00:00.25Z".parse().expect("a time")
}

fn begun() -> Initiator {
    let ticket = Ticket {
        bytes: value(application(1), b"sealed"),
        key: key(1),
        service: Principal::service("kafka", "broker"),
        ends: Timestamp::MAX,
    };
    let client = Client { name: Principal::user("asker"), realm: "SHOP.TEST".to_owned() };
    let (begun, token) = Initiator::begin(&ticket, &client, now(), 5, &[0; 16]);
    assert!(Reader(&token).value(application(0)).expect("a token").0.starts_with(MECHANISM));
    begun
}

/// The proof of a service that read a time, perhaps with a key of its own.
fn proof(by: &Key, micros: i64, subkey: Option<u8>) -> Vec<u8> {
    let mut fields = vec![(0, time(now())), (1, integer(micros))];
    fields.extend(subkey.map(|byte| (2, sequence(&[(0, integer(18)), (1, octets(&[byte; 32]))]))));
    let part = encrypted(by, USE_ANSWER, &[0; 16], &value(application(27), &sequence(&fields)));
    let answer = sequence(&[(0, integer(5)), (1, integer(15)), (2, part)]);
    value(application(0), &[MECHANISM, &ANSWER, &value(application(15), &answer)].concat())
}

/// A message of a service.
fn wrapped(by: &Key, flags: u8, turned: u16, plain: &[u8]) -> Vec<u8> {
    let head = |count: u16, turned: u16| {
        let ([e, c], [r1, r2]) = (count.to_be_bytes(), turned.to_be_bytes());
        [&[5, 4, flags, 0xff, e, c, r1, r2][..], &[0, 0, 0, 0, 0, 0, 0, 9]].concat()
    };
    let checksum = by.sign(USE_BY_SERVICE, &[plain, &head(0, 0)].concat());
    let mut rest = [plain, &checksum].concat();
    rest.rotate_right(usize::from(turned));
    [head(checksum.len() as u16, turned), rest].concat()
}

#[test]
fn services_prove_who_they_are() {
    for (token, expected) in [
        (proof(&key(1), 250_000, None), None),
        (proof(&key(1), 250_000, Some(3)), None),
        (proof(&key(1), 250_001, None), Some(Broken::Unproved)),
        (proof(&key(2), 250_000, None), Some(Broken::Unproved)),
        (vec![], Some(Broken::Malformed)),
        (b"HTTP/1.1 400".to_vec(), Some(Broken::Malformed)),
    ] {
        assert_eq!(begun().proved(&token).err(), expected);
    }
}

#[test]
fn no_layer_is_chosen_if_it_is_offered() {
    for (subkey, by, flags) in [(None, key(1), 1), (Some(3), key(3), 5), (Some(3), key(1), 1)] {
        let agreed = begun().proved(&proof(&key(1), 250_000, subkey)).expect("proved");
        for turned in [0, 12] {
            let chosen =
                agreed.choose(&wrapped(&by, flags, turned, &[7, 1, 0, 0])).expect("chosen");
            assert_eq!(
                chosen[..8],
                [5, 4, if subkey.is_some() { 4 } else { 0 }, 0xff, 0, 12, 0, 0]
            );
            assert_eq!(chosen[8..20], [0, 0, 0, 0, 0, 0, 0, 5, 1, 0, 0, 0]);
            let signed = [&chosen[16..20], &chosen[..4], &[0; 4], &chosen[8..16]].concat();
            let key = subkey.map_or(key(1), key);
            assert!(key.verifies(USE_BY_CLIENT, &signed, &chosen[20..]));
        }
        for (token, expected) in [
            (wrapped(&by, flags, 0, &[6, 1, 0, 0]), Broken::Layer),
            (wrapped(&by, flags, 0, &[7, 1, 0]), Broken::Malformed),
            (wrapped(&key(7), flags, 0, &[7, 1, 0, 0]), Broken::Unproved),
            (wrapped(&by, flags ^ BY_SERVICE, 0, &[7, 1, 0, 0]), Broken::Malformed),
            (wrapped(&by, flags | SEALED, 0, &[7, 1, 0, 0]), Broken::Malformed),
            (wrapped(&by, flags, 0, &[7, 1, 0, 0])[..16].to_vec(), Broken::Malformed),
            (vec![], Broken::Malformed),
        ] {
            assert_eq!(agreed.choose(&token), Err(expected), "{token:?}");
        }
    }
}

proptest! {
    #[test]
    fn nothing_panics(any: Vec<u8>, at: usize, byte: u8) {
        let agreed = begun().proved(&proof(&key(1), 250_000, None)).expect("proved");
        prop_assert!(agreed.choose(&any).is_err());
        prop_assert!(begun().proved(&any).is_err());
        let mut damaged = wrapped(&key(1), 1, 0, &[7, 1, 0, 0]);
        let at = at % damaged.len();
        damaged[at] = byte;
        let _ = agreed.choose(&damaged);
        let mut damaged = proof(&key(1), 250_000, None);
        let at = at % damaged.len();
        damaged[at] = byte;
        let _ = begun().proved(&damaged);
    }
}
