//! A real Kafka: lag of a consumer group, users, and a restart.

use super::driven::{FOR_ONE, Server, Trigger};
use super::harness::{
    Folder, PLANTED, Process, basic, context, free_port, gives, listens, poll, polled, provided,
    scaler, spec,
};
use super::tokens::server_of_tokens;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub(crate) struct Broker {
    jars: PathBuf,
    folder: Folder,
    config: String,
    port: u16,
    /// Where it wants to know who asks.
    guarded: u16,
    /// Of the virtual machine.
    option: Option<String>,
}

impl Broker {
    /// One that trusts a KDC besides, with the properties and the option that it needs for that.
    pub(crate) fn with_kerberos(properties: &str, option: &str) -> Option<Broker> {
        let version = provided("kafka/.version", "e2e/jars/build")?;
        Some(Broker::new(version.with_file_name("*"), ",GSSAPI", properties, Some(option)))
    }

    /// Where it wants to know who asks.
    pub(crate) fn guarded(&self) -> u16 {
        self.guarded
    }

    fn new(jars: PathBuf, mechanisms: &str, properties: &str, option: Option<&str>) -> Broker {
        let (folder, port, guarded) = (Folder::new("kafka"), free_port(), free_port());
        let controller = free_port();
        let users = format!("required user_asker=\"{PLANTED}\";");
        let config = folder.file(
            "server.properties",
            &format!(
                "process.roles=broker,controller\nnode.id=1\n\
                 controller.quorum.voters=1@127.0.0.1:{controller}\ncontroller.listener.names=CONTROLLER\n\
                 listeners=OPEN://127.0.0.1:{port},GUARDED://127.0.0.1:{guarded},CONTROLLER://127.0.0.1:{controller}\n\
                 advertised.listeners=OPEN://127.0.0.1:{port},GUARDED://127.0.0.1:{guarded}\n\
                 listener.security.protocol.map=OPEN:PLAINTEXT,GUARDED:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT\n\
                 inter.broker.listener.name=OPEN\n\
                 sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER{mechanisms}\n{properties}\
                 listener.name.guarded.oauthbearer.sasl.jaas.config=\
                 org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required \
                 unsecuredLoginStringClaim_sub=\"broker\";\n\
                 listener.name.guarded.plain.sasl.jaas.config=\
                 org.apache.kafka.common.security.plain.PlainLoginModule {users}\n\
                 listener.name.guarded.scram-sha-256.sasl.jaas.config=\
                 org.apache.kafka.common.security.scram.ScramLoginModule required;\n\
                 listener.name.guarded.scram-sha-512.sasl.jaas.config=\
                 org.apache.kafka.common.security.scram.ScramLoginModule required;\n\
                 log.dirs={}\noffsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n\
                 transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n\
                 group.initial.rebalance.delay.ms=0\nauto.create.topics.enable=false\n",
                folder.path("data")
            ),
        );
        let option = option.map(str::to_owned);
        let broker = Broker { jars, folder, config, port, guarded, option };
        let user = |hash: &str| format!("SCRAM-SHA-{hash}=[name=asker,password={PLANTED}]");
        let format =
            ["format", "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg", "--config", &broker.config];
        let users = ["--add-scram", &user("256"), "--add-scram", &user("512")];
        broker.run("kafka.tools.StorageTool", &[&format[..], &users].concat(), "");
        broker
    }

    fn java(&self, class: &str) -> Command {
        let mut command = Command::new("java");
        command.arg("-Xmx256m").args(&self.option).arg("-cp").arg(&self.jars).arg(class);
        command
    }

    fn run(&self, class: &str, arguments: &[&str], input: &str) {
        let mut command = self.java(class);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("java");
        let mut stdin = child.stdin.take().expect("an input");
        stdin.write_all(input.as_bytes()).expect("written");
        drop(stdin);
        let done = child.wait_with_output().expect("java");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        let problem = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{class} {arguments:?}: {said}{problem}");
    }

    fn tool(&self, class: &str, arguments: &[&str], input: &str) {
        let server = format!("127.0.0.1:{}", self.port);
        let server = ["--bootstrap-server", &server];
        let class = format!("org.apache.kafka.tools.{class}");
        self.run(&class, &[&server[..], arguments].concat(), input);
    }

    /// Commits offsets, as consumers do.
    fn commit(&self, to: &str) {
        let group = ["--group", "workers", "--topic", "orders"];
        let reset = ["--reset-offsets", to, "--execute"];
        let class = "consumer.group.ConsumerGroupCommand";
        self.tool(class, &[&group[..], &reset].concat(), "");
    }
}

impl Server for Broker {
    fn installed() -> Option<Broker> {
        let version = provided("kafka/.version", "e2e/jars/build")?;
        Some(Broker::new(version.with_file_name("*"), "", "", None))
    }

    fn start(&self) -> Process {
        let mut command = self.java("kafka.Kafka");
        Process::start(command.arg(&self.config), &self.folder, "log")
    }

    async fn answers(&self) {
        listens(self.port).await;
    }

    fn prepare(&self) {
        self.tool("TopicCommand", &["--create", "--topic", "orders", "--partitions", "2"], "");
        self.commit("--to-earliest");
    }

