//! Redis: one server, a cluster, or the master that sentinels name. Which one it is, the type of the trigger
//! says; what is read, its source.

pub(crate) mod client;
mod wire;

use crate::metadata::{AUTH, Fields, METADATA, Place};
use crate::secret::Secret;
use crate::tls::Tls;
use crate::trigger::ServerKey;

pub(crate) use wire::Reply;

const META_AUTH_ENV: &[Place] = &[Place::Metadata, Place::Auth, Place::Env];
const META_ENV_AUTH: &[Place] = &[Place::Metadata, Place::Env, Place::Auth];

/// Which servers, and as whom they are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RedisServer {
    pub(crate) addresses: Vec<String>,
    pub(crate) topology: Topology,
    pub(crate) username: String,
    pub(crate) password: Secret,
    pub(crate) database: i64,
    /// None if TLS is not spoken.
    pub(crate) tls: Option<Tls>,
}

/// How the servers belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Topology {
    /// The first address is the server.
    #[default]
    Single,
    /// The addresses are some nodes of a cluster.
    Cluster,
    /// The addresses are sentinels, which know where the master is.
    Sentinel {
        /// What they call it.
        master: String,
        username: String,
        password: Secret,
    },
}

impl RedisServer {
    /// Reads the fields that all triggers of Redis have.
    pub(crate) fn read(fields: &mut Fields<'_>) -> RedisServer {
        let mut addresses = fields.field(&["address", "addresses"], META_AUTH_ENV).list();
        let username = fields.field(&["username"], META_ENV_AUTH).text();
        let password = fields.field(&["password"], META_ENV_AUTH).secret().unwrap_or_default();
        let database = fields.field(&["databaseIndex"], METADATA).integer_or(0);
        let hosts = fields.field(&["host", "hosts"], META_ENV_AUTH).list();
        let ports = fields.field(&["port", "ports"], META_ENV_AUTH).list();
        let topology = topology(fields);
        if !hosts.is_empty() && !ports.is_empty() {
            if hosts.len() != ports.len() {
                fields.refuse(
                    "not enough hosts or ports given. number of hosts should be equal to the number of ports",
                    "give as many ports as hosts, between commas",
                );
            }
            addresses.extend(hosts.iter().zip(&ports).map(|(host, port)| join(host, port)));
        }
        if addresses.is_empty() {
            fields.refuse(
                "no addresses or hosts given. address should be a comma separated list of host:port or set \
                 the host/port values",
                "set metadata.address, metadata.addressFromEnv, or host and port",
            );
        }
        let tls = tls(fields);
        RedisServer { addresses, topology, username, password, database, tls }
    }

    /// What tells it from others.
    pub(crate) fn key(&self) -> ServerKey {
        let database = self.database.to_string();
        let mut key = vec![self.username.as_str(), self.password.expose(), &database];
        match &self.topology {
            Topology::Single => key.push("single"),
            Topology::Cluster => key.push("cluster"),
            Topology::Sentinel { master, username, password } => {
                key.extend(["sentinel", master, username, password.expose()]);
            }
        }
        key.extend(self.tls.iter().flat_map(Tls::key));
        ServerKey::new("redis", &self.addresses.join(","), &key)
    }
}

fn topology(fields: &mut Fields<'_>) -> Topology {
    let kind = fields.spec().kind.as_str();
    if kind.starts_with("redis-cluster") {
        return Topology::Cluster;
    }
    if !kind.starts_with("redis-sentinel") {
        return Topology::Single;
    }
    let master = fields.field(&["sentinelMaster"], META_AUTH_ENV).text();
    let username = fields.field(&["sentinelUsername"], META_AUTH_ENV).text();
    let password = fields.field(&["sentinelPassword"], META_AUTH_ENV).secret().unwrap_or_default();
    Topology::Sentinel { master, username, password }
}

/// Whether TLS is spoken, which the metadata or the authentication may say.
fn tls(fields: &mut Fields<'_>) -> Option<Tls> {
    let insecure = fields.field(&["unsafeSsl"], METADATA).bool_or(false);
    let enabled = fields.field(&["enableTLS"], METADATA).text();
    let by_auth = fields.field(&["tls"], AUTH).text();
    let tls = Tls::read(fields, insecure);
    if !enabled.is_empty() && !by_auth.is_empty() {
        fields.refuse(
            "unable to set `tls` in both ScaledObject and TriggerAuthentication together",
            "leave one of them",
        );
        return None;
    }
    let spoken = match (enabled.as_str(), by_auth.as_str()) {
        ("1" | "t" | "T" | "true" | "TRUE" | "True", _) | (_, "enable") => true,
        ("" | "0" | "f" | "F" | "false" | "FALSE" | "False", "" | "disable") => false,
        ("", _) => {
            fields.refuse("error incorrect TLS value given", "write enable or disable");
            false
        }
        (other, _) => {
            fields.refuse(
                format!(
                    "EnableTLS parsing error strconv.ParseBool: parsing {other:?}: invalid syntax"
                ),
                "write true or false",
            );
            false
        }
    };
    spoken.then_some(tls)
}

/// Host and port, with brackets around an address of IPv6.
fn join(host: &str, port: &str) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
