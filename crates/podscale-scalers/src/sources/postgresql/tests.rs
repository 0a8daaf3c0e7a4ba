use super::connection::SslMode;
use super::*;
use crate::tests::{outcome, spec_of};

#[test]
fn fields_are_checked_in_the_words_of_keda() {
    const CONTEXT: &str = "error parsing postgreSQL metadata: ";
    const PARTS: &str = "host=h;port=5432;userName=u;dbName=d;sslmode=disable";
    for (text, expected) in [
        (format!("query=q;targetQueryValue=2.5;{PARTS}"), "s0-postgresql 2.5 0"),
        (
            "query=q;targetQueryValue=2;activationTargetQueryValue=1;auth.connection=host=h user=u"
                .to_owned(),
            "s0-postgresql 2 1",
        ),
        (format!("query=q;{PARTS}"), "no targetQueryValue given"),
        (
            format!("targetQueryValue=1;{PARTS}"),
            "error parsing postgresql metadata: missing required parameter \"query\" in [triggerMetadata]",
        ),
        (
            "query=q;targetQueryValue=1".to_owned(),
            "error parsing postgresql metadata: no host given",
        ),
        (
            "query=q;targetQueryValue=1;host=h;port=1;userName=u;dbName=d".to_owned(),
            "error parsing postgresql metadata: no sslmode given",
        ),
        (
            "query=q;targetQueryValue=1;auth.connection=hunter2".to_owned(),
            "error parsing postgresql metadata: the connection cannot be used: it is not name=value name=value",
        ),
        (
            "query=q;targetQueryValue=1;auth.connection=host=h sslrootcert=/etc/passwd".to_owned(),
            "error parsing postgresql metadata: the connection cannot be used: sslrootcert names a file, and \
             triggers may not read files",
        ),
    ] {
        let found = outcome("postgresql", &text);
        assert_eq!(found.strip_prefix(CONTEXT).unwrap_or(&found), expected, "{text}");
    }
}

#[test]
fn connection_strings_have_two_forms() {
    for (text, expected) in [
        ("host=h user=u password=p dbname=d", "h:5432 u p d Prefer  podscale"),
        (
            "host='a b' password = 'it\\'s \\\\' sslmode=require",
            "a b:5432  it's \\  Require  podscale",
        ),
        ("host=a,b port=1,2 sslmode=verify-ca", "a:1,b:2    VerifyCa  podscale"),
        ("host=h search_path=a application_name=x", "h:5432    Prefer -c search_path=a x"),
        ("postgres://u:p%40@h:5433/d?sslmode=verify-full", "h:5433 u p@ d VerifyFull  podscale"),
        ("postgresql://h", "h:5432    Prefer  podscale"),
        ("postgres://[::1]:5433/d", "::1:5433   d Prefer  podscale"),
        ("postgres://a:1,b/d", "a:1,b:5432   d Prefer  podscale"),
        ("host=h port=x", "port is not a number from 1 to 65535"),
        ("host=/var/run", "host is a socket of this machine, which holds no database"),
        (
            "host=h sslmode=maybe",
            "sslmode is none of disable, allow, prefer, require, verify-ca and verify-full",
        ),
        ("host='h", "a quote is not closed"),
        ("", "it is empty"),
    ] {
        let found = match Connection::parse(text) {
            Err(problem) => problem,
            Ok(c) => {
                let hosts: Vec<String> = c.hosts.iter().map(|(h, p)| format!("{h}:{p}")).collect();
                format!(
                    "{} {} {} {} {:?} {} {}",
                    hosts.join(","),
                    c.user,
                    c.password.expose(),
                    c.database,
                    c.ssl,
                    c.options,
                    c.application
                )
            }
        };
        assert_eq!(found, expected, "{text}");
    }
    assert_eq!(SslMode::default(), SslMode::Prefer);
}

#[test]
fn passwords_are_part_of_the_key_and_not_of_its_text() {
    let key = |password: &str| {
        let text =
            format!("query=q;targetQueryValue=1;auth.connection=host=h user=u password={password}");
        crate::parse(&spec_of("postgresql", &text)).expect("a trigger").server.expect("a server")
    };
    assert_ne!(key("hunter2"), key("hunter3"));
    assert_eq!(key("hunter2").address(), "postgresql h:5432/");
}

#[test]
fn the_first_column_is_a_number() {
    for (value, expected) in [
        (Some("12"), "12"),
        (Some("1.50"), "1.5"),
        (Some("-3"), "-3"),
        (
            Some("many"),
            "error inspecting postgreSQL: could not query postgreSQL: the first column of the first row is not a number",
        ),
        (
            None,
            "error inspecting postgreSQL: could not query postgreSQL: the first column of the first row is NULL",
        ),
    ] {
        let found = match number(value) {
            Ok(number) => number.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    }
}
