//! One Redis: lists and other kinds, streams, credentials, TLS, and a restart.

use super::certificates::Authority;
use super::driven::{FOR_ONE, Server, Trigger};
use super::harness::{
    Folder, PLANTED, Process, context, free_port, gives, is_installed, listens, poll, polled,
    scaler, spec, until,
};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

/// Sends a command as a person would, and gives the first line of the reply.
pub(crate) fn redis(port: u16, password: &str, command: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    if !password.is_empty() {
        write!(stream, "AUTH {password}\r\n").expect("written");
    }
    write!(stream, "{command}\r\n").expect("written");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    for _ in 0..=usize::from(!password.is_empty()) {
        line.clear();
        reader.read_line(&mut line).expect("a reply");
    }
    line.trim_end().to_owned()
}

pub(crate) fn start(folder: &Folder, port: u16, more: &[&str]) -> Process {
    let port = port.to_string();
    let mut command = Command::new("redis-server");
    command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--dir", &folder.path("")]);
    Process::start(command.args(more), folder, &format!("log-{port}"))
}

/// One that wants a password and keeps what it is told.
pub(crate) struct Redis {
    folder: Folder,
    port: u16,
}

impl Redis {
    fn ask(&self, command: &str) -> String {
        let reply = redis(self.port, PLANTED, command);
        assert!(!reply.starts_with('-'), "{command}: {reply}");
        reply
    }
}

impl Server for Redis {
    fn installed() -> Option<Redis> {
        let (folder, port) = (Folder::new("redis"), free_port());
        is_installed("redis-server", "redis-server").then_some(Redis { folder, port })
    }

    fn start(&self) -> Process {
        let keep = ["--requirepass", PLANTED, "--appendonly", "yes", "--appendfsync", "always"];
        start(&self.folder, self.port, &keep)
    }

    async fn answers(&self) {
        listens(self.port).await;
        until("what it kept", async || {
            (redis(self.port, PLANTED, "PING") == "+PONG").then_some(())
        })
        .await;
    }

    fn prepare(&self) {}

    fn triggers(&self) -> Vec<Trigger> {
        let address = format!("127.0.0.1:{}", self.port);
        let list = json!({"address": address, "listName": "jobs", "listLength": FOR_ONE});
        let stream = json!({"address": address, "stream": "events", "streamLength": FOR_ONE});
        vec![
            Trigger::new("redis", list).with("password", PLANTED),
            Trigger::new("redis-streams", stream).with("password", PLANTED),
        ]
    }

    fn send(&self, count: usize) {
        for _ in 0..count {
            self.ask("LPUSH jobs job");
            self.ask("XADD events * job 1");
        }
    }

