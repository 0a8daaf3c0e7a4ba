use super::*;
use ring::digest::{SHA256, digest};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

fn packets(payloads: &[&[u8]]) -> Vec<u8> {
    let packet = |(number, payload): (usize, &&[u8])| {
        let length = u8::try_from(payload.len()).expect("short");
        let number = u8::try_from(number + 1).expect("few");
        [&[length, 0, 0, number][..], *payload].concat()
    };
    payloads.iter().enumerate().flat_map(packet).collect()
}

#[tokio::test]
async fn results_are_read_to_their_end() {
    const END: &[u8] = &[0xFE, 0, 0, 2, 0];
    const COLUMN: &[u8] = b"\x03def";
    for (payloads, expected) in [
        (vec![&[1][..], COLUMN, END, b"\x0212", END], "12 true"),
        (vec![&[2][..], COLUMN, COLUMN, END, b"\x0217\xFB", b"\x012\xFB", END], "17 true"),
        (vec![&[1][..], COLUMN, END, b"\xFB", END], "NULL true"),
        (vec![&[1][..], COLUMN, END, END], "nothing true"),
        (vec![&[0, 0, 0, 2, 0, 0, 0][..]], "nothing true"),
        (vec![&b"\xFF\x7A\x04#42S02no table"[..]], "1146 no table"),
        (vec![&[1][..], COLUMN, END, b"\x0212", b"\xFF\x7A\x04#42S02late"], "1146 late"),
        (vec![&[0xFB][..]], "it asks for a file"),
        (vec![&[1][..]], "early eof"),
    ] {
        let (mut far, near) = tokio::io::duplex(1 << 12);
        far.write_all(&packets(&payloads)).await.expect("written");
        // What is asked is not read; what is answered ends.
        far.shutdown().await.expect("ended");
        let mut connection = Connection::new(Box::new(near), 0);
        let found = match ask(&mut connection, "SELECT 1").await {
            Ok(Outcome::Value(None, all)) => format!("nothing {all}"),
            Ok(Outcome::Value(Some(None), all)) => format!("NULL {all}"),
            Ok(Outcome::Value(Some(Some(value)), all)) => format!("{value} {all}"),
            Ok(Outcome::Refused(Refusal { code, text })) => format!("{code} {text}"),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    }
}

const SEED: &[u8] = b"abcdefghijklmnopqrst";
const DONE: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

async fn send(far: &mut DuplexStream, number: u8, payload: &[u8]) {
    let length = u8::try_from(payload.len()).expect("short");
    far.write_all(&[&[length, 0, 0, number], payload].concat()).await.expect("written");
}

async fn receive(far: &mut DuplexStream) -> Vec<u8> {
    let mut head = [0; 4];
    far.read_exact(&mut head).await.expect("a packet");
    let mut payload = vec![0; usize::from(head[0])];
    far.read_exact(&mut payload).await.expect("a packet");
    payload
}

/// Whether what was sent proves a password to a server that knows it hashed twice.
fn proves(sent: &[u8], password: &[u8]) -> bool {
    let sha256 = |bytes: &[u8]| digest(&SHA256, bytes).as_ref().to_vec();
    let stored = sha256(&sha256(password));
    let mask = sha256(&[&stored[..], SEED].concat());
    sent.windows(32).any(|proof| {
        let once: Vec<u8> = proof.iter().zip(&mask).map(|(a, b)| a ^ b).collect();
        sha256(&once) == stored
    })
}

/// Logs in where a server of MySQL 8 greets so, and says how it ended.
async fn log_in(
    plugin: &str,
    encrypted: bool,
    server: impl AsyncFnOnce(&mut DuplexStream),
) -> String {
    let settings =
        Settings { user: "u".to_owned(), password: "hunter2".into(), ..Settings::default() };
    let client = MySqlClient::new(settings).expect("a client");
    let (mut far, near) = tokio::io::duplex(1 << 12);
    let greeting = Greeting { capabilities: 0, seed: SEED.to_vec(), plugin: plugin.to_owned() };
    let mut connection = Connection::new(Box::new(near), 1);
    let name = "db:3306".into();
    let (ended, ()) =
        tokio::join!(client.log_in(&name, &mut connection, greeting, encrypted), server(&mut far));
    ended.map_or_else(|error| error.to_string(), |()| "in".to_owned())
}

#[tokio::test]
async fn users_that_a_server_remembers_log_in_without_tls() {
    let plugin = "caching_sha2_password";
    let remembers = async |far: &mut DuplexStream| {
        assert!(proves(&receive(far).await, b"hunter2"));
        send(far, 2, &[1, 3]).await;
        send(far, 3, DONE).await;
    };
    assert_eq!(log_in(plugin, false, remembers).await, "in");
    // A server of another default asks for this way.
    let switches = async |far: &mut DuplexStream| {
        assert!(!proves(&receive(far).await, b"hunter2"));
        let other = [b"\xFEcaching_sha2_password\0", SEED, b"\0"].concat();
        send(far, 2, &other).await;
        assert!(proves(&receive(far).await, b"hunter2"));
        send(far, 4, &[1, 3]).await;
        send(far, 5, DONE).await;
    };
    assert_eq!(log_in("mysql_native_password", false, switches).await, "in");
}

#[tokio::test]
async fn passwords_are_shown_over_tls_only_and_errors_say_so() {
    let plugin = "caching_sha2_password";
    let forgets = async |far: &mut DuplexStream| {
        receive(far).await;
        send(far, 2, &[1, 4]).await;
    };
    let refused = log_in(plugin, false, forgets).await;
    assert_eq!(refused, format!("db:3306 refuses the credentials: {NEEDS_TLS}"));
    assert!(refused.contains("caching_sha2_password") && refused.contains("set tls to true"));
    let over_tls = async |far: &mut DuplexStream| {
        receive(far).await;
        send(far, 2, &[1, 4]).await;
        assert_eq!(receive(far).await, b"hunter2\0");
        send(far, 4, DONE).await;
    };
    assert_eq!(log_in(plugin, true, over_tls).await, "in");
}
