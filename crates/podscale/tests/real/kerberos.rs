//! A real KDC and a real Kafka that trusts it: passwords of all types of keys, keytabs, what is wrong with them, clocks,
//! and a restart.

use super::driven::Server;
use super::harness::{
    Folder, PLANTED, Process, WRONG, context, free_port, gives, is_installed, listens, poll,
    scaler, spec,
};
use super::kafka::Broker;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use podscale_scalers::{Context, TriggerSpec, connect, parse};
use std::process::Command;
use std::sync::Arc;

const REALM: &str = "SHOP.TEST";
/// The broker, by the address that it gives.
const BROKER: &str = "kafka/127.0.0.1";
const ETYPES: [&str; 4] = [
    "aes256-cts-hmac-sha1-96",
    "aes128-cts-hmac-sha1-96",
    "aes256-cts-hmac-sha384-192",
    "aes128-cts-hmac-sha256-128",
];

/// A KDC with a database of its own.
struct Kdc {
    folder: Folder,
    port: u16,
    config: String,
    profile: String,
}

impl Kdc {
    fn installed() -> Option<Kdc> {
        for (program, package) in [
            ("krb5kdc", "krb5-kdc"),
            ("kdb5_util", "krb5-kdc"),
            ("kadmin.local", "krb5-admin-server"),
        ] {
            // They are for administrators, whose folder not everybody has in the path.
            let in_path = std::path::Path::new("/usr/sbin").join(program).is_file();
            if !in_path && !is_installed(program, package) {
                return None;
            }
        }
        let (folder, port) = (Folder::new("kerberos"), free_port());
        let config = format!(
            "[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n rdns = false\n\
             [realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{port}\n }}\n\
             [logging]\n kdc = FILE:{}\n",
            folder.path("log-kdc")
        );
        let profile = format!(
            "[kdcdefaults]\n kdc_listen = 127.0.0.1:{port}\n kdc_tcp_listen = 127.0.0.1:{port}\n\
             [realms]\n {REALM} = {{\n  database_name = {}\n  key_stash_file = {}\n  acl_file = {}\n\
             \x20 max_life = 1h\n  supported_enctypes = {}\n  default_principal_flags = +preauth\n }}\n",
            folder.path("principal"),
            folder.path("stash"),
            folder.path("acl"),
            ETYPES.map(|etype| format!("{etype}:normal")).join(" "),
        );
        let config = folder.file("krb5.conf", &config);
        let profile = folder.file("kdc.conf", &profile);
        let kdc = Kdc { folder, port, config, profile };
        kdc.run("kdb5_util", &["create", "-s", "-r", REALM, "-P", "of-the-database"]);
        for (number, etype) in ETYPES.iter().enumerate() {
            kdc.admin(&format!("addprinc -e {etype}:normal -pw {PLANTED} asker{number}"));
        }
        kdc.admin(&format!("addprinc -pw {PLANTED} asker"));
        kdc.admin(&format!("addprinc -pw {PLANTED} unproved"));
        kdc.admin("modprinc -requires_preauth unproved");
        kdc.admin("addprinc -randkey keyed/one");
        kdc.admin(&format!("addprinc -randkey {BROKER}"));
        // A service that wants proved tickets would refuse those of somebody who needs no proof.
        kdc.admin(&format!("modprinc -requires_preauth {BROKER}"));
        kdc.export("keyed/one");
        kdc.export(BROKER);
        Some(kdc)
    }

    fn command(&self, program: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("env");
        command
            .env("PATH", format!("{path}:/usr/sbin"))
            .env("KRB5_CONFIG", &self.config)
            .env("KRB5_KDC_PROFILE", &self.profile)
            .arg(program);
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let done = self.command(program).args(arguments).output().expect(program);
        let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
        assert!(done.status.success(), "{program} {arguments:?}: {said}");
    }

    fn admin(&self, query: &str) {
        self.run("kadmin.local", &["-r", REALM, "-q", query]);
    }

    fn keytab(&self, principal: &str) -> String {
        self.folder.path(&format!("{}.keytab", principal.replace('/', "-")))
    }

    fn export(&self, principal: &str) {
        self.admin(&format!("ktadd -k {} {principal}", self.keytab(principal)));
    }

    async fn start(&self) -> Process {
        let mut command = self.command("krb5kdc");
        let pid = self.folder.path("pid");
        let process = Process::start(
            command.args(["-n", "-r", REALM, "-P", &pid]),
            &self.folder,
            "log-output",
        );
        listens(self.port).await;
        process
    }

    /// How many first tickets somebody was given.
    fn tickets(&self, principal: &str) -> usize {
        let log = std::fs::read_to_string(self.folder.path("log-kdc")).expect("a log");
        let wanted = format!("{principal}@{REALM} for krbtgt/");
        let is_given = |line: &&str| {
            line.contains("AS_REQ") && line.contains("ISSUE") && line.contains(&wanted)
        };
        log.lines().filter(is_given).count()
    }

