//! A real PostgreSQL: queries, credentials, TLS, and a restart.

use super::driven::{FOR_ONE, Server, Trigger};
use super::harness::{
    Folder, PLANTED, Process, context, free_port, gives, is_installed, listens, poll, polled,
    scaler, spec, until,
};
use super::tokens::server_of_tokens;
use podscale_scalers::{AzureIdentity, Federation, Identity, Secret};
use serde_json::json;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// PostgreSQL does not run as root; whoever runs the tests otherwise is good.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    let uid = Command::new("id").arg("-u").output().expect("id").stdout;
    String::from_utf8_lossy(&uid).trim() == "0"
}

/// A program of PostgreSQL, which Debian keeps beside the path.
fn program(name: &str) -> String {
    let versions = std::fs::read_dir("/usr/lib/postgresql");
    let found = versions.into_iter().flatten().flatten().map(|v| v.path().join("bin").join(name));
    let mut found: Vec<_> = found.filter(|path| path.is_file()).collect();
    found.sort();
    found.pop().map_or_else(|| name.to_owned(), |path| path.display().to_string())
}

fn command(name: &str) -> Command {
    let mut command = Command::new(program(name));
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn own(path: &Path) {
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).expect("owned");
    }
}

pub(crate) struct Database {
    folder: Folder,
    port: u16,
}

impl Database {
    fn new() -> Database {
        let folder = Folder::new("postgresql");
        own(&folder.0);
        let password = folder.file("password", PLANTED);
        own(Path::new(&password));
        let made = command("initdb")
            .args(["--auth=scram-sha-256", "--username=admin", "--no-sync", "--pwfile", &password])
            .args(["--pgdata", &folder.path("data")])
            .current_dir(&folder.0)
            .output()
            .expect("initdb");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let certificate =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
        for (name, contents) in [
            ("data/server.crt", certificate.cert.pem()),
            ("data/server.key", certificate.signing_key.serialize_pem()),
        ] {
            let path = folder.file(name, &contents);
            own(Path::new(&path));
            let secret = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(&path, secret).expect("permissions");
        }
        Database { folder, port: free_port() }
    }

    fn run(&self, sql: &str) -> Result<(), String> {
        let port = self.port.to_string();
        let done = Command::new(program("psql"))
            .args(["-h", "127.0.0.1", "-p", &port, "-U", "admin", "-d", "postgres"])
            .args(["-v", "ON_ERROR_STOP=1", "-c", sql])
            .env("PGPASSWORD", PLANTED)
            .output()
            .expect("psql");
        let problem = String::from_utf8_lossy(&done.stderr).into_owned();
        if done.status.success() { Ok(()) } else { Err(problem) }
    }

    fn must_run(&self, sql: &str) {
        self.run(sql).unwrap_or_else(|problem| panic!("{sql}: {problem}"));
    }
}

impl Server for Database {
    fn installed() -> Option<Database> {
        is_installed(&program("initdb"), "postgresql").then(Database::new)
    }

