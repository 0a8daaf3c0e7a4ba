//! What went wrong, in the words of the most telling cause, and without what is secret: errors of
//! credentials may quote them, and people read these texts in logs, conditions and on the admin port.

use kube::client::AuthError;
use std::error::Error;

/// The innermost cause: wrappers only repeat that something failed.
#[must_use]
pub fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    loop {
        if let Some(auth) = cause.downcast_ref::<AuthError>() {
            return credentials(auth);
        }
        match cause.source() {
            Some(next) => cause = next,
            None => return cause.to_string(),
        }
    }
}

/// An error and its causes in one line, without repetitions.
#[must_use]
pub fn one_line(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut cause = Some(error);
    while let Some(next) = cause {
        let auth = next.downcast_ref::<AuthError>();
        let words = auth.map_or_else(|| next.to_string(), credentials);
        // Wrappers of such an error repeat it whole.
        if auth.is_some() {
            text = words;
            break;
        }
        if !text.contains(&words) {
            let colon = if text.is_empty() { "" } else { ": " };
            text = format!("{text}{colon}{words}");
        }
        cause = next.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is wrong with credentials, without any part of them.
fn credentials(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecRun { out, .. } => format!(
            "the credential plugin that the kubeconfig names failed ({}); what it printed may be \
             secret and is not shown",
            out.status
        ),
        AuthError::AuthExecParse(_) | AuthError::ParseTokenKey(_) | AuthError::AuthExec(_) => {
            "the credential plugin that the kubeconfig names gave no credential that can be used"
                .to_owned()
        }
        plain => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{ExitStatus, Output};

    #[test]
    fn credentials_are_never_quoted() {
        let out = Output {
            status: ExitStatus::from_raw(7 << 8),
            stdout: b"SECRET".to_vec(),
            stderr: b"SECRET".to_vec(),
        };
        let failed = AuthError::AuthExecRun { cmd: "KEY=SECRET x".into(), out: Box::new(out) };
        let strange = AuthError::AuthExec("SECRET is no token".into());
        for (error, words) in
            [(failed, "failed (exit status: 7); what it printed"), (strange, "gave no credential")]
        {
            let error = kube::Error::Service(Box::new(kube::Error::Auth(error)));
            for text in [innermost(&error), one_line(&error)] {
                assert!(text.contains(words) && !text.contains("SECRET"), "{text}");
            }
        }
    }

    #[test]
    fn other_causes_are_told() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let error = kube::Error::Service(Box::new(refused));
        assert_eq!(innermost(&error), "connection refused");
        assert_eq!(one_line(&error), "ServiceError: connection refused");
    }
}
