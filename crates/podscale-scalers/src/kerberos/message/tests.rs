use super::*;
use proptest::prelude::*;

fn now() -> Timestamp {
    "2026-11-18T06:00:00.25Z".parse().expect("a time")
}

fn client() -> Client {
    Client { name: Principal::user("asker"), realm: "SHOP.TEST".to_owned() }
}

fn key(byte: u8) -> Key {
    Key::new(Etype::Aes256Sha1, &[byte; 32]).expect("a key")
}

/// An answer of a KDC, with a ticket for somebody.
pub(in super::super) fn given(
    kind: u8,
    by: &Key,
    nonce: u32,
    service: &Principal,
    name: &str,
) -> Vec<u8> {
    let session = sequence(&[(0, integer(18)), (1, octets(&[9; 32]))]);
    let ends = "2026-11-18T16:00:00Z".parse().expect("a time");
    let part = sequence(&[
        (0, session),
        (1, list([])),
        (2, integer(i64::from(nonce))),
        (4, flags(0)),
        (5, time(now())),
        (7, time(ends)),
        (9, text("SHOP.TEST")),
        (10, service.write()),
    ]);
    let usage = if kind == AS { USE_AS_ANSWER } else { USE_TGS_ANSWER };
    let part = encrypted(by, usage, &[1; 16], &value(application(25), &part));
    let fields = [
        (0, integer(VERSION)),
        (1, integer(i64::from(kind) + 1)),
        (3, text("SHOP.TEST")),
        (4, Principal::user(name).write()),
        (5, value(application(1), b"sealed")),
        (6, part),
    ];
    value(application(kind + 1), &sequence(&fields))
}

#[test]
fn tickets_are_those_that_were_asked_for() {
    let (client, service) = (client(), Principal::granting("SHOP.TEST"));
    let request = Request {
        client: &client,
        realm: "SHOP.TEST",
        service: &service,
        etypes: &Etype::ALL,
        now: now(),
        nonce: 7,
    };
    let found = |bytes: &[u8], by: &Key| {
        let answer = answer(bytes).expect("Kerberos").expect("no refusal");
        request.first_ticket(&answer, by)
    };
    let ticket = found(&given(AS, &key(1), 7, &service, "asker"), &key(1)).expect("a ticket");
    assert_eq!(ticket.bytes, value(application(1), b"sealed"));
    assert_eq!(ticket.key, key(9));
    assert_eq!(ticket.ends.to_string(), "2026-11-18T16:00:00Z");
    for (bytes, by, expected) in [
        (given(AS, &key(1), 7, &service, "asker"), key(2), Unusable::Key),
        (given(AS, &key(1), 8, &service, "asker"), key(1), Unusable::Malformed),
        (given(AS, &key(1), 7, &service, "other"), key(1), Unusable::Malformed),
        (
            given(AS, &key(1), 7, &Principal::service("a", "b"), "asker"),
            key(1),
            Unusable::Malformed,
        ),
        (given(TGS, &key(1), 7, &service, "asker"), key(1), Unusable::Key),
        (
            given(AS, &Key::new(Etype::Aes128Sha1, &[1; 16]).expect("a key"), 7, &service, "asker"),
            key(1),
            Unusable::Etype(17),
        ),
    ] {
        assert_eq!(found(&bytes, &by).expect_err("none"), expected);
    }
}

#[test]
fn refusals_say_why_and_how_passwords_become_keys() {
    let info = list([
        sequence(&[(0, integer(18)), (1, text("SALT")), (2, octets(&[0, 0, 16, 0]))]),
        sequence(&[(0, integer(23))]),
    ]);
    let data = list([
        sequence(&[(1, integer(2)), (2, octets(b""))]),
        sequence(&[(1, integer(19)), (2, octets(&info))]),
    ]);
    let refused = |data: Vec<u8>| {
        let fields = [
            (0, integer(VERSION)),
            (1, integer(30)),
            (4, time(now())),
            (5, integer(0)),
            (6, integer(25)),
            (9, text("SHOP.TEST")),
            (11, text("NEEDED\n_PREAUTH")),
            (12, octets(&data)),
        ];
        let bytes = value(application(30), &sequence(&fields));
        answer(&bytes).expect("Kerberos").expect_err("a refusal")
    };
    let refusal = refused(data);
    assert_eq!((refusal.code, refusal.text.as_str()), (25, "NEEDED_PREAUTH"));
    let first =
        Hint { etype: 18, salt: Some(b"SALT".to_vec()), parameters: Some(vec![0, 0, 16, 0]) };
    let second = Hint { etype: 23, salt: None, parameters: None };
    assert_eq!(refusal.hints, [first, second]);
    assert_eq!(refused(b"something else".to_vec()).hints, []);
}

proptest! {
    #[test]
    fn nothing_panics(any: Vec<u8>, at: usize, byte: u8) {
        let _ = answer(&any);
        let mut damaged = given(AS, &key(1), 7, &Principal::granting("SHOP.TEST"), "asker");
        let at = at % damaged.len();
        damaged[at] = byte;
        if let Ok(Ok(answer)) = answer(&damaged) {
            let _ = granted(&answer, &any);
        }
    }
}
