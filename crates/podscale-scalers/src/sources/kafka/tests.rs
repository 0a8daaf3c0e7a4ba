use super::*;
use crate::tests::{outcome, spec_of};

#[test]
fn fields_are_checked_in_the_words_of_keda() {
    const CONTEXT: &str = "error parsing kafka metadata: error parsing kafka metadata: ";
    const GOOD: &str = "bootstrapServers=a:9092,b:9092;consumerGroup=g";
    for (text, expected) in [
        (format!("{GOOD};topic=orders.new"), "s0-kafka-orders-new 10 0"),
        (GOOD.to_owned(), "s0-kafka-g-topics 10 0"),
        (
            format!(
                "{GOOD};topic=t;lagThreshold=5;activationLagThreshold=3;version=2.0.0;partitionLimitation=1,3-5"
            ),
            "s0-kafka-t 5 3",
        ),
        (
            format!("{GOOD};sasl=scram_sha512;tls=enable;auth.username=u;auth.password=p"),
            "s0-kafka-g-topics 10 0",
        ),
        (
            String::new(),
            "missing required parameter \"bootstrapServers\" in [triggerMetadata resolvedEnv]\n\
             missing required parameter \"consumerGroup\" in [triggerMetadata resolvedEnv]",
        ),
        (format!("{GOOD};lagThreshold=0"), "\"lagThreshold\" must be positive number"),
        (
            format!("{GOOD};activationLagThreshold=-1"),
            "\"activationLagThreshold\" must be a non-negative number",
        ),
        (
            format!("{GOOD};offsetResetPolicy=first"),
            "parameter \"offsetResetPolicy\" value \"first\" must be one of [latest earliest]",
        ),
        (
            format!("{GOOD};topic=t;limitToPartitionsWithLag=true;allowIdleConsumers=true"),
            "allowIdleConsumers and limitToPartitionsWithLag cannot be set simultaneously",
        ),
        (
            format!("{GOOD};limitToPartitionsWithLag=true"),
            "topic must be specified when using limitToPartitionsWithLag",
        ),
        (
            format!("{GOOD};ensureEvenDistributionOfPartitions=true"),
            "topic must be specified when using ensureEvenDistributionOfPartitions",
        ),
        (
            format!(
                "{GOOD};topic=t;limitToPartitionsWithLag=true;ensureEvenDistributionOfPartitions=true"
            ),
            "limitToPartitionsWithLag and ensureEvenDistributionOfPartitions cannot be set simultaneously",
        ),
        (
            format!("{GOOD};fullMetadata=false"),
            "topic must be specified when fullMetadata is false",
        ),
        (
            format!("{GOOD};partitionLimitation=1,x"),
            "parameter \"partitionLimitation\" value \"x\" is no partition",
        ),
        (format!("{GOOD};sasl=plaintext"), "no username given"),
        (format!("{GOOD};sasl=plaintext;auth.username=u"), "no password given"),
        (format!("{GOOD};sasl=gssapi"), "no username given"),
        (format!("{GOOD};auth.tls=enable;auth.cert=c"), "key must be provided with cert"),
    ] {
        let found = outcome("kafka", &text);
        assert_eq!(found.strip_prefix(CONTEXT).unwrap_or(&found), expected, "{text}");
    }
}

#[test]
fn partitions_that_are_named_count() {
    for (ranges, expected) in [
        (vec![], [true, true, true, true]),
        (vec![(1, 1)], [false, true, false, false]),
        (vec![(0, 0), (2, 9)], [true, false, true, true]),
    ] {
        let question = Question { partitions: ranges, ..Question::default() };
        assert_eq!([0, 1, 2, 3].map(|id| question.counts(id)), expected);
    }
}

#[test]
fn positions_are_shared_as_numbers() {
    let all = [
        Position { partition: (0, 3), committed: lag::NONE, latest: 7, first: 2 },
        Position { partition: (1, 0), committed: 1 << 50, latest: (1 << 50) + 1, first: 0 },
    ];
    assert_eq!(positions(&numbers(&all)), all);
}

#[test]
fn passwords_are_part_of_the_key_and_not_shown() {
    let parsed = |password: &str| {
        let text = format!(
            "bootstrapServers=a:1;consumerGroup=g;sasl=plaintext;auth.username=u;auth.password={password}"
        );
        crate::parse(&spec_of("kafka", &text)).expect("a trigger")
    };
    let (one, other) = (parsed("hunter2"), parsed("hunter3"));
    assert_ne!(one.server, other.server);
    assert!(!format!("{one:?}").contains("hunter2"));
}

#[test]
fn tokens_need_a_server_of_tokens_or_somebody_whom_amazon_knows() {
    const CONTEXT: &str = "error parsing kafka metadata: error parsing kafka metadata: ";
    const TOKENS: &str = "error parsing OAuth token provider configuration: ";
    const GOOD: &str = "bootstrapServers=a:1;consumerGroup=g;topic=t;sasl=oauthbearer";
    const CLIENT: &str =
        "auth.username=u;auth.password=p;auth.oauthTokenEndpointUri=http://h/token";
    const MSK: &str = "saslTokenProvider=aws_msk_iam";
    const KEYS: &str = "auth.awsAccessKeyID=k;auth.awsSecretAccessKey=s";
    let bad = "invalid OAuthBearer extension, must be of format key=value";
    for (text, expected) in [
        (format!("{GOOD};{CLIENT}"), "s0-kafka-t 10 0"),
        (
            format!("{GOOD};{CLIENT};auth.scopes=a,b;auth.oauthExtensions=a=b,c=d"),
            "s0-kafka-t 10 0",
        ),
        (GOOD.to_owned(), "no username given"),
        (format!("{GOOD};auth.username=u"), "no password given"),
        (format!("{GOOD};auth.username=u;auth.password=p"), "no oauth token endpoint uri given"),
        (format!("{GOOD};{CLIENT};auth.oauthExtensions=a"), bad),
        (format!("{GOOD};{CLIENT};auth.oauthExtensions=a=b=c"), bad),
        (format!("{GOOD};{CLIENT};auth.oauthExtensions=auth=b"), bad),
        (format!("{GOOD};{CLIENT};auth.oauthExtensions=a=b\u{1}c"), bad),
        (format!("{GOOD};{MSK};tls=enable;awsRegion=r;{KEYS}"), "s0-kafka-t 10 0"),
        (format!("{GOOD};{MSK};awsRegion=r;{KEYS}"), "TLS is required for AWS MSK authentication"),
        (format!("{GOOD};{MSK};tls=enable;{KEYS}"), "no awsRegion given"),
        (format!("{GOOD};{MSK};tls=enable;awsRegion=r"), "awsAccessKeyID not found"),
        (
            format!("{GOOD};saslTokenProvider=magic"),
            "parameter \"saslTokenProvider\" value \"magic\" must be one of [bearer aws_msk_iam]",
        ),
    ] {
        let found = outcome("kafka", &text);
        let found = found.strip_prefix(CONTEXT).unwrap_or(&found);
        let found = found.lines().next().unwrap_or_default();
        assert_eq!(found.strip_prefix(TOKENS).unwrap_or(found), expected, "{text:?}");
    }
}
