//! To which brokers a token for Amazon's Kafka may go.

use crate::address::is_loopback;
use crate::identity::{AwsIdentity, Identity};
use crate::metadata::{Fields, METADATA, Place};

/// What the names of Amazon's servers end with.
const DOMAINS: [&str; 2] = [".amazonaws.com", ".amazonaws.com.cn"];
/// What stands before the region in the names of its brokers.
const SERVICES: [&str; 2] = ["kafka", "kafka-serverless"];

/// Unlike the signature of a request, such a token names no broker: whoever gets it can log in to all brokers of the region
/// with it. So those of the controller go to Amazon's brokers only: whoever writes a trigger chooses the addresses.
pub(crate) fn refuse_others(fields: &mut Fields<'_>) {
    const PROVIDER: &[Place] = &[Place::Metadata, Place::Auth];
    let is_of_controller =
        matches!(fields.spec().identity, Some(Identity::Aws(AwsIdentity::Controller { .. })));
    if !is_of_controller || fields.field(&["saslTokenProvider"], PROVIDER).text() != "aws_msk_iam" {
        return;
    }
    let servers = servers(fields);
    let hosts = servers.split(',').map(|server| host(server.trim()));
    let mut hosts = hosts.filter(|host| !host.is_empty() && !is_loopback(host)).peekable();
    if hosts.peek().is_none() {
        return;
    }
    if !hosts.all(is_amazons) {
        fields.refuse(
            "bootstrapServers are none of Amazon's, and the controller's token would be sent to them",
            "write brokers below .kafka.<region>.amazonaws.com, or set podIdentity.identityOwner of the authentication to \
             workload",
        );
    }
    // What is no truth value is refused by whoever reads it.
    let insecure = fields.field(&["unsafeSsl"], METADATA).text();
    fields.refuse_unverified(!matches!(insecure.as_str(), "" | "false"));
}

/// The brokers that a trigger names, or else the variable of its container. It warns itself if there is no such variable.
fn servers(fields: &Fields<'_>) -> String {
    let spec = fields.spec();
    let of = |name: &str| spec.metadata.get(name).map(|text| text.trim());
    let named = of("bootstrapServers").filter(|text| !text.is_empty());
    let variable = || Some(spec.env.get(of("bootstrapServersFromEnv")?)?.expose());
    named.or_else(variable).unwrap_or_default().to_owned()
}

fn host(server: &str) -> &str {
    server.rsplit_once(':').map_or(server, |(host, _)| host)
}

/// Whether it is the name of a broker: others can have names below Amazon's as well, for what they run there.
fn is_amazons(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let Some(name) = DOMAINS.iter().find_map(|domain| host.strip_suffix(domain)) else {
        return false;
    };
    let mut labels = name.rsplit('.');
    let region = labels.next().is_some_and(|region| !region.is_empty());
    let service = labels.next().is_some_and(|service| SERVICES.contains(&service));
    region && service && labels.next().is_some_and(|broker| !broker.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::spec_of;

    const MSK: &str = "consumerGroup=g;sasl=oauthbearer;saslTokenProvider=aws_msk_iam;tls=enable;awsRegion=eu-west-1";

    /// What is said of a trigger with these brokers.
    fn said(text: &str, identity: AwsIdentity) -> String {
        let mut spec = spec_of("kafka", &format!("{MSK};{text}"));
        spec.identity = Some(Identity::Aws(identity));
        spec.env.insert("BROKERS".to_owned(), "evil.test:1".into());
        crate::parse(&spec).map_or_else(|errors| errors.to_string(), |_| "ok".to_owned())
    }

    #[test]
    fn tokens_of_the_controller_go_to_amazons_brokers_only() {
        const OURS: &str = "b-1.orders.a1b2.c2.kafka.eu-west-1.amazonaws.com:9098";
        const REFUSED: &str = "bootstrapServers are none of Amazon's";
        for (text, expected) in [
            (format!("bootstrapServers={OURS}"), "ok"),
            (
                "bootstrapServers=boot-a.c1.kafka-serverless.cn-north-1.amazonaws.com.cn:9098"
                    .to_owned(),
                "ok",
            ),
            ("bootstrapServers=127.0.0.1:9098".to_owned(), "ok"),
            (format!("bootstrapServers={OURS},evil.test:9098"), REFUSED),
            ("bootstrapServers=kafka.eu-west-1.amazonaws.com.evil.test:1".to_owned(), REFUSED),
            ("bootstrapServers=ec2-1-2-3-4.eu-west-1.compute.amazonaws.com:1".to_owned(), REFUSED),
            ("bootstrapServers=kafka.elb.eu-west-1.amazonaws.com:1".to_owned(), REFUSED),
            ("bootstrapServersFromEnv=BROKERS".to_owned(), REFUSED),
            (
                format!("bootstrapServers={OURS};unsafeSsl=true"),
                "only sent to servers whose certificates are verified",
            ),
        ] {
            let found = said(&text, AwsIdentity::Controller { role: None, external_id: None });
            assert!(found.contains(expected), "{text}: {found}");
        }
        let (role, account) = ("r".to_owned(), "shop/web".to_owned());
        let workload = AwsIdentity::Workload { role, account, token: "t".into() };
        assert_eq!(said("bootstrapServers=evil.test:1", workload), "ok", "it is its own");
    }
}