    fn start(&self) -> Process {
        let port = self.port.to_string();
        // Of the one that was killed.
        let _ = std::fs::remove_file(self.folder.path("data/postmaster.pid"));
        let mut command = command("postgres");
        command
            .args(["-D", &self.folder.path("data"), "-p", &port, "-k", &self.folder.path("")])
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "ssl=on", "-c", "fsync=off"])
            .current_dir(&self.folder.0);
        Process::start(&mut command, &self.folder, "log")
    }

    async fn answers(&self) {
        listens(self.port).await;
        until("the server", async || self.run("SELECT 1").ok()).await;
    }

    fn prepare(&self) {
        self.must_run("CREATE TABLE jobs (id serial, state text)");
    }

    fn triggers(&self) -> Vec<Trigger> {
        let metadata = json!({"host": "127.0.0.1", "port": self.port.to_string(),
            "userName": "admin", "dbName": "postgres", "sslmode": "disable",
            "query": "SELECT count(*) FROM jobs", "targetQueryValue": FOR_ONE});
        vec![Trigger::new("postgresql", metadata).with("password", PLANTED)]
    }

    fn send(&self, count: usize) {
        let waiting = "INSERT INTO jobs (state) SELECT 'waiting' FROM generate_series(1, ";
        self.must_run(&format!("{waiting}{count})"));
    }

    async fn drain(&self) {
        self.must_run("DELETE FROM jobs");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn queries_of_a_real_postgresql() {
    let Some(database) = Database::installed() else { return };
    let process = database.start();
    database.answers().await;
    let parts = format!(
        "host: 127.0.0.1\nport: {}\nuserName: admin\ndbName: postgres\nsslmode: disable\n\
         auth.password: {PLANTED}\ntargetQueryValue: 2",
        database.port
    );
    let context = context();
    let jobs =
        "query: SELECT count(*) FROM jobs WHERE state = 'waiting'\nactivationTargetQueryValue: 1";
    let waiting = scaler(&context, &spec("postgresql", &format!("{parts}\n{jobs}")));
    let missing = poll(&*waiting).await;
    assert!(missing.contains("relation \"jobs\" does not exist"), "{missing}");
    database.prepare();
    assert_eq!(poll(&*waiting).await, "0");
    for (sql, expected) in [
        ("INSERT INTO jobs (state) VALUES ('waiting'), ('done')", "1"),
        ("INSERT INTO jobs (state) SELECT 'waiting' FROM generate_series(1, 9)", "10!"),
        ("UPDATE jobs SET state = 'done'", "0"),
        ("INSERT INTO jobs (state) SELECT 'waiting' FROM generate_series(1, 3)", "3!"),
    ] {
        database.must_run(sql);
        assert_eq!(poll(&*waiting).await, expected, "{sql}");
    }
    answers(&parts).await;
    credentials(&database).await;
    tokens(&parts).await;
    given_up(&parts).await;

    drop(process);
    let gone = poll(&*waiting).await;
    assert!(gone.contains("cannot be reached: "), "{gone}");
    let _process = database.start();
    gives(&*waiting, "3!").await;
    assert_eq!(context.servers(), 1);
}

async fn answers(parts: &str) {
    let wrong = "error inspecting postgreSQL: could not query postgreSQL: ";
    for (query, expected) in [
        ("SELECT 1.25::numeric", "1.25!".to_owned()),
        ("SELECT 7::bigint, 'x'", "7!".to_owned()),
        ("SELECT '12'", "12!".to_owned()),
        ("SELECT 3.5::float8 UNION ALL SELECT 9", "3.5!".to_owned()),
        ("SELECT -4", "0".to_owned()),
        ("SELECT NULL::int", format!("{wrong}the first column of the first row is NULL")),
        ("SELECT 'many'", format!("{wrong}the first column of the first row is not a number")),
        ("SELECT 1 WHERE false", format!("{wrong}sql: no rows in result set")),
        ("SELECT FROM", format!("{wrong}syntax error at end of input")),
        ("SELECT 1/0", format!("{wrong}division by zero")),
        ("SELECT 1/(3-n) FROM generate_series(1,3) n", format!("{wrong}division by zero")),
    ] {
        let found = polled("postgresql", &format!("{parts}\nquery: {query}")).await;
        assert!(
            found == expected || query == "SELECT FROM" && found.starts_with(wrong),
            "{query}: {found}"
        );
    }
}

/// The password is a token, as of Azure's databases; Azure itself cannot be had here.
async fn tokens(parts: &str) {
    let server = server_of_tokens(|_, path, body| {
        assert!(body.contains("scope=https%3A%2F%2Fossrdbms-aad.database.windows.net%2F.default"));
        let token = if path.starts_with("/wrong/") { "other" } else { PLANTED };
        body.contains("client_assertion=of-web&").then(|| token.to_owned())
    })
    .await;
    let parts = parts.replace(&format!("auth.password: {PLANTED}\n"), "");
    for (tenant, token, expected) in [
        ("shop", "of-web", "5!"),
        ("wrong", "of-web", "refuses the credentials: password authentication failed"),
        ("shop", "of-other", "refuses the credentials: it answers 401: invalid_client"),
    ] {
        let mut context = context();
        let authority = server.clone();
        context.variables = Arc::new(move |name| {
            (name == "AZURE_AUTHORITY_HOST").then(|| Secret::from(authority.as_str()))
        });
        let mut trigger = spec("postgresql", &format!("{parts}\nquery: SELECT 5"));
        trigger.identity = Some(Identity::Azure(AzureIdentity {
            client: Some("web".to_owned()),
            tenant: Some(tenant.to_owned()),
            authority: None,
            account: Federation::Workload { account: "shop/web".to_owned(), token: token.into() },
        }));
        let found = poll(&*scaler(&context, &trigger)).await;
        assert!(found.contains(expected), "{tenant} {token}: {found}");
    }
}

/// A query that nobody waits for any longer is ended at the server.
async fn given_up(parts: &str) {
    let context = context();
    let active = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%'";
    let active = scaler(&context, &spec("postgresql", &format!("{parts}\nquery: {active}")));
    for mode in ["disable", "require"] {
        let parts = parts.replace("sslmode: disable", &format!("sslmode: {mode}"));
        let slow = format!("{parts}\nquery: SELECT pg_sleep(86400)");
        let slow = scaler(&context, &spec("postgresql", &slow));
        assert_eq!(poll(&*active).await, "0");
        let waits = tokio::spawn(async move {
            let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(86400);
            slow.poll(deadline).await
        });
        gives(&*active, "1!").await;
        waits.abort();
        gives(&*active, "0").await;
    }
}

async fn credentials(database: &Database) {
    let port = database.port;
    let at = |password: &str, mode: &str| {
        format!(
            "query: SELECT 5\ntargetQueryValue: 1\nauth.connection: postgresql://admin:{password}@localhost:\
             {port}/postgres?sslmode={mode}"
        )
    };
    for (password, mode, expected) in [
        (PLANTED, "disable", "5!"),
        (PLANTED, "prefer", "5!"),
        (PLANTED, "require", "5!"),
        (PLANTED, "verify-full", "cannot be reached: invalid peer certificate"),
        (PLANTED, "verify-ca", "cannot be reached: invalid peer certificate"),
        (
            "other",
            "require",
            "refuses the credentials: password authentication failed for user \"admin\"",
        ),
    ] {
        let found = polled("postgresql", &at(password, mode)).await;
        assert!(found.contains(expected), "{mode}: {found}");
    }
    let text = format!(
        "query: SELECT setting::int FROM pg_settings WHERE name = 'work_mem'\ntargetQueryValue: 1\n\
         auth.connection: host=127.0.0.1 port={port} user=admin password='{PLANTED}' dbname=postgres \
         sslmode=disable work_mem=4321"
    );
    assert_eq!(polled("postgresql", &text).await, "4321!", "parameters of the session");
}
