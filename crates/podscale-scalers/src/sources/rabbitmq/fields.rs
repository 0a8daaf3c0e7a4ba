//! The fields of `rabbitmq`, of which many go together or not.

use super::management::{self, Operation, Queues};
use super::mode::{MODES, Mode};
use super::{Asked, Broker, Question};
use crate::address::{Address, decode};
use crate::azure;
use crate::http::auth::HttpAuth;
use crate::http::oauth::OAuth;
use crate::identity::{AzureIdentity, Identity};
use crate::metadata::{AUTH, Fields, METADATA, Place};
use crate::secret::Secret;
use crate::tls::Tls;
use std::time::Duration;

const META_AUTH_ENV: &[Place] = &[Place::Metadata, Place::Auth, Place::Env];
const META_AUTH: &[Place] = &[Place::Metadata, Place::Auth];
const AUTH_ENV: &[Place] = &[Place::Auth, Place::Env];
/// How many messages one replica is for, unless it is said otherwise.
const DEFAULT_LENGTH: f64 = 20.0;
/// No name of a queue is longer on the wire.
const MOST_NAME_BYTES: usize = 255;

/// Whether the broker is asked over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Http,
    Amqp,
}

/// What says who asks.
struct Credentials {
    user: Option<Secret>,
    password: Option<Secret>,
    oauth: Option<OAuth>,
    /// Whose tokens, and what they are for.
    azure: Option<(AzureIdentity, String)>,
    tls: Tls,
    /// Whether the certificates are used.
    tls_enabled: bool,
}

/// Reads all fields; gives the queue's name as well.
pub(super) fn read(fields: &mut Fields<'_>) -> (Question, String) {
    let queue = fields.field(&["queueName"], METADATA).required().text();
    let host = fields.field(&["host"], META_AUTH_ENV).required().secret().unwrap_or_default();
    let wanted = fields.field(&["protocol"], META_AUTH).text();
    let vhost = fields.field(&["vhostName"], META_AUTH).text();
    let regex = fields.field(&["useRegex"], METADATA).bool_or(false);
    let ready_only = fields.field(&["excludeUnacknowledged"], METADATA).bool_or(false);
    let page = fields.field(&["pageSize"], METADATA).integer_or(100);
    let operation = fields.field(&["operation"], METADATA).text();
    let timeout = fields.field(&["timeout"], METADATA).duration();
    let activation = fields.field(&["activationValue"], METADATA).number_or(0.0);
    let insecure = fields.field(&["unsafeSsl"], METADATA).bool_or(false);
    if page < 1 {
        fields.refuse("pageSize should be 1 or greater", "leave it out for 100");
    }
    let (address, protocol) = protocol(fields, &wanted, &host);
    let credentials = credentials(fields, protocol, insecure);
    if regex && protocol == Protocol::Amqp {
        fields.refuse(
            "configure useRegex=true only with HTTP protocol",
            "use the HTTP API of the broker",
        );
    }
    if ready_only && protocol == Protocol::Amqp {
        fields.refuse(
            "configure excludeUnacknowledged=true only with HTTP protocol",
            "use the HTTP API of the broker",
        );
    }
    let (mode, target, target_field) = mode(fields, protocol, timeout);
    let operation = operation_of(fields, &operation);
    let asked = match protocol {
        Protocol::Http => {
            let uri = management::uri(&address, &vhost, &queue, regex.then_some(page)).into();
            let queues = Queues { operation: regex.then_some(operation), ready_only };
            let azure = credentials.azure.clone().map(Box::new);
            let auth = Box::new(credentials.of_http(&address));
            Asked::Http { address, auth, azure, uri, queues, timeout }
        }
        Protocol::Amqp => {
            if queue.len() > MOST_NAME_BYTES {
                fields.refuse("queueName is longer than 255 bytes", "no queue has such a name");
            }
            let queue = queue.as_str().into();
            Asked::Amqp { broker: credentials.broker(&address, vhost), queue }
        }
    };
    (Question { mode, target, target_field, activation, asked }, queue)
}

