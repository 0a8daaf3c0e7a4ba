//! A real ActiveMQ: messages of a queue by its management over HTTP, credentials, and a restart.

use super::driven::{FOR_ONE, Server, Trigger};
use super::harness::{
    Folder, PLANTED, Process, basic, context, free_port, gives, http, listens, poll, polled,
    provided, scaler, spec, until,
};
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;

pub(crate) struct Broker {
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

    fn message(&self, method: &str) -> String {
        let head = format!("{method} /api/message/orders?type=queue&oneShot=true&readTimeout=2000");
        let body = if method == "POST" { "hello" } else { "" };
        http(self.port, &head, &basic("admin", PLANTED), body)
    }
}

impl Server for Broker {
    fn installed() -> Option<Broker> {
        let version = provided("activemq/.version", "e2e/activemq/build")?;
        Some(Broker::new(version.parent()?.to_owned()))
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

    async fn answers(&self) {
        listens(self.port).await;
        until("the console", async || {
            let answer = http(self.port, "GET /api/jolokia", &basic("admin", PLANTED), "");
            answer.starts_with("HTTP/1.1 200").then_some(())
        })
        .await;
    }

    /// A queue is there once something was sent to it.
    fn prepare(&self) {
        self.send(1);
        let taken = self.message("GET");
        assert!(taken.contains("hello"), "{taken}");
    }

    fn triggers(&self) -> Vec<Trigger> {
        // Jolokia answers pages of localhost only, as it comes.
        let endpoint = format!("localhost:{}", self.port);
        let metadata = json!({"managementEndpoint": endpoint, "brokerName": "localhost",
            "destinationName": "orders", "targetQueueSize": FOR_ONE});
        let trigger = Trigger::new("activemq", metadata);
        vec![trigger.with("username", "admin").with("password", PLANTED)]
    }

    fn send(&self, count: usize) {
        for _ in 0..count {
            let sent = self.message("POST");
            assert!(sent.starts_with("HTTP/1.1 200"), "{sent}");
        }
    }

    async fn drain(&self) {
        while self.message("GET").starts_with("HTTP/1.1 200") {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn queues_of_a_real_activemq() {
    let Some(broker) = Broker::installed() else { return };
    let process = broker.start();
    let port = broker.port;
    broker.answers().await;
    broker.send(1);
    let text = format!(
        "managementEndpoint: localhost:{port}\nbrokerName: localhost\ndestinationName: orders\n\
         activationTargetQueueSize: 1\nauth.username: admin\nauth.password: {PLANTED}"
    );
    let context = context();
    let orders = scaler(&context, &spec("activemq", &text));
    gives(&*orders, "1").await;
    for expected in ["2!", "3!", "4!"] {
        broker.send(1);
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
    gives(&*orders, "3!").await;
}