    /// A trigger of a user who has parameters.
    fn spec(&self, broker: &Broker, user: &str, parameters: &[(&str, &str)]) -> TriggerSpec {
        let text = format!(
            "bootstrapServers: 127.0.0.1:{}\nconsumerGroup: workers\ntopic: orders\nsasl: gssapi\n\
             auth.realm: {REALM}\nauth.username: {user}",
            broker.guarded()
        );
        let mut spec = spec("kafka", &text);
        let config = std::fs::read_to_string(&self.config).expect("a file");
        spec.auth.insert("kerberosConfig".to_owned(), config.into());
        for (name, value) in parameters {
            spec.auth.insert((*name).to_owned(), (*value).into());
        }
        spec
    }
}

/// What a new trigger gives at once.
async fn given(context: &Context, spec: &TriggerSpec) -> String {
    let parsed = parse(spec).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(!format!("{parsed:?}").contains(PLANTED), "{parsed:?}");
    match connect(parsed, context) {
        Ok(scaler) => poll(&*scaler).await,
        Err(error) => error.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn tickets_of_a_real_kdc_for_a_real_kafka() {
    let Some(kdc) = Kdc::installed() else { return };
    let properties = format!(
        "sasl.kerberos.service.name=kafka\nlistener.name.guarded.gssapi.sasl.jaas.config=\
         com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true \
         keyTab=\"{}\" principal=\"{BROKER}@{REALM}\";\n",
        kdc.keytab(BROKER)
    );
    let option = format!("-Djava.security.krb5.conf={}", kdc.config);
    let Some(broker) = Broker::with_kerberos(&properties, &option) else { return };
    let process = kdc.start().await;
    let _broker = broker.start();
    broker.answers().await;
    broker.prepare();
    broker.send(5);

    let password = [("password", PLANTED)];
    for user in ["asker", "asker0", "asker1", "asker2", "asker3", "unproved"] {
        let found = given(&context(), &kdc.spec(&broker, user, &password)).await;
        println!("kafka by a password of {user}: {found}");
        assert_eq!(found, "5!", "{user}");
    }
    let file = STANDARD.encode(std::fs::read(kdc.keytab("keyed/one")).expect("a keytab"));
    let keytab = [("keytab", file.as_str()), ("kerberosDisableFAST", "true")];
    let keyed = kdc.spec(&broker, "keyed/one", &keytab);
    let shared = context();
    assert_eq!(given(&shared, &keyed).await, "5!");

    refusals(&kdc, &broker, &keyed).await;
    outage(&kdc, &broker, process).await;
}

async fn refusals(kdc: &Kdc, broker: &Broker, keyed: &TriggerSpec) {
    let of_kdc = |problem: &str| format!("the KDC of {REALM} refuses the credentials: {problem}");
    let unknown = of_kdc("it knows no principal nobody@SHOP.TEST: check username and realm");
    let wrong = |user: &str| of_kdc(&format!("the password of {user}@{REALM} is wrong"));
    let service = "it knows no service other/127.0.0.1@SHOP.TEST: check kerberosServiceName";
    for (user, parameters, expected) in [
        ("asker", vec![("password", WRONG)], wrong("asker")),
        ("unproved", vec![("password", WRONG)], wrong("unproved")),
        ("nobody", vec![("password", PLANTED)], unknown),
        ("asker", vec![("password", PLANTED), ("kerberosServiceName", "other")], of_kdc(service)),
    ] {
        let found = given(&context(), &kdc.spec(broker, user, &parameters)).await;
        println!("kafka by tickets: {found}");
        assert!(found.starts_with(&expected), "{found}");
        assert!(!found.contains(WRONG), "{found}");
    }
    for hours in [-1, 1] {
        let mut skewed = context();
        let ahead = jiff::SignedDuration::from_hours(hours);
        skewed.clock = Arc::new(move || jiff::Timestamp::now() + ahead);
        let found = given(&skewed, &kdc.spec(broker, "asker", &[("password", PLANTED)])).await;
        assert_eq!(
            found,
            of_kdc("its clock differs too much from the controller's: synchronize both")
        );
    }
    // A new key makes the file old.
    kdc.admin("cpw -randkey keyed/one");
    let found = given(&context(), keyed).await;
    assert!(found.contains("in keytab is not the one it has: export the keytab anew"), "{found}");
}

async fn outage(kdc: &Kdc, broker: &Broker, process: Process) {
    let password = [("password", PLANTED)];
    // Both have one account, and one ticket.
    let (context, asker) = (context(), kdc.spec(broker, "asker1", &password));
    let before = kdc.tickets("asker1");
    let (first, second) = (scaler(&context, &asker), scaler(&context, &asker));
    gives(&*first, "5!").await;
    gives(&*second, "5!").await;
    assert_eq!(kdc.tickets("asker1"), before + 1);

    drop(process);
    assert_eq!(poll(&*first).await, "5!", "there is a ticket");
    let late = scaler(&context, &kdc.spec(broker, "asker2", &password));
    let found = poll(&*late).await;
    println!("kafka by tickets without a KDC: {found}");
    assert!(
        found.starts_with(&format!("KDC 127.0.0.1:{} cannot be reached: ", kdc.port)),
        "{found}"
    );
    let _process = kdc.start().await;
    gives(&*late, "5!").await;

    // The broker's own key is another now, and its file is old.
    kdc.admin(&format!("cpw -randkey {BROKER}"));
    let found = given(&super::harness::context(), &asker).await;
    println!("kafka by tickets that the broker cannot read: {found}");
    assert!(found.contains("refuses the credentials: "), "{found}");
}
