use super::*;
use crate::tests::{outcome, spec_of};

#[test]
fn fields_are_checked_in_the_words_of_keda() {
    const CONTEXT: &str = "error parsing SQS queue metadata: error parsing SQS queue metadata: ";
    const KEYS: &str = "auth.awsAccessKeyID=k;auth.awsSecretAccessKey=s;awsRegion=eu-central-1";
    const URL: &str = "queueURL=https://sqs.eu-central-1.amazonaws.com/0123/orders";
    for (text, expected) in [
        (format!("{KEYS};{URL}"), "s0-aws-sqs-orders 5 0"),
        (
            format!("{KEYS};queueURL=orders;queueLength=7;activationQueueLength=2"),
            "s0-aws-sqs-orders 7 2",
        ),
        (
            "auth.awsAccessKeyID=k;auth.awsSecretAccessKey=s".to_owned(),
            "missing required parameter \"queueURL\" in [triggerMetadata resolvedEnv]\n\
             missing required parameter \"awsRegion\" in [triggerMetadata authParams]",
        ),
        (format!("{KEYS};queueURL=http://h/orders"), "cannot get queueName from queueURL"),
        (
            format!("{KEYS};{URL};awsEndpoint=h:1"),
            "awsEndpoint cannot be used: it has no scheme such as http://",
        ),
        (format!("{URL};awsRegion=r"), "awsAccessKeyID not found"),
        (format!("{URL};awsRegion=r;auth.awsAccessKeyID=k"), "awsSecretAccessKey not found"),
        (format!("{KEYS};{URL};auth.awsRoleArn=a"), "awsRoleArn needs the controller's identity"),
        (
            format!("{KEYS};{URL};identityOwner=operator"),
            "identityOwner operator needs the controller's identity",
        ),
    ] {
        let found = outcome("aws-sqs-queue", &text);
        assert_eq!(found.strip_prefix(CONTEXT).unwrap_or(&found), expected, "{text}");
    }
}

#[test]
fn endpoints_are_those_of_the_region() {
    for (given, region, expected) in [
        ("", "eu-central-1", "https://sqs.eu-central-1.amazonaws.com"),
        ("", "cn-north-1", "https://sqs.cn-north-1.amazonaws.com.cn"),
        ("http://h:9324", "r", "http://h:9324"),
    ] {
        assert_eq!(endpoint_of(given, region), expected);
    }
}

#[test]
fn secrets_are_part_of_the_key_and_not_shown() {
    let parsed = |secret: &str| {
        let text = format!(
            "queueURL=q;awsRegion=r;auth.awsAccessKeyID=k;auth.awsSecretAccessKey={secret}"
        );
        crate::parse(&spec_of("aws-sqs-queue", &text)).expect("a trigger")
    };
    let (one, other) = (parsed("hunter2"), parsed("hunter3"));
    assert_ne!(one.server, other.server);
    assert!(!format!("{one:?}").contains("hunter2"));
}

#[test]
fn all_attributes_count() {
    for (body, expected) in [
        (r#"{"Attributes":{"ApproximateNumberOfMessages":"3"}}"#, "3"),
        (
            r#"{"Attributes":{"ApproximateNumberOfMessages":"3","ApproximateNumberOfMessagesNotVisible":"2"}}"#,
            "5",
        ),
        ("{}", "there is no number"),
        (
            r#"{"Attributes":{"ApproximateNumberOfMessages":"x"}}"#,
            "ApproximateNumberOfMessages is not a number",
        ),
    ] {
        let found = match total(body.as_bytes()) {
            Ok(total) => total.to_string(),
            Err(error) => error.to_string(),
        };
        let context = "error getting the length of the SQS queue: ";
        assert_eq!(found.strip_prefix(context).unwrap_or(&found), expected);
    }
    assert!(total(b"<html>").is_err());
}

#[test]
fn wrong_credentials_are_told_from_wrong_questions() {
    for (status, kind, expected) in [
        (
            400,
            "com.amazon.coral.service#UnrecognizedClientException",
            "s refuses the credentials: it answers 400 UnrecognizedClientException",
        ),
        (
            403,
            "SignatureDoesNotMatch",
            "s refuses the credentials: it answers 403 SignatureDoesNotMatch",
        ),
        (
            400,
            "com.amazonaws.sqs#QueueDoesNotExist",
            "s gives no value: it answers 400: {\"__type\":\"com.amazonaws.sqs#QueueDoesNotExist\"}",
        ),
        (
            503,
            "ServiceUnavailable",
            "s cannot be reached: it answers 503: {\"__type\":\"ServiceUnavailable\"}",
        ),
    ] {
        let status = StatusCode::from_u16(status).expect("a status");
        let body = format!("{{\"__type\":\"{kind}\"}}");
        let keys = Keys { secret: "hunter2".into(), ..Keys::default() };
        let (error, fault) = refused(&"s".into(), status, body.as_bytes(), &keys);
        assert_eq!(error.to_string(), expected);
        assert_eq!(fault == Fault::Keys, kind.contains("UnrecognizedClient"), "{kind}");
    }
    let keys = Keys { secret: "hunter2".into(), ..Keys::default() };
    for body in [b"".as_slice(), b"{\"message\":\"hunter2\"}"] {
        let (error, _) = refused(&"s".into(), StatusCode::BAD_REQUEST, body, &keys);
        assert_eq!(error.to_string(), "s gives no value: it answers 400");
    }
}