/// The address of the broker, and how it is asked.
fn protocol(fields: &mut Fields<'_>, wanted: &str, host: &Secret) -> (Address, Protocol) {
    if !matches!(wanted, "" | "auto" | "http" | "amqp") {
        fields.refuse(
            format!("the protocol has to be either `amqp`, `http`, or `auto` but is `{wanted}`"),
            "leave it out",
        );
    }
    if host.is_empty() {
        return (Address::default(), Protocol::Http);
    }
    let address = Address::parse(host.expose()).unwrap_or_else(|problem| {
        fields.refuse(
            format!("can't parse host to find protocol: {problem}"),
            "write amqp://user:password@host:5672/vhost or http://user:password@host:15672/vhost",
        );
        Address { scheme: "http".to_owned(), ..Address::default() }
    });
    let protocol = match (address.scheme.as_str(), wanted) {
        ("amqp" | "amqps", wanted) if wanted != "http" => Protocol::Amqp,
        ("http" | "https", wanted) if wanted != "amqp" => Protocol::Http,
        (scheme @ ("amqp" | "amqps" | "http" | "https"), wanted) => {
            fields.refuse(
                format!("protocol `{wanted}` does not go with a host that begins with {scheme}://"),
                "leave protocol out, or change host",
            );
            Protocol::Http
        }
        (scheme, _) => {
            fields.refuse(
                format!("unknown host URL scheme: `{scheme}`"),
                "write amqp://, amqps://, http:// or https://",
            );
            Protocol::Http
        }
    };
    (address, protocol)
}

fn credentials(fields: &mut Fields<'_>, protocol: Protocol, insecure: bool) -> Credentials {
    let user = fields.field(&["username"], AUTH_ENV).secret();
    let password = fields.field(&["password"], AUTH_ENV).secret();
    let enabled = fields.field(&["tls"], AUTH).text();
    let has_cert = fields.field(&["cert", "Cert"], AUTH).is_given();
    let has_key = fields.field(&["key"], AUTH).is_given();
    let tls = Tls::read(fields, insecure);
    fields.allow(&["authModes", "authMode"]);
    if !matches!(enabled.as_str(), "" | "enable" | "disable") {
        fields
            .refuse(format!("incorrect value for TLS given: {enabled}"), "write enable or disable");
    }
    if has_cert != has_key {
        fields.refuse("both key and certificate must be provided", "give cert and key");
    }
    if user.is_some() != password.is_some() {
        fields.refuse(
            "username and password must be given together",
            "give both in the authentication",
        );
    }
    let azure = azure(fields, protocol, insecure);
    let oauth = oauth(fields, protocol, user.is_some() || azure.is_some());
    let tls_enabled = enabled == "enable";
    let tls = if tls_enabled { tls } else { Tls { insecure, ..Tls::default() } };
    Credentials { user, password, oauth, azure, tls, tls_enabled }
}

/// Whose tokens of Azure the broker is asked with, and what they are for.
fn azure(
    fields: &mut Fields<'_>,
    protocol: Protocol,
    insecure: bool,
) -> Option<(AzureIdentity, String)> {
    let resource = fields.field(&["workloadIdentityResource"], AUTH).text();
    let identity = match fields.spec().identity.clone() {
        Some(Identity::Azure(identity)) => identity,
        _ if resource.is_empty() => return None,
        _ => {
            fields.refuse(
                "workloadIdentityResource needs podIdentity azure-workload",
                "set podIdentity.provider of the authentication to azure-workload",
            );
            return None;
        }
    };
    if resource.is_empty() {
        fields.warn(
            "podIdentity azure-workload has no effect without workloadIdentityResource; give it in the authentication, or \
             remove podIdentity",
        );
        return None;
    }
    if protocol == Protocol::Amqp {
        fields.refuse(
            "workload identity is not supported for the AMQP protocol at the moment",
            "use the HTTP API of the broker",
        );
    }
    // Whoever has a token is whom it is of, and whoever writes a trigger would choose to whom it goes.
    let metadata = &fields.spec().metadata;
    let of_trigger = ["host", "hostFromEnv"].iter().any(|name| metadata.contains_key(*name));
    if identity.is_of_controller() && of_trigger {
        fields.refuse(
            "host must be given by the authentication whose identity is the controller's",
            "move host into what the ClusterTriggerAuthentication refers to",
        );
    }
    if identity.is_of_controller() {
        fields.refuse_unverified(insecure);
    }
    Some((identity, azure::scope(&resource)))
}

fn oauth(fields: &mut Fields<'_>, protocol: Protocol, has_user: bool) -> Option<OAuth> {
    let given = |is: bool| if is { "<present>" } else { "<empty>" };
    let uri = fields.field(&["oauthTokenURI"], AUTH).is_given();
    let client = fields.field(&["clientID"], AUTH).is_given();
    let secret = fields.field(&["clientSecret"], AUTH).is_given();
    let oauth = OAuth::read(fields);
    if !uri && !client && !secret {
        return None;
    }
    const HINT: &str = "give oauthTokenURI, clientID and clientSecret, and no username";
    if !uri || !client {
        let (uri, client) = (given(uri), given(client));
        fields.refuse(
            format!("oauthTokenURI={uri} and clientID={client} are required when oauth is enabled"),
            HINT,
        );
    } else if !secret {
        fields.refuse(
            "OAuth2 requires tokenUrl clientId and clientSecret to be configured in TriggerAuthentication",
            HINT,
        );
    } else if protocol == Protocol::Amqp {
        fields.refuse("OAuth2 authentication is only supported with HTTP protocol, not AMQP", HINT);
    } else if has_user {
        fields.refuse(
            "OAuth2 authentication cannot be combined with username/password authentication or Azure \
             Workload Identity",
            HINT,
        );
    }
    oauth
}

