use super::*;
use crate::tests::{outcome, spec_of};

#[test]
fn fields_are_checked_in_the_words_of_keda() {
    const CONTEXT: &str = "error parsing RabbitMQ metadata: error parsing RabbitMQ metadata: ";
    const AMQP: &str = "queueName=q;host=amqp://u:p@h:5672/v";
    const HTTP: &str = "queueName=q;host=http://u:p@h:15672/v";
    for (text, expected) in [
        (AMQP.to_owned(), "s0-rabbitmq-q 20 0"),
        (HTTP.to_owned(), "s0-rabbitmq-q 20 0"),
        ("queueName=a b/c%;host=amqp://h".to_owned(), "s0-rabbitmq-a+b-2Fc-25 20 0"),
        (format!("{AMQP};mode=QueueLength;value=5;activationValue=2"), "s0-rabbitmq-q 5 2"),
        (format!("{AMQP};queueLength=7"), "s0-rabbitmq-q 7 0"),
        (
            format!("{HTTP};mode=MessageRate;value=1.5;useRegex=true;operation=avg"),
            "s0-rabbitmq-q 1.5 0",
        ),
        (
            String::new(),
            "missing required parameter \"queueName\" in [triggerMetadata]\n\
             missing required parameter \"host\" in [triggerMetadata authParams resolvedEnv]",
        ),
        (
            "queueName=q;host=h:5672".to_owned(),
            "can't parse host to find protocol: it has no scheme such as http://",
        ),
        ("queueName=q;host=ftp://h".to_owned(), "unknown host URL scheme: `ftp`"),
        (
            format!("{AMQP};protocol=stomp"),
            "the protocol has to be either `amqp`, `http`, or `auto` but is `stomp`",
        ),
        (
            format!("{AMQP};protocol=http"),
            "protocol `http` does not go with a host that begins with amqp://",
        ),
        (format!("{AMQP};useRegex=true"), "configure useRegex=true only with HTTP protocol"),
        (
            format!("{AMQP};excludeUnacknowledged=true"),
            "configure excludeUnacknowledged=true only with HTTP protocol",
        ),
        (
            format!("{AMQP};mode=MessageRate;value=1"),
            "protocol amqp not supported; must be HTTP to use trigger mode MessageRate",
        ),
        (format!("{AMQP};mode=QueueLength"), "value must be specified"),
        (format!("{AMQP};value=5"), "mode must be specified"),
        (format!("{AMQP};value=5;queueLength=5"), "queueLength is deprecated; use mode and value"),
        (
            format!("{AMQP};mode=Speed;value=5"),
            "trigger mode Speed must be one of QueueLength, MessageRate, DeliverGetRate, \
             PublishedToDeliveredRatio or ExpectedQueueConsumptionTime",
        ),
        (
            format!("{AMQP};mode=QueueLength;value=5;timeout=1s"),
            "AMQP protocol doesn't support custom timeouts: 1000000000",
        ),
        (
            format!("{HTTP};auth.workloadIdentityResource=api://r"),
            "workloadIdentityResource needs podIdentity azure-workload",
        ),
        (format!("{HTTP};pageSize=0"), "pageSize should be 1 or greater"),
        (
            format!("{HTTP};useRegex=true;operation=min"),
            "operation mode min must be one of sum, avg, max",
        ),
        (format!("{HTTP};auth.username=u"), "username and password must be given together"),
        (format!("{HTTP};auth.cert=c"), "both key and certificate must be provided"),
        (format!("{HTTP};auth.tls=on"), "incorrect value for TLS given: on"),
        (
            format!("{HTTP};auth.clientID=c"),
            "oauthTokenURI=<empty> and clientID=<present> are required when oauth is enabled",
        ),
        (
            format!("{AMQP};auth.clientID=c;auth.oauthTokenURI=http://t;auth.clientSecret=s"),
            "OAuth2 authentication is only supported with HTTP protocol, not AMQP",
        ),
    ] {
        let found = outcome("rabbitmq", &text);
        assert_eq!(found.strip_prefix(CONTEXT).unwrap_or(&found), expected, "{text}");
    }
}

#[test]
fn brokers_are_named_by_the_address_or_by_fields() {
    for (text, expected) in [
        ("host=amqp://h", "h:5672 / guest guest false"),
        ("host=amqp://h/", "h:5672 / guest guest false"),
        ("host=amqp://u:p%40@h:99/a%2Fb", "h:99 a/b u p@ false"),
        ("host=amqps://h/v;vhostName=w", "h:5671 w guest guest false"),
        ("host=amqp://u:p@h;auth.username=x;auth.password=y", "h:5672 / x y false"),
        ("host=amqps://h;auth.tls=enable;auth.cert=c;auth.key=k", "h:5671 / guest guest true"),
        ("host=amqps://u:p@h;auth.tls=enable;auth.cert=c;auth.key=k", "h:5671 / u p false"),
    ] {
        let spec = spec_of("rabbitmq", &format!("queueName=q;{text}"));
        let (question, _) = fields::read(&mut Fields::new(&spec));
        let Asked::Amqp { broker: b, .. } = question.asked else { panic!("{text} is not AMQP") };
        let found =
            format!("{} {} {} {} {}", b.address, b.vhost, b.user, b.password.expose(), b.external);
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn passwords_in_addresses_are_not_shown() {
    for host in ["amqp://u:hunter2@h:5672/v", "http://u:hunter2@h:15672/v"] {
        let parsed = crate::parse(&spec_of("rabbitmq", &format!("queueName=q;host={host}")));
        let parsed = parsed.expect("a trigger");
        let shown = format!("{parsed:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
