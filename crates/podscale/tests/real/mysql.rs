//! A real MariaDB: queries, credentials, TLS, and a restart.

use super::driven::{FOR_ONE, Server, Trigger};
use super::harness::{
    Folder, PLANTED, Process, context, free_port, gives, is_installed, listens, poll, polled,
    scaler, spec, until,
};
use serde_json::json;
use std::process::Command;

const SERVER: &str = "/usr/sbin/mariadbd";

pub(crate) struct Database {
    folder: Folder,
    port: u16,
}

impl Database {
    fn new() -> Database {
        let folder = Folder::new("mysql");
        let made = Command::new("mariadb-install-db")
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
            .arg(format!("--datadir={}", folder.path("data")))
            .arg(format!("--user={}", user()))
            .output()
            .expect("mariadb-install-db");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let certificate =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
        folder.file("cert.pem", &certificate.cert.pem());
        folder.file("key.pem", &certificate.signing_key.serialize_pem());
        Database { folder, port: free_port() }
    }

    fn run(&self, sql: &str) -> Result<(), String> {
        let done = Command::new("mariadb")
            .args(["--no-defaults", "--user=root", "--execute", sql])
            .arg(format!("--socket={}", self.folder.path("socket")))
            .output()
            .expect("mariadb");
        let problem = String::from_utf8_lossy(&done.stderr).into_owned();
        if done.status.success() { Ok(()) } else { Err(problem) }
    }

    fn must_run(&self, sql: &str) {
        self.run(sql).unwrap_or_else(|problem| panic!("{sql}: {problem}"));
    }
}

impl Server for Database {
    fn installed() -> Option<Database> {
        is_installed(SERVER, "mariadb-server").then(Database::new)
    }

    fn start(&self) -> Process {
        let mut command = Command::new(SERVER);
        command
            .args(["--no-defaults", "--bind-address=127.0.0.1", "--skip-name-resolve"])
            .arg(format!("--user={}", user()))
            .arg(format!("--datadir={}", self.folder.path("data")))
            .arg(format!("--port={}", self.port))
            .arg(format!("--socket={}", self.folder.path("socket")))
            .arg(format!("--pid-file={}", self.folder.path("pid")))
            .arg(format!("--ssl-cert={}", self.folder.path("cert.pem")))
            .arg(format!("--ssl-key={}", self.folder.path("key.pem")));
        Process::start(&mut command, &self.folder, "log")
    }

    async fn answers(&self) {
        listens(self.port).await;
        until("the server", async || self.run("SELECT 1").ok()).await;
    }

    fn prepare(&self) {
        for sql in [
            "CREATE DATABASE shop",
            "CREATE TABLE shop.jobs (id INT AUTO_INCREMENT PRIMARY KEY, state TEXT)",
            &format!("CREATE USER 'asker'@'%' IDENTIFIED BY '{PLANTED}'"),
            "GRANT SELECT ON shop.* TO 'asker'@'%'",
        ] {
            self.must_run(sql);
        }
    }

    fn triggers(&self) -> Vec<Trigger> {
        let metadata = json!({"host": "127.0.0.1", "port": self.port.to_string(), "dbName": "shop",
            "username": "asker", "query": "SELECT count(*) FROM jobs", "queryValue": FOR_ONE});
        vec![Trigger::new("mysql", metadata).with("password", PLANTED)]
    }

    fn send(&self, count: usize) {
        for _ in 0..count {
            self.must_run("INSERT INTO shop.jobs (state) VALUES ('waiting')");
        }
    }

    async fn drain(&self) {
        self.must_run("DELETE FROM shop.jobs");
    }
}

/// Who runs the tests; MariaDB wants to be told if that is root.
fn user() -> String {
    let name = Command::new("id").arg("-un").output().expect("id").stdout;
    String::from_utf8_lossy(&name).trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn queries_of_a_real_mariadb() {
    let Some(database) = Database::installed() else { return };
    let process = database.start();
    database.answers().await;
    database.prepare();
    let port = database.port;
    let parts = format!(
        "host: 127.0.0.1\nport: {port}\nusername: asker\ndbName: shop\nauth.password: {PLANTED}\nqueryValue: 2"
    );
    let context = context();
    let jobs = "query: SELECT count(*) FROM jobs WHERE state = 'waiting'\nactivationQueryValue: 1";
    let waiting = scaler(&context, &spec("mysql", &format!("{parts}\n{jobs}")));
    assert_eq!(poll(&*waiting).await, "0");
    for (sql, expected) in [
        ("INSERT INTO shop.jobs (state) VALUES ('waiting'), ('done')", "1"),
        ("INSERT INTO shop.jobs (state) SELECT 'waiting' FROM shop.jobs", "3!"),
        ("UPDATE shop.jobs SET state = 'done'", "0"),
        ("UPDATE shop.jobs SET state = 'waiting'", "4!"),
    ] {
        database.must_run(sql);
        assert_eq!(poll(&*waiting).await, expected, "{sql}");
    }
    answers(&parts).await;
    credentials(port).await;

    drop(process);
    let gone = poll(&*waiting).await;
    assert!(gone.contains("cannot be reached: "), "{gone}");
    let _process = database.start();
    gives(&*waiting, "4!").await;
    assert_eq!(context.servers(), 1);
}

async fn answers(parts: &str) {
    let wrong = "error inspecting MySQL: ";
    for (query, expected) in [
        ("SELECT 1.25", "1.25!".to_owned()),
        ("SELECT 7, 'x'", "7!".to_owned()),
        ("SELECT '12'", "12!".to_owned()),
        ("SELECT 3 UNION ALL SELECT 9", "3!".to_owned()),
        ("SELECT -4", "0".to_owned()),
        ("SELECT NULL", format!("{wrong}the first column of the first row is NULL")),
        ("SELECT 'many'", format!("{wrong}the first column of the first row is not a number")),
        ("SELECT id FROM jobs WHERE false", format!("{wrong}sql: no rows in result set")),
        ("DO 1", format!("{wrong}sql: no rows in result set")),
        ("SELECT seq FROM seq_1_to_5000", "1!".to_owned()),
        ("SELECT 1 FROM none", format!("{wrong}Error 1146: Table 'shop.none' doesn't exist")),
    ] {
        let found = polled("mysql", &format!("{parts}\nquery: {query}")).await;
        let refused = query.contains("none") && found.contains("refuses the credentials: SELECT");
        assert!(found == expected || refused, "{query}: {found}");
    }
}

async fn credentials(port: u16) {
    for (password, tls, expected) in [
        (PLANTED, "false", "5!"),
        (PLANTED, "preferred", "5!"),
        (PLANTED, "skip-verify", "5!"),
        (PLANTED, "true", "cannot be reached: invalid peer certificate"),
        ("other", "skip-verify", "refuses the credentials: Access denied for user 'asker'"),
        ("other", "false", "refuses the credentials: Access denied for user 'asker'"),
    ] {
        let text = format!(
            "query: SELECT 5\nqueryValue: 1\nauth.connectionString: asker:{password}@tcp(localhost:{port})/shop?tls={tls}"
        );
        let found = polled("mysql", &text).await;
        assert!(found.contains(expected), "{tls}: {found}");
    }
    let text = format!(
        "query: SELECT count(*) > 0 FROM information_schema.session_status WHERE variable_name = 'Ssl_cipher' \
         AND variable_value <> ''\nqueryValue: 1\n\
         auth.connectionString: asker:{PLANTED}@tcp(localhost:{port})/shop?tls=skip-verify"
    );
    assert_eq!(polled("mysql", &text).await, "1!", "TLS is spoken");
}