impl Credentials {
    /// What requests carry: credentials of their own before those in the address.
    fn of_http(self, address: &Address) -> HttpAuth {
        let in_address = (!address.user.is_empty())
            .then(|| (Secret::from(&*address.user), address.password.clone().unwrap_or_default()));
        let basic = self.user.zip(self.password).or(in_address);
        let has_tokens = self.oauth.is_some() || self.azure.is_some();
        HttpAuth::of(basic.filter(|_| !has_tokens), self.oauth, self.tls)
    }

    fn broker(self, address: &Address, vhost: String) -> Broker {
        let encrypted = address.scheme == "amqps";
        let port = address.port().unwrap_or(if encrypted { 5671 } else { 5672 });
        let named = decode(address.path.trim_start_matches('/'));
        let vhost = match (vhost.is_empty(), named.is_empty()) {
            (false, _) => vhost,
            (true, false) => named,
            (true, true) => "/".to_owned(),
        };
        // A certificate is who asks, where nothing else says it.
        let external = encrypted
            && self.tls_enabled
            && self.tls.identity.is_some()
            && self.user.is_none()
            && address.password.is_none();
        let (user, password) = match (self.user, self.password) {
            (Some(user), Some(password)) => (user.expose().to_owned(), password),
            _ if address.user.is_empty() => ("guest".to_owned(), Secret::from("guest")),
            _ => (address.user.clone(), address.password.clone().unwrap_or_default()),
        };
        let address = format!("{}:{port}", address.host());
        Broker { address, vhost, user, password, external, tls: encrypted.then_some(self.tls) }
    }
}

/// What counts, how much of it is for one replica, and which field says that.
fn mode(
    fields: &mut Fields<'_>,
    protocol: Protocol,
    timeout: Option<Duration>,
) -> (Mode, f64, &'static str) {
    let length = fields.field(&["queueLength"], METADATA).number_or(0.0);
    let name = fields.field(&["mode"], METADATA).text();
    let value = fields.field(&["value"], METADATA).number_or(0.0);
    let mode = MODES.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode);
    let is_set = !name.is_empty() && name != "Unknown";
    let (problem, hint) = match mode {
        _ if length == 0.0 && !is_set && value == 0.0 => {
            return (Mode::QueueLength, DEFAULT_LENGTH, "queueLength");
        }
        _ if length != 0.0 && (is_set || value != 0.0) => {
            ("queueLength is deprecated; use mode and value".to_owned(), "leave queueLength out")
        }
        _ if length != 0.0 => return (Mode::QueueLength, length, "queueLength"),
        _ if !is_set => ("mode must be specified".to_owned(), "set mode to QueueLength"),
        _ if value == 0.0 => ("value must be specified".to_owned(), "set value"),
        None => (
            format!(
                "trigger mode {name} must be one of QueueLength, MessageRate, DeliverGetRate, \
                 PublishedToDeliveredRatio or ExpectedQueueConsumptionTime"
            ),
            "set mode to QueueLength",
        ),
        Some(mode) if mode != Mode::QueueLength && protocol == Protocol::Amqp => (
            format!("protocol amqp not supported; must be HTTP to use trigger mode {name}"),
            "use the HTTP API of the broker",
        ),
        Some(_) if protocol == Protocol::Amqp && timeout.is_some_and(|t| !t.is_zero()) => {
            let nanos = timeout.unwrap_or_default().as_nanos();
            (format!("AMQP protocol doesn't support custom timeouts: {nanos}"), "leave timeout out")
        }
        Some(mode) => return (mode, value, "value"),
    };
    fields.refuse(problem, hint);
    (Mode::QueueLength, value, "value")
}

fn operation_of(fields: &mut Fields<'_>, name: &str) -> Operation {
    match name {
        "" | "sum" => Operation::Sum,
        "avg" => Operation::Average,
        "max" => Operation::Max,
        other => {
            fields.refuse(
                format!("operation mode {other} must be one of sum, avg, max"),
                "leave it out for sum",
            );
            Operation::Sum
        }
    }
}
