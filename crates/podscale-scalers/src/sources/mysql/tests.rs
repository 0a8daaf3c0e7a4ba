use super::dsn::TlsMode;
use super::*;
use crate::tests::{outcome, spec_of};

#[test]
fn fields_are_checked_in_the_words_of_keda() {
    const CONTEXT: &str = "error parsing MySQL metadata: error parsing mysql metadata: ";
    const PARTS: &str = "host=h;port=3306;username=u;dbName=d;auth.password=p";
    const ASKED: &str = "query=q;queryValue=2.5";
    for (text, expected) in [
        (format!("{ASKED};{PARTS}"), "s0-mysql-d 2.5 0"),
        (
            format!("{ASKED};activationQueryValue=1;auth.connectionString=u:p@tcp(h:1)/shop"),
            "s0-mysql-shop 2.5 1",
        ),
        (format!("{ASKED};{PARTS};tls=skip-verify"), "s0-mysql-d 2.5 0"),
        (
            format!("{ASKED};{PARTS};tls=maybe"),
            "tls is none of true, false, skip-verify and preferred",
        ),
        (
            PARTS.to_owned(),
            "missing required parameter \"query\" in [triggerMetadata]\n\
             missing required parameter \"queryValue\" in [triggerMetadata]",
        ),
        (ASKED.to_owned(), "no host given"),
        (format!("{ASKED};host=h;port=1;username=u;dbName=d"), "no password given"),
        (
            format!("{ASKED};auth.connectionString=hunter2"),
            "the connectionString cannot be used: it has no / before the database",
        ),
    ] {
        let found = outcome("mysql", &text);
        assert_eq!(found.strip_prefix(CONTEXT).unwrap_or(&found), expected, "{text}");
    }
}

#[test]
fn connection_strings_are_those_of_gos_driver() {
    for (text, expected) in [
        ("u:p@tcp(h:3307)/d", "h:3307 u p d Off"),
        ("u:p@ss/w:rd@tcp(h)/d?tls=true&timeout=5s", "h:3306 u p@ss/w:rd d On"),
        ("u@tcp([::1]:3306)/", "[::1]:3306 u   Off"),
        ("/d", "127.0.0.1:3306   d Off"),
        ("u@tcp(h:1)/d?tls=skip-verify", "h:1 u  d SkipVerify"),
        ("u@tcp(h:1)/d?tls=preferred", "h:1 u  d Preferred"),
        ("u@tcp(h:1)/d?tls=custom", "tls is none of true, false, skip-verify and preferred"),
        (
            "u@unix(/run/mysqld.sock)/d",
            "it names a socket of this machine, which holds no database",
        ),
        ("u@tcp(h:1/d", "a bracket is not closed"),
        ("u@h:1/d", "it has no tcp(host:port)"),
        ("d", "it has no / before the database"),
    ] {
        let found = match Connection::parse(text) {
            Err(problem) => problem,
            Ok(c) => {
                let password = c.password.expose();
                format!("{} {} {password} {} {:?}", c.address, c.user, c.database, c.tls)
            }
        };
        assert_eq!(found, expected, "{text}");
    }
    assert_eq!(TlsMode::default(), TlsMode::Off);
}

#[test]
fn passwords_are_part_of_the_key_and_not_of_its_text() {
    let key = |password: &str| {
        let text = format!("query=q;queryValue=1;auth.connectionString=u:{password}@tcp(h:1)/d");
        let parsed = crate::parse(&spec_of("mysql", &text)).expect("a trigger");
        assert!(!format!("{parsed:?}").contains(password));
        parsed.server.expect("a server")
    };
    assert_ne!(key("hunter2"), key("hunter3"));
    assert_eq!(key("hunter2").address(), "mysql h:1/d");
}

#[test]
fn tls_can_be_a_field() {
    let key = |tls: &str| {
        let parts = "host=h;port=1;username=u;dbName=d;auth.password=p";
        let text = format!("query=q;queryValue=1;{parts}{tls}");
        crate::parse(&spec_of("mysql", &text)).expect("a trigger").server.expect("a server")
    };
    assert_eq!(key(""), key(";tls=false"));
    assert_ne!(key(""), key(";tls=true"));
    assert_ne!(key(";tls=skip-verify"), key(";tls=true"));
}

#[test]
fn the_first_column_is_a_number() {
    for (value, expected) in [
        (Some("12"), "12"),
        (Some("1.50"), "1.5"),
        (Some("many"), "error inspecting MySQL: the first column of the first row is not a number"),
        (None, "error inspecting MySQL: the first column of the first row is NULL"),
    ] {
        let found = match number(value) {
            Ok(number) => number.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    }
}
