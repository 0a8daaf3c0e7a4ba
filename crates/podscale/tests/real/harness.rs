//! Servers as processes, and triggers that are polled.

use futures::future::BoxFuture;
use podscale_api::Selector;
use podscale_scalers::{Cluster, Context, Endpoint, PodPlace, Scaler, TriggerSpec, connect, parse};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

#[path = "../support/ports.rs"]
mod ports;

/// How long something may take that takes seconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(600);
/// A password that must not be seen anywhere, and one that is wrong and must not be seen either.
pub(crate) const PLANTED: &str = "planted-secret";
pub(crate) const WRONG: &str = "planted-mistake";

/// Whether a program is there; in CI it must be.
pub(crate) fn is_installed(program: &str, package: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).any(|path| path.join(program).is_file())
        || Path::new(program).is_file();
    if !found {
        leave_out(&format!("{program} is not installed (Debian's package {package})"));
    }
    found
}

/// A file in `target` that a script provides; in CI it must be there.
pub(crate) fn provided(path: &str, script: &str) -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(path);
    if !file.is_file() {
        leave_out(&format!("there is no {path} ({script} provides it)"));
        return None;
    }
    Some(file)
}

/// Says that a test is left out, even where nobody shows what tests print that pass.
fn leave_out(reason: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{reason}");
    let _ = writeln!(std::io::stderr(), "!! LEFT OUT: {reason}");
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> u16 {
    ports::free_port().expect("a port")
}

/// A folder of its own, which goes when it is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("podscale-real-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    pub(crate) fn file(&self, name: &str, contents: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, contents).expect("written");
        path.display().to_string()
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Folder {
    /// What servers printed last, for whoever looks into a test that failed.
    fn show_logs(&self) {
        for file in std::fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let name = file.file_name().display().to_string();
            if name.starts_with("log") && file.path().is_file() {
                let text = std::fs::read(file.path()).unwrap_or_default();
                let text = String::from_utf8_lossy(&text).into_owned();
                let lines: Vec<&str> = text.lines().collect();
                eprintln!("{name}:\n{}", lines[lines.len().saturating_sub(30)..].join("\n"));
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.show_logs();
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process, which is killed with all that it started when it is dropped: some servers are started by scripts.
pub(crate) struct Process(Child);

impl Process {
    /// Starts a server; what it prints goes into a file of the folder.
    pub(crate) fn start(command: &mut Command, folder: &Folder, log: &str) -> Process {
        let log = std::fs::File::create(folder.0.join(log)).expect("a log");
        let errors = log.try_clone().expect("a log");
        let command = command.stdin(Stdio::null()).stdout(log).stderr(errors);
        Process(command.process_group(0).spawn().expect("it starts"))
    }

    /// Asks it to end, and waits until it has, as it should.
    pub(crate) fn terminate(&mut self) {
        let asked = Command::new("kill").arg(self.0.id().to_string()).status().expect("kill");
        assert!(asked.success(), "it had ended before");
        let ended = self.0.wait().expect("it ends");
        assert!(ended.success(), "it ended with {ended}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).status();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until something is so.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{what} does not come");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Waits until somebody listens.
pub(crate) async fn listens(port: u16) {
    until(&format!("port {port}"), async || TcpStream::connect(("127.0.0.1", port)).ok()).await;
}

/// A cluster with nothing in it.
struct Empty;

impl Cluster for Empty {
    fn pods<'a>(
        &'a self,
        _: &'a str,
        _: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<PodPlace>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn endpoints<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Endpoint>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// A context whose answers are never old, and whose servers may take their time.
pub(crate) fn context() -> Context {
    let mut context = Context::new(Arc::new(Empty));
    (context.freshness, context.http_timeout) = (Duration::ZERO, Duration::from_secs(20));
    context
}

/// Reads lines `name: value` into metadata, and `auth.name: value` into the authentication.
pub(crate) fn spec(kind: &str, text: &str) -> TriggerSpec {
    let mut spec = TriggerSpec { kind: kind.to_owned(), ..TriggerSpec::default() };
    for (name, value) in text.lines().filter_map(|line| line.trim().split_once(": ")) {
        match name.strip_prefix("auth.") {
            Some(name) => drop(spec.auth.insert(name.to_owned(), value.into())),
            None => drop(spec.metadata.insert(name.to_owned(), value.to_owned())),
        }
    }
    spec
}

/// A trigger that is connected.
pub(crate) fn scaler(context: &Context, spec: &TriggerSpec) -> Box<dyn Scaler> {
    let parsed = parse(spec).unwrap_or_else(|errors| panic!("{errors}"));
    connect(parsed, context).unwrap_or_else(|error| panic!("{error}"))
}

/// What a trigger gives: its value, with a mark if it is active, or why not. Nothing secret is in it.
pub(crate) async fn poll(scaler: &dyn Scaler) -> String {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    let polled = match scaler.poll(deadline).await {
        Ok(values) => {
            let [value] = &values[..] else { panic!("one value, not {values:?}") };
            format!("{}{}", value.value, if value.active { "!" } else { "" })
        }
        Err(error) => error.to_string(),
    };
    assert!(!polled.contains(PLANTED), "{polled}");
    polled
}

/// What a new trigger gives at once.
pub(crate) async fn polled(kind: &str, text: &str) -> String {
    let context = context();
    let spec = spec(kind, text);
    let parsed = parse(&spec).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(!format!("{parsed:?}").contains(PLANTED), "{parsed:?}");
    match connect(parsed, &context) {
        Ok(scaler) => poll(&*scaler).await,
        Err(error) => error.to_string(),
    }
}

/// Waits until a trigger gives something.
pub(crate) async fn gives(scaler: &dyn Scaler, expected: &str) {
    let mut last = String::new();
    let began = Instant::now();
    while last != expected {
        assert!(began.elapsed() < PATIENCE, "it gives {last}, not {expected}");
        last = poll(scaler).await;
        if last != expected {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// What proves who somebody is over HTTP, by name and password.
pub(crate) fn basic(user: &str, password: &str) -> String {
    use base64::Engine;
    let both = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    format!("Basic {both}")
}

/// A request over HTTP, with what proves who asks; gives the whole answer, or why there is none.
pub(crate) fn http(port: u16, head: &str, authorization: &str, body: &str) -> String {
    let authorization = match authorization {
        "" => String::new(),
        proof => format!("Authorization: {proof}\r\n"),
    };
    let request = format!(
        "{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n{authorization}\r\n{body}",
        body.len(),
    );
    let ask = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    };
    ask().unwrap_or_else(|error: std::io::Error| error.to_string())
}
