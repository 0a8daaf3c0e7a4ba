//! A real ActiveMQ: messages of a queue by its management over HTTP, credentials, and a restart.

use super::harness::{
    Folder, PLANTED, Process, context, free_port, gives, http, poll, polled, scaler, spec, until,
};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The distribution, which `./test` provides; in CI it must be there.
fn home() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let home = root.join("target/activemq");
    let found = home.join(".version").is_file();
    assert!(found || std::env::var("CI").as_deref() != Ok("true"), "there is no ActiveMQ");
    if !found {
        eprintln!("!! LEFT OUT: there is no ActiveMQ (e2e/activemq/build provides it)");
    }
    found.then_some(home)
}

struct Broker {
    home: PathBuf,
    folder: Folder,
    port: u16,
}

impl Broker {
    fn new(home: PathBuf) -> Broker {
        let (folder, port) = (Folder::new("activemq"), free_port());
        std::fs::create_dir_all(folder.0.join("conf")).expect("a folder");
        for file in std::fs::read_dir(home.join("conf")).expect("conf").flatten() {
            let _ = std::fs::copy(file.path(), folder.0.join("conf").join(file.file_name()));
        }
        let read =
            |name: &str| std::fs::read_to_string(home.join("conf").join(name)).expect("text");
        let jetty = read("jetty.xml").replace("\"8161\"", &format!("\"{port}\""));
        folder.file("conf/jetty.xml", &jetty);
        // Only the management is used, and nothing but the loopback is listened on.
        let config = read("activemq.xml");
        let (before, rest) = config.split_once("<transportConnectors>").expect("connectors");
        let (_, after) = rest.split_once("</transportConnectors>").expect("connectors");
        folder.file("conf/activemq.xml", &format!("{before}{after}"));
        folder.file("conf/jetty-realm.properties", &format!("admin: {PLANTED}, admin\n"));
        Broker { home, folder, port }
    }

    fn start(&self) -> Process {
        let mut command = Command::new("java");
        let folder = |name: &str| self.folder.path(name);
        command
            .args(["-Xmx256m", "-Djava.awt.headless=true"])
            .arg(format!("-Dactivemq.home={}", self.home.display()))
            .arg(format!("-Dactivemq.base={}", folder("")))
            .arg(format!("-Dactivemq.conf={}", folder("conf")))
            .arg(format!("-Dactivemq.data={}", folder("data")))
            .arg(format!("-Djava.security.auth.login.config={}", folder("conf/login.config")))
            .arg(format!("-Dactivemq.classpath={}", folder("conf")))
            .arg(format!("-Djolokia.conf=file:{}", folder("conf/jolokia-access.xml")))
            .arg(format!("-Djava.io.tmpdir={}", folder("")))
            .arg("-jar")
            .arg(self.home.join("bin/activemq.jar"))
            .args(["start"])
            .arg(format!("xbean:file:{}", folder("conf/activemq.xml")))
            .current_dir(&self.folder.0);
        Process::start(&mut command, &self.folder, "log")
    }

    fn message(&self, method: &str) -> String {
        let head = format!("{method} /api/message/orders?type=queue&oneShot=true&readTimeout=5000");
        http(
            self.port,
            &head,
            Some(("admin", PLANTED)),
            if method == "POST" { "hello" } else { "" },
        )
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn queues_of_a_real_activemq() {
    let Some(home) = home() else { return };
    let broker = Broker::new(home);
    let process = broker.start();
    let port = broker.port;
    super::harness::listens(port).await;
    until("the console", async || broker.message("POST").starts_with("HTTP/1.1 200").then_some(()))
        .await;
    // Jolokia answers pages of localhost only, as it comes.
    let text = format!(
        "managementEndpoint: localhost:{port}\nbrokerName: localhost\ndestinationName: orders\n\
         activationTargetQueueSize: 1\nauth.username: admin\nauth.password: {PLANTED}"
    );
    let context = context();
    let orders = scaler(&context, &spec("activemq", &text));
    gives(&*orders, "1").await;
    for expected in ["2!", "3!", "4!"] {
        let sent = broker.message("POST");
        assert!(sent.starts_with("HTTP/1.1 200"), "{sent}");
        gives(&*orders, expected).await;
    }
    let taken = broker.message("GET");
    assert!(taken.contains("hello"), "{taken}");
    gives(&*orders, "3!").await;
    let template = format!(
        "restAPITemplate: http://localhost:{port}/api/jolokia/read/org.apache.activemq:type=Broker,\
         brokerName=localhost,destinationType=Queue,destinationName=orders/QueueSize\n\
         auth.username: admin\nauth.password: {PLANTED}"
    );
    assert_eq!(polled("activemq", &template).await, "3!");
    let other = polled("activemq", &text.replace("orders", "others")).await;
    assert!(other.contains("response error code : 200 404: javax.management"), "{other}");
    let wrong = polled("activemq", &text.replace(PLANTED, "wrong")).await;
    assert!(wrong.contains("refuses the credentials: it answers 401"), "{wrong}");

    drop(process);
    let gone = poll(&*orders).await;
    assert!(gone.contains("cannot be reached: "), "{gone}");
    let _process = broker.start();
    super::harness::listens(port).await;
    gives(&*orders, "3!").await;
}