    async fn drain(&self) {
        self.ask("DEL jobs events");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn lists_and_streams_of_a_real_redis() {
    let Some(server) = Redis::installed() else { return };
    let port = server.port;
    let process = server.start();
    server.answers().await;
    let ask = |command: &str| redis(port, PLANTED, command);
    let at = format!("address: 127.0.0.1:{port}\nauth.password: {PLANTED}");

    let context = context();
    let list =
        scaler(&context, &spec("redis", &format!("{at}\nlistName: jobs\nactivationListLength: 1")));
    assert_eq!(poll(&*list).await, "0", "nothing is there");
    for (command, expected) in [
        ("LPUSH jobs a", "1"),
        ("LPUSH jobs b", "2!"),
        ("LPUSH jobs c d e f", "6!"),
        ("DEL jobs", "0"),
        ("SADD jobs a b c", "3!"),
        ("DEL jobs", "0"),
        ("ZADD jobs 1 a 2 b", "2!"),
        ("DEL jobs", "0"),
        ("HSET jobs a 1 b 2 c 3 d 4", "4!"),
        ("DEL jobs", "0"),
        ("SET jobs x", "ERR unsupported key type: string"),
        ("DEL jobs", "0"),
        ("LPUSH jobs a b", "2!"),
    ] {
        assert!(!ask(command).starts_with('-'), "{command}");
        assert_eq!(poll(&*list).await, expected, "{command}");
    }
    let other = format!("{at}\nlistName: jobs\ndatabaseIndex: 3");
    assert_eq!(polled("redis", &other).await, "0", "another database");
    streams(&at, &ask).await;
    credentials(port, &ask).await;

    drop(process);
    let gone = poll(&*list).await;
    assert!(gone.contains("cannot be reached: "), "{gone}");
    let open = poll(&*list).await;
    assert_eq!(open, gone, "it is left alone, and says why");
    let _process = server.start();
    gives(&*list, "2!").await;
    assert_eq!(context.servers(), 1, "one server for all triggers");
}

async fn streams(at: &str, ask: &impl Fn(&str) -> String) {
    let stream = |more: &str| format!("{at}\nstream: events\n{more}");
    let (length, pending) = (stream(""), stream("consumerGroup: g"));
    let lag = stream("consumerGroup: g\nlagCount: 5\nactivationLagCount: 1");
    assert_eq!(polled("redis-streams", &lag).await, "0", "there is no stream");
    let refused = polled("redis-streams", &pending).await;
    assert!(refused.contains("NOGROUP"), "{refused}");
    for n in 0..4 {
        ask(&format!("XADD events * n {n}"));
    }
    assert_eq!(polled("redis-streams", &length).await, "4!");
    assert_eq!(polled("redis-streams", &lag).await, "4!", "there is no group: all entries wait");
    ask("XGROUP CREATE events g 0");
    ask("XREADGROUP GROUP g me COUNT 3 STREAMS events >");
    assert_eq!(polled("redis-streams", &pending).await, "3!");
    assert_eq!(polled("redis-streams", &lag).await, "1");
    // With an entry deleted that was not read, Redis knows no lag; zero would be wrong.
    let last = "XADD events 9999999999999-1 n 9";
    ask(last);
    ask("XADD events 9999999999999-2 n 9");
    ask("XDEL events 9999999999999-1");
    let unknown = polled("redis-streams", &lag).await;
    assert!(unknown.starts_with("Redis cannot tell the lag"), "{unknown}");
}

async fn credentials(port: u16, ask: &impl Fn(&str) -> String) {
    assert_eq!(ask("ACL SETUSER reader on >reads ~jobs +type +llen"), "+OK");
    let at = format!("address: 127.0.0.1:{port}\nlistName: jobs");
    for (more, expected) in [
        (
            format!("auth.username: reader\nauth.password: {PLANTED}x"),
            "refuses the credentials: WRONGPASS",
        ),
        ("auth.password: other".to_owned(), "refuses the credentials: WRONGPASS"),
        (String::new(), "refuses the credentials: NOAUTH"),
        ("auth.username: reader\nauth.password: reads".to_owned(), "2!"),
    ] {
        let found = polled("redis", &format!("{at}\n{more}")).await;
        let found = found.strip_prefix(&format!("127.0.0.1:{port} ")).unwrap_or(&found).to_owned();
        assert!(found.starts_with(expected), "{more}: {found}");
    }
    let reader = "auth.username: reader\nauth.password: reads";
    let other = format!("address: 127.0.0.1:{port}\nlistName: others\n{reader}");
    let found = polled("redis", &other).await;
    assert!(found.contains("refuses the credentials: NOPERM"), "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn tls_of_a_real_redis() {
    if !is_installed("redis-server", "redis-server") {
        return;
    }
    let (folder, port) = (Folder::new("redis-tls"), free_port());
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    let certificate = made.cert.pem();
    let cert = folder.file("cert.pem", &certificate);
    let key = folder.file("key.pem", &made.signing_key.serialize_pem());
    let port_text = port.to_string();
    let tls = [
        "--tls-port",
        &port_text,
        "--tls-cert-file",
        &cert,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &cert,
        "--tls-auth-clients",
        "no",
    ];
    let mut command = Command::new("redis-server");
    command.args(["--port", "0", "--bind", "127.0.0.1", "--save", ""]).args(tls);
    let _process = Process::start(&mut command, &folder, "log");
    listens(port).await;
    let context = context();
    let trigger = |host: &str, more: &str, ca: bool| {
        let mut spec = spec("redis", &format!("listName: jobs\naddress: {host}:{port}\n{more}"));
        if ca {
            spec.auth.insert("ca".to_owned(), certificate.as_str().into());
        }
        scaler(&context, &spec)
    };
    for (host, more, ca, expected) in [
        ("localhost", "enableTLS: true", true, "0"),
        ("127.0.0.1", "enableTLS: true\nunsafeSsl: true", false, "0"),
        ("localhost", "enableTLS: true", false, "cannot be reached: invalid peer certificate: "),
        ("127.0.0.1", "enableTLS: true", true, "cannot be reached: invalid peer certificate: "),
        ("localhost", "", false, "cannot be reached: "),
    ] {
        let found = poll(&*trigger(host, more, ca)).await;
        assert!(found.contains(expected), "{host} {more} {ca}: {found}");
    }
}

/// A key as OpenSSL encrypts it.
fn encrypted(folder: &Folder, key: &str, how: &[&str]) -> String {
    let plain = folder.file("plain.pem", key);
    let mut command = Command::new("openssl");
    command.args(["pkcs8", "-topk8", "-in", &plain, "-passout", &format!("pass:{PLANTED}")]);
    let done = command.args(how).output().expect("openssl");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("PEM")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn encrypted_keys_of_clients_of_a_real_redis() {
    if !is_installed("redis-server", "redis-server") || !is_installed("openssl", "openssl") {
        return;
    }
    let (folder, port, authority) = (Folder::new("redis-keys"), free_port(), Authority::new());
    let (certificate, key) = authority.sign("localhost");
    let files = [("cert", &certificate), ("key", &key), ("ca", &authority.pem().to_owned())];
    let [cert, key, ca] = files.map(|(name, pem)| folder.file(name, pem));
    let port_text = port.to_string();
    let mut command = Command::new("redis-server");
    command.args(["--port", "0", "--bind", "127.0.0.1", "--save", "", "--tls-port", &port_text]);
    command.args(["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-ca-cert-file", &ca]);
    let _process = Process::start(command.args(["--tls-auth-clients", "yes"]), &folder, "log-keys");
    listens(port).await;
    let (certificate, key) = authority.sign("client");
    let scrypt = encrypted(&folder, &key, &["-scrypt"]);
    let pbkdf2 = encrypted(&folder, &key, &["-v2", "aes-256-cbc", "-iter", "600000"]);
    for (key, password, expected) in [
        (&key, None, "0"),
        (&scrypt, Some(PLANTED), "0"),
        (&pbkdf2, Some(PLANTED), "0"),
        (&pbkdf2, Some("other"), "keyPassword is not its password"),
        (&pbkdf2, None, "it is encrypted: give keyPassword"),
    ] {
        let text = format!("listName: jobs\naddress: localhost:{port}\nenableTLS: true");
        let mut spec = spec("redis", &text);
        let mut give = |name: &str, value: &str| spec.auth.insert(name.to_owned(), value.into());
        give("ca", authority.pem());
        give("cert", &certificate);
        give("key", key);
        password.map(|password| give("keyPassword", password));
        let parsed = podscale_scalers::parse(&spec).unwrap_or_else(|errors| panic!("{errors}"));
        let began = std::time::Instant::now();
        let found = match podscale_scalers::connect(parsed, &context()) {
            Ok(scaler) => poll(&*scaler).await,
            Err(error) => error.to_string(),
        };
        println!("{password:?}: {found} after {:?}", began.elapsed());
        assert!(found.contains(expected), "{password:?}: {found}");
    }
}
