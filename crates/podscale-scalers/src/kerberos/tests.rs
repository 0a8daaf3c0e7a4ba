//! A KDC that says what it is to say: what becomes of answers, and which tickets are kept. Real KDCs are in the tests of
//! the program.

use super::*;
use crate::metadata::Fields;
use crate::secret::Secret;
use crate::trigger::TriggerSpec;
use der::{application, integer, sequence, value};
use parking_lot::Mutex as Lock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers every request with the next of some answers, and counts them.
async fn kdc(answers: Vec<Vec<u8>>) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    tokio::spawn(async move {
        let answers = Lock::new(answers.into_iter().cycle());
        while let Ok((mut stream, _)) = listener.accept().await {
            let length = stream.read_u32().await.expect("a length");
            let mut request = vec![0; length as usize];
            stream.read_exact(&mut request).await.expect("a request");
            count.fetch_add(1, Ordering::Relaxed);
            let answer = answers.lock().next().expect("an answer");
            let _ = stream.write_all(&answer).await;
        }
    });
    (port, asked)
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32).to_be_bytes()[..], message].concat()
}

fn refusal(code: i64) -> Vec<u8> {
    let fields = [(0, integer(5)), (1, integer(30)), (6, integer(code))];
    framed(&value(application(30), &sequence(&fields)))
}

fn account(changes: &[(&str, &str)], ports: &[u16]) -> Result<Account, String> {
    let kdcs: String = ports.iter().map(|port| format!("kdc = 127.0.0.1:{port}\n")).collect();
    let config = format!("[realms]\nSHOP.TEST = {{\n{kdcs}}}\n");
    let mut spec = TriggerSpec::default();
    let usual = [("realm", "SHOP.TEST"), ("kerberosConfig", &config)];
    for (name, value) in usual.iter().chain(changes) {
        spec.auth.insert((*name).to_owned(), Secret::from(*value));
    }
    let mut fields = Fields::new(&spec);
    let user = fields.field(&["username"], crate::metadata::AUTH).secret();
    let password = fields.field(&["password"], crate::metadata::AUTH).secret();
    let account = Account::read(&mut fields, user, password);
    fields.finish("", "").map_err(|errors| errors.to_string())?;
    Ok(account.expect("an account"))
}

const ASKER: &[(&str, &str)] = &[("username", "asker"), ("password", "hunter2")];

fn kerberos(ports: &[u16]) -> Kerberos {
    Kerberos::new(account(ASKER, ports).expect("an account"), Arc::new(Timestamp::now))
}

async fn problem(kerberos: &Kerberos) -> String {
    let problem = kerberos.begin("kafka", "broker").await.err().expect("no ticket").to_string();
    assert!(!problem.contains("hunter2"), "{problem}");
    problem
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    for (code, expected) in [
        (6, "it knows no principal asker@SHOP.TEST: check username and realm"),
        (18, "asker@SHOP.TEST is locked, disabled or expired"),
        (23, "the password of asker@SHOP.TEST has expired: set another"),
        (24, "the password of asker@SHOP.TEST is wrong"),
        (37, "its clock differs too much from the controller's: synchronize both"),
        (14, "it has no AES keys for this: give the principals some"),
        (60, "error 60 of Kerberos"),
    ] {
        let (port, _) = kdc(vec![refusal(PROOF_NEEDED), refusal(code)]).await;
        let expected = format!("the KDC of SHOP.TEST refuses the credentials: {expected}");
        assert_eq!(problem(&kerberos(&[port])).await, expected);
    }
}

#[tokio::test]
async fn answers_that_are_none_are_named() {
    for (answer, expected) in [
        (vec![0xff, 0xff, 0xff, 0xff], "not Kerberos, or too much"),
        (framed(b"HTTP/1.1 400 Bad Request"), "answers something that is not Kerberos"),
        (framed(b""), "answers something that is not Kerberos"),
        (vec![0, 0], "cannot be reached: "),
    ] {
        let (port, _) = kdc(vec![answer]).await;
        let found = problem(&kerberos(&[port])).await;
        assert!(found.starts_with(&format!("KDC 127.0.0.1:{port} ")), "{found}");
        assert!(found.contains(expected), "{found}");
    }
}

#[tokio::test]
async fn other_kdcs_are_asked_and_refusals_are_believed_for_a_while() {
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let silent = gone.local_addr().expect("an address").port();
    let (port, asked) = kdc(vec![refusal(UNKNOWN_CLIENT)]).await;
    let kerberos = kerberos(&[silent, port]);
    let began = std::time::Instant::now();
    assert!(problem(&kerberos).await.contains("it knows no principal"));
    assert!(began.elapsed() >= BESIDE_OTHERS, "the first one was waited for");
    assert!(problem(&kerberos).await.contains("it knows no principal"));
    assert_eq!(asked.load(Ordering::Relaxed), 1, "accounts are not locked by many triggers");
    kerberos.forget().await;
    let began = std::time::Instant::now();
    assert!(problem(&kerberos).await.contains("it knows no principal"));
    assert!(began.elapsed() < BESIDE_OTHERS, "the one that answers is asked first");
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[test]
fn parameters_are_checked() {
    let one_of = "exactly one of 'password', 'keytab' or 'ccacheName' must be provided for GSSAPI authentication";
    for (changes, expected) in [
        (&[][..], "no username given"),
        (&[("username", "a")], one_of),
        (&[("username", "a"), ("password", "p"), ("keytab", "k")], one_of),
        (&[("username", "a"), ("ccacheName", "c")], "ccacheName is not supported"),
        (&[("username", "a"), ("password", "p"), ("realm", "")], "no realm given"),
        (
            &[("username", "a"), ("password", "p"), ("kerberosConfig", "")],
            "no Kerberos configuration file (kerberosConfig) given",
        ),
        (
            &[("username", "a"), ("password", "p"), ("kerberosConfig", "kdc")],
            "kerberosConfig is no krb5.conf: line 1: it is not name = value",
        ),
        (
            &[("username", "a"), ("password", "p"), ("realm", "OTHER")],
            "kerberosConfig has no KDC of realm \"OTHER\"",
        ),
        (&[("username", "a"), ("keytab", "%")], "keytab is not base64"),
        (&[("username", "a"), ("keytab", "AAAA")], "keytab is no keytab of version 0x502"),
        (
            &[("username", "a"), ("password", "p"), ("kerberosDisableFAST", "perhaps")],
            "kerberosDisableFAST",
        ),
    ] {
        let found = account(changes, &[1]).err().unwrap_or_default();
        assert!(found.contains(expected), "{changes:?}: {found}");
    }
    let mut known =
        account(&[("username", "a/b@SHOP.TEST"), ("password", "hunter2")], &[1]).expect("one");
    assert_eq!(known.client.to_string(), "a/b@SHOP.TEST");
    assert!(!format!("{known:?}").contains("hunter2"));
    let keytab = [&[5, 2][..], &keytab::tests::written("a", 17, 1, &[7; 16])].concat();
    let keytab = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, keytab);
    known = account(&[("username", "a"), ("keytab", &keytab)], &[1]).expect("one");
    assert_eq!(known.etypes(), [Etype::Aes128Sha1]);
    assert!(!format!("{known:?}").contains("7, 7"), "{known:?}");
}
