//! Logging in to a broker: by a password, by a token, or by a ticket.

use super::refusal::{check, unreachable};
use super::sasl::{Bearer, Login, Password};
use super::scram::Scram;
use super::wire::{self, Connection, Reader, Writer};
use crate::kerberos::Kerberos;
use crate::trigger::TriggerError;
use ring::rand::{SecureRandom, SystemRandom};
use std::io;
use std::sync::Arc;

/// What a broker's answer says that refuses a proof.
const REFUSED: i16 = 58;

/// Says who asks to the broker at an address.
///
/// # Errors
/// The broker cannot be reached, or refuses.
pub(super) async fn log_in(
    server: &Arc<str>,
    address: &str,
    connection: &mut Connection,
    login: &Login,
) -> Result<(), TriggerError> {
    match login {
        Login::Password(password) => by_password(server, connection, password).await,
        Login::Token(bearer) => by_token(server, connection, bearer).await,
        Login::Tickets { kerberos, service } => {
            let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
            let host = host.trim_start_matches('[').trim_end_matches(']');
            by_ticket(server, connection, kerberos, (service, host)).await
        }
    }
}

fn refused(server: &Arc<str>, problem: &str) -> TriggerError {
    TriggerError::Unauthorized { server: server.clone(), problem: problem.into() }
}

async fn by_password(
    server: &Arc<str>,
    connection: &mut Connection,
    password: &Password,
) -> Result<(), TriggerError> {
    let Password { hash, user, password } = password;
    let mechanism = hash.map_or("PLAIN", |hash| hash.mechanism());
    begin(server, connection, mechanism).await?;
    let (user, password) = (user.expose(), password.expose());
    let Some(hash) = *hash else {
        let plain = format!("\0{user}\0{password}");
        return authenticate(server, connection, &plain).await.map(drop);
    };
    let nonce = nonce().ok_or_else(|| refused(server, "there is no randomness to log in with"))?;
    let scram = Scram { hash, user, password, nonce: &nonce };
    let challenge = authenticate(server, connection, &scram.first()).await?;
    let last = scram.last(&challenge).map_err(|problem| refused(server, problem))?;
    let verified = authenticate(server, connection, &last.message).await?;
    if verified.split(',').next() == Some(last.expected.as_str()) {
        return Ok(());
    }
    Err(refused(server, "it does not know the password itself"))
}

async fn by_token(
    server: &Arc<str>,
    connection: &mut Connection,
    bearer: &Bearer,
) -> Result<(), TriggerError> {
    let (token, message) = bearer.message().await?;
    begin(server, connection, "OAUTHBEARER").await?;
    let answered = match authenticate(server, connection, message.expose()).await {
        Ok(problem) if problem.is_empty() => return Ok(()),
        // A broker says first what it does not like, and refuses once that was heard.
        Ok(problem) => match authenticate(server, connection, "\x01").await {
            Err(error) if error.is_outage() => Err(error),
            _ => Err(refused(server, &problem)),
        },
        Err(error) => Err(error),
    };
    let Err(TriggerError::Unauthorized { problem, .. }) = &answered else { return answered };
    bearer.forget().await;
    // Nobody else knows the token and hides it.
    let repeats = problem.contains(token.expose());
    Err(refused(server, if repeats { "it does not accept the token" } else { problem }))
}

async fn by_ticket(
    server: &Arc<str>,
    connection: &mut Connection,
    kerberos: &Kerberos,
    (service, host): (&str, &str),
) -> Result<(), TriggerError> {
    let (begun, token) = kerberos.begin(service, host).await?;
    begin(server, connection, "GSSAPI").await?;
    let wrong = |problem: String| refused(server, &problem);
    let prove = async {
        let proved = begun.proved(&exchange(server, connection, &token).await?).map_err(wrong)?;
        // The broker goes on once it knows that its proof was read.
        let offered = exchange(server, connection, &[]).await?;
        let choice = proved.choose(&offered).map_err(wrong)?;
        exchange(server, connection, &choice).await.map(drop)
    };
    let answered = prove.await;
    if let Err(TriggerError::Unauthorized { .. }) = &answered {
        // Brokers may have other keys by now than those that the tickets are for.
        kerberos.forget().await;
    }
    answered
}

/// Says how it will be proved who asks.
async fn begin(
    server: &Arc<str>,
    connection: &mut Connection,
    mechanism: &str,
) -> Result<(), TriggerError> {
    let mut request = Writer::default();
    request.text(mechanism);
    let answer = connection.call(wire::SASL_HANDSHAKE, &request).await;
    let answer = answer.map_err(|error| unreachable(server, &error))?;
    let code = Reader(&answer).i16().map_err(|error| unreachable(server, &error))?;
    check(server, "logging in", code)
}

/// One step of logging in, in texts.
async fn authenticate(
    server: &Arc<str>,
    connection: &mut Connection,
    message: &str,
) -> Result<String, TriggerError> {
    let answer = exchange(server, connection, message.as_bytes()).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// One step of logging in.
async fn exchange(
    server: &Arc<str>,
    connection: &mut Connection,
    message: &[u8],
) -> Result<Vec<u8>, TriggerError> {
    let mut request = Writer::default();
    request.bytes(message);
    let answer = connection.call(wire::SASL_AUTHENTICATE, &request).await;
    let answer = answer.map_err(|error| unreachable(server, &error))?;
    let (code, problem, bytes) = proved(&answer).map_err(|error| unreachable(server, &error))?;
    if code == REFUSED && !problem.is_empty() {
        return Err(refused(server, &problem));
    }
    check(server, "logging in", code)?;
    Ok(bytes)
}

fn nonce() -> Option<String> {
    let mut bytes = [0; 24];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(crate::hmac::hex(&bytes))
}

fn proved(answer: &[u8]) -> io::Result<(i16, String, Vec<u8>)> {
    let mut reader = Reader(answer);
    Ok((reader.i16()?, reader.text()?, reader.bytes()?))
}
