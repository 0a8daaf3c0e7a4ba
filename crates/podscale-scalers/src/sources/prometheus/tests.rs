use super::*;
use crate::tests::{outcome, spec_of};

#[test]
fn fields_are_checked_in_the_words_of_keda() {
    const CONTEXT: &str = "error parsing prometheus metadata: error parsing prometheus metadata: ";
    const GOOD: &str = "serverAddress=http://p:9090;query=up;threshold=10.5";
    for (text, expected) in [
        (GOOD.to_owned(), "s0-prometheus 10.5 0"),
        (format!("{GOOD};activationThreshold=2"), "s0-prometheus 10.5 2"),
        (
            format!(
                "{GOOD};queryParameters=a=b,c=d;customHeaders=X-Scope=a;timeout=500;unsafeSsl=true"
            ),
            "s0-prometheus 10.5 0",
        ),
        (
            "query=up".to_owned(),
            "missing required parameter \"serverAddress\" in [triggerMetadata]\n\
             missing required parameter \"threshold\" in [triggerMetadata]",
        ),
        (
            "serverAddress=p:9090;query=up;threshold=1".to_owned(),
            "parameter \"serverAddress\" is not an address of Prometheus: it has no scheme such as http://",
        ),
        (
            format!("{GOOD};authModes=bearer"),
            "bearer token=<empty> is required when bearer auth is enabled",
        ),
        (format!("{GOOD};authModes=bearer;auth.bearerToken=t"), "s0-prometheus 10.5 0"),
        (
            format!("{GOOD};authModes=bearer,basic"),
            "parameter \"authModes\" value \"bearer,basic\" must contain only one of [bearer basic oauth]",
        ),
        (
            format!("{GOOD};authModes=magic"),
            "parameter \"authModes\" value \"magic\" must be one of [apiKey basic tls bearer custom oauth]",
        ),
        (
            format!("{GOOD};authModes=tls;auth.cert=c"),
            "cert=<present> and key=<empty> are required when tls auth is enabled",
        ),
        (
            format!("{GOOD};authModes=custom;auth.customAuthHeader=X"),
            "customAuthHeader=<present> and customAuthValue=<empty> are required when custom auth is enabled",
        ),
        (
            format!("{GOOD};authModes=oauth;auth.clientID=c"),
            "oauthTokenURI=<empty> and clientID=<present> are required when oauth is enabled",
        ),
        (format!("{GOOD};awsRegion=eu-west-1"), "awsAccessKeyID not found"),
        (
            format!("{GOOD};awsRegion=r;auth.awsAccessKeyID=k;auth.awsSecretAccessKey=s"),
            "s0-prometheus 10.5 0",
        ),
    ] {
        let found = outcome("prometheus", &text);
        assert_eq!(found.strip_prefix(CONTEXT).unwrap_or(&found), expected, "{text}");
    }
}

#[test]
fn one_value_is_wanted() {
    for (values, ignore, expected) in [
        (&[][..], true, "0"),
        (&[], false, "prometheus metrics 'prometheus' target may be lost, the result is empty"),
        (&[1.5], true, "1.5"),
        (&[f64::NAN], true, "0"),
        (&[f64::NAN], false, "prometheus query returns NaN"),
        (&[f64::INFINITY], false, "prometheus query returns +Inf"),
        (&[1.0, 2.0], true, "prometheus query up returned multiple elements"),
    ] {
        let found = match number(values, "up", ignore) {
            Ok(value) => value.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected, "{values:?} {ignore}");
    }
}

#[test]
fn servers_are_told_apart_by_credentials_and_not_by_queries() {
    let key = |text: &str| {
        let text = format!("threshold=1;{text}");
        crate::parse(&spec_of("prometheus", &text)).expect("a trigger").server
    };
    let plain = key("serverAddress=http://p:9090;query=a");
    assert_eq!(plain, key("serverAddress=http://p:9090;query=b"));
    assert_eq!(plain, key("serverAddress=http://p:9090/prefix;query=b"));
    assert_ne!(plain, key("serverAddress=http://q:9090;query=a"));
    let token = |token: &str| {
        key(&format!(
            "serverAddress=http://p:9090;query=a;authModes=bearer;auth.bearerToken={token}"
        ))
    };
    assert_ne!(token("x"), token("y"));
    assert_ne!(plain, token("x"));
}

#[test]
fn parameters_are_in_the_order_and_form_in_which_they_are_signed() {
    let more = [("b".to_owned(), "x y+z".to_owned()), ("A".to_owned(), "*~".to_owned())];
    let found = pairs("sum(up{a=\"b\"})", "shop", &more);
    assert_eq!(found, "A=%2A~&b=x%20y%2Bz&namespace=shop&query=sum%28up%7Ba%3D%22b%22%7D%29");
    // By name, and not by what stands after a name that begins another one.
    let more = [("query-id".to_owned(), "1".to_owned()), ("query2".to_owned(), "2".to_owned())];
    assert_eq!(pairs("up", "", &more), "query=up&query-id=1&query2=2");
}