    fn triggers(&self) -> Vec<Trigger> {
        let servers = format!("127.0.0.1:{}", self.guarded);
        let metadata = json!({"bootstrapServers": servers, "consumerGroup": "workers", "topic": "orders",
            "lagThreshold": FOR_ONE, "allowIdleConsumers": "true", "sasl": "scram_sha512"});
        vec![Trigger::new("kafka", metadata).with("username", "asker").with("password", PLANTED)]
    }

    fn send(&self, count: usize) {
        if count > 0 {
            self.tool("ConsoleProducer", &["--topic", "orders"], &"order\n".repeat(count));
        }
    }

    async fn drain(&self) {
        self.commit("--to-latest");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn groups_of_a_real_kafka() {
    let Some(broker) = Broker::installed() else { return };
    let process = broker.start();
    broker.answers().await;
    broker.tool("TopicCommand", &["--create", "--topic", "orders", "--partitions", "2"], "");
    let text = format!(
        "bootstrapServers: 127.0.0.1:1,127.0.0.1:{}\nconsumerGroup: workers\ntopic: orders\n\
         activationLagThreshold: 1",
        broker.port
    );
    let context = context();
    let orders = scaler(&context, &spec("kafka", &text));
    // Nothing is committed: one consumer for each partition begins.
    gives(&*orders, "2!").await;
    let earliest = format!("{text}\noffsetResetPolicy: earliest");
    assert_eq!(polled("kafka", &earliest).await, "0");
    broker.commit("--to-earliest");
    gives(&*orders, "0").await;
    broker.send(5);
    gives(&*orders, "5!").await;
    broker.commit("--to-latest");
    gives(&*orders, "0").await;
    broker.send(100);
    gives(&*orders, "20!").await;
    let all_topics = text.replace("\ntopic: orders", "");
    for (text, expected) in [
        (format!("{text}\nallowIdleConsumers: true"), "100!"),
        (all_topics, "20!"),
        (format!("{text}\npartitionLimitation: 7-9"), "0"),
        (format!("{text}\nlagThreshold: 60"), "100!"),
    ] {
        assert_eq!(polled("kafka", &text).await, expected, "{text}");
    }
    let none = polled("kafka", &text.replace("topic: orders", "topic: none")).await;
    assert!(none.contains("error describing topics: UNKNOWN_TOPIC_OR_PARTITION"), "{none}");
    users(&text, broker.port, broker.guarded).await;
    tokens(&text.replace(&broker.port.to_string(), &broker.guarded.to_string())).await;

    drop(process);
    let gone = poll(&*orders).await;
    assert!(gone.contains("cannot be reached: "), "{gone}");
    let _process = broker.start();
    gives(&*orders, "20!").await;
    broker.commit("--to-latest");
    gives(&*orders, "0").await;
}

async fn users(text: &str, port: u16, guarded: u16) {
    let text = text.replace(&port.to_string(), &guarded.to_string());
    for mode in ["plaintext", "scram_sha256", "scram_sha512"] {
        let known = format!("{text}\nsasl: {mode}\nauth.username: asker\nauth.password: {PLANTED}");
        assert_eq!(polled("kafka", &known).await, "20!", "{mode}");
        let wrong = polled("kafka", &known.replace(PLANTED, "other")).await;
        assert!(wrong.contains("refuses the credentials: "), "{mode}: {wrong}");
    }
    let nobody = polled("kafka", &text).await;
    assert!(nobody.contains("cannot be reached: "), "{nobody}");
}

/// A token without a signature, which brokers accept unless they are told otherwise.
fn unsecured(seconds: i64) -> String {
    let now = jiff::Timestamp::now().as_second();
    let claims = json!({"sub": "asker", "iat": now - 10_000, "exp": now + seconds, "scope": "lag"});
    let encode = |text: String| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.", encode(json!({"alg": "none"}).to_string()), encode(claims.to_string()))
}

async fn tokens(text: &str) {
    let known = basic("asker", PLANTED);
    let server = server_of_tokens(move |who, path, body| {
        assert!(body.starts_with("grant_type=client_credentials&scope=lag+read"), "{body}");
        (who == known).then(|| unsecured(if path == "/expired" { -5000 } else { 3600 }))
    })
    .await;
    let text = format!("{text}\nsasl: oauthbearer\nauth.username: asker\nauth.scopes: lag,read");
    for (path, password, expected) in [
        ("token", PLANTED, "20!"),
        ("token\nauth.oauthExtensions: tenantId=shop,logicalCluster=main", PLANTED, "20!"),
        ("token", "other", "refuses the credentials: it answers 401: invalid_client"),
        ("expired", PLANTED, "refuses the credentials: "),
    ] {
        let text = format!(
            "{text}\nauth.password: {password}\nauth.oauthTokenEndpointUri: {server}/{path}"
        );
        let found = polled("kafka", &text).await;
        assert!(found.contains(expected), "{path}: {found}");
        assert!(!found.contains("eyJ"), "no token is shown: {found}");
        println!("kafka by a token ({path}): {found}");
    }
}
