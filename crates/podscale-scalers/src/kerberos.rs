//! Kerberos: who asks, proved to services by tickets that a KDC gives for a password or a key. By TCP, with AES, and with
//! nothing but what services of SASL need.

mod account;
mod config;
mod crypto;
mod der;
mod gss;
mod kdc;
mod keytab;
mod message;
#[cfg(test)]
mod tests;

use crate::context::{Clock, Context};
use crate::trigger::{ServerKey, TriggerError};
use crypto::Etype;
use gss::{Agreed, Broken, Initiator};
use jiff::{SignedDuration, Timestamp};
use message::{Answer, Principal, Refusal, Request, Ticket, Unusable};
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

pub(crate) use account::Account;

/// A ticket is fetched anew so long before it expires.
const EARLY: SignedDuration = SignedDuration::from_secs(30);
/// How long a refusal is believed: some KDCs lock an account that often proves itself wrongly. And how often tickets that
/// a service refuses are fetched anew.
const PAUSE: Duration = Duration::from_secs(10);
/// How long a KDC may take: alone, or beside others that can be asked within a poll's time.
const ALONE: Duration = Duration::from_millis(2500);
const BESIDE_OTHERS: Duration = Duration::from_secs(1);
/// How many tickets are kept at most.
const MOST_TICKETS: usize = 256;
/// Through how many realms the way to a service may lead.
const MOST_REALMS: usize = 5;
/// What KDCs say by numbers.
const UNKNOWN_CLIENT: i64 = 6;
const UNKNOWN_SERVICE: i64 = 7;
const NO_ETYPE: i64 = 14;
const REVOKED: i64 = 18;
const PASSWORD_EXPIRED: i64 = 23;
const WRONG_PROOF: i64 = 24;
const PROOF_NEEDED: i64 = 25;
const NOT_THAT_SERVICE: i64 = 35;
const SKEW: i64 = 37;
const MODIFIED: i64 = 41;

/// Somebody who gets tickets, and keeps them until shortly before they expire.
pub(crate) struct Kerberos {
    account: Account,
    clock: Clock,
    /// Which KDC of several answered last.
    answered: AtomicUsize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// What others are had by.
    first: Option<Ticket>,
    by_service: HashMap<Principal, Ticket>,
    refused: Option<(TriggerError, Instant)>,
    /// When all were dropped.
    dropped: Option<Instant>,
}

impl Account {
    /// The tickets that all triggers of the same account share. Asks for nothing yet.
    pub(crate) fn share(self, context: &Context) -> Result<Arc<Kerberos>, TriggerError> {
        let key = ServerKey::new("kerberos", &self.client.realm, &self.key());
        context.connections.share(&key, || Ok(Kerberos::new(self, context.clock.clone())))
    }
}

impl Kerberos {
    fn new(account: Account, clock: Clock) -> Kerberos {
        Kerberos { account, clock, answered: AtomicUsize::new(0), kept: Mutex::default() }
    }

    /// Begins to prove who asks to a service of a host, with the first token.
    ///
    /// # Errors
    /// There is no ticket for it.
    pub(crate) async fn begin(
        &self,
        service: &str,
        host: &str,
    ) -> Result<(Begun, Vec<u8>), TriggerError> {
        let ticket = self.ticket(service, host).await?;
        let (now, confounder) = ((self.clock)(), random()?);
        let number = number()?;
        let client = &self.account.client;
        let (begun, token) = Initiator::begin(&ticket, client, now, number, &confounder);
        Ok((Begun(begun), token))
    }

    /// Drops all tickets, since one was refused, unless they were a moment ago.
    pub(crate) async fn forget(&self) {
        let mut kept = self.kept.lock().await;
        if kept.dropped.is_none_or(|dropped| dropped.elapsed() >= PAUSE) {
            *kept = Kept { dropped: Some(Instant::now()), ..Kept::default() };
        }
    }

    /// A ticket for a service that is valid for a while; all who wait share one that is fetched.
    async fn ticket(&self, service: &str, host: &str) -> Result<Ticket, TriggerError> {
        let mut kept = self.kept.lock().await;
        let principal = Principal::service(service, host);
        let is_usable = |ticket: &&Ticket| ticket.lasts((self.clock)());
        if let Some(ticket) = kept.by_service.get(&principal).filter(is_usable) {
            return Ok(ticket.clone());
        }
        let first = match kept.first.as_ref().filter(is_usable) {
            Some(first) => first.clone(),
            None => self.first_or_refusal(&mut kept).await?,
        };
        let ticket = match self.ticket_by(first, &principal, host).await {
            Ok(ticket) => ticket,
            Err(error) => {
                // It may be that which is refused.
                if !error.is_outage() {
                    kept.first = None;
                }
                return Err(error);
            }
        };
        if kept.by_service.len() >= MOST_TICKETS {
            kept.by_service.clear();
        }
        kept.by_service.insert(principal, ticket.clone());
        Ok(ticket)
    }

    async fn first_or_refusal(&self, kept: &mut Kept) -> Result<Ticket, TriggerError> {
        if let Some((refused, until)) = &kept.refused
            && Instant::now() < *until
        {
            return Err(refused.clone());
        }
        let first = self.first().await;
        kept.refused = match &first {
            // An outage is what circuit breakers are for.
            Err(error) if !error.is_outage() => Some((error.clone(), Instant::now() + PAUSE)),
            _ => None,
        };
        kept.first = Some(first?);
        kept.first.clone().ok_or_else(|| TriggerError::answer("there is no ticket"))
    }

    /// The ticket that others are had by, for a password or key.
    async fn first(&self) -> Result<Ticket, TriggerError> {
        let Account { client, .. } = &self.account;
        let (realm, etypes) = (client.realm.as_str(), self.account.etypes());
        let service = Principal::granting(realm);
        let request = self.request(realm, &service, &etypes)?;
        let refusal = match self.send(realm, &request.first(None)).await? {
            Ok(answer) => {
                let key = self.account.key_for(answer.etype, &answer.hints);
                let key = key.map_err(|problem| self.refused(realm, &problem))?;
                let ticket = request.first_ticket(&answer, &key);
                return ticket.map_err(|unusable| self.unusable(realm, unusable));
            }
            Err(refusal) if refusal.code == PROOF_NEEDED => refusal,
            Err(refusal) => return Err(self.refusal(realm, &service, &refusal)),
        };
        let key = self.account.preferred(&refusal.hints);
        let key = key.map_err(|problem| self.refused(realm, &problem))?;
        let request = self.request(realm, &service, &etypes)?;
        let sent = request.first(Some((&key, &random()?)));
        let answer = self.send(realm, &sent).await?;
        let answer = answer.map_err(|refusal| self.refusal(realm, &service, &refusal))?;
        let key = match answer.etype == key.etype.number() {
            true => key,
            false => {
                let hints = if answer.hints.is_empty() { &refusal.hints } else { &answer.hints };
                let other = self.account.key_for(answer.etype, hints);
                other.map_err(|problem| self.refused(realm, &problem))?
            }
        };
        let ticket = request.first_ticket(&answer, &key);
        ticket.map_err(|unusable| self.unusable(realm, unusable))
    }

    /// A ticket by another, perhaps through other realms.
    async fn ticket_by(
        &self,
        first: Ticket,
        service: &Principal,
        host: &str,
    ) -> Result<Ticket, TriggerError> {
        let own = self.account.client.realm.as_str();
        let target = self.account.config.realm_of(host).unwrap_or(own);
        let (mut realm, mut by) = (own.to_owned(), first);
        for _ in 0..MOST_REALMS {
            let wanted = match realm == target {
                true => service.clone(),
                false => Principal::granting(target),
            };
            let request = self.request(&realm, &wanted, &Etype::ALL)?;
            let answer = self.send(&realm, &request.next(&by, &random()?)).await?;
            let answer = answer.map_err(|refusal| self.refusal(&realm, &wanted, &refusal))?;
            let ticket = request.next_ticket(&answer, &by);
            let ticket = ticket.map_err(|unusable| self.unusable(&realm, unusable))?;
            match ticket.service.grants() {
                Some(next) => realm = next.to_owned(),
                None => return Ok(ticket),
            }
            by = ticket;
        }
        let problem = format!("the way to {service} leads through more than {MOST_REALMS} realms");
        Err(TriggerError::answer(problem))
    }

    fn request<'a>(
        &'a self,
        realm: &'a str,
        service: &'a Principal,
        etypes: &'a [Etype],
    ) -> Result<Request<'a>, TriggerError> {
        let (client, now, nonce) = (&self.account.client, (self.clock)(), number()?);
        Ok(Request { client, realm, service, etypes, now, nonce })
    }

    /// Asks the KDCs of a realm, the one first that answered last.
    async fn send(
        &self,
        realm: &str,
        request: &[u8],
    ) -> Result<Result<Answer, Refusal>, TriggerError> {
        let kdcs = self.account.config.kdcs(realm);
        let kdcs = kdcs.map_err(|problem| TriggerError::Settings(problem.into()))?;
        let patience = if kdcs.len() > 1 { BESIDE_OTHERS } else { ALONE };
        let first = self.answered.load(Ordering::Relaxed);
        let mut last = TriggerError::Late(format!("the KDC of {realm}").into());
        for number in (0..kdcs.len()).map(|number| number.wrapping_add(first)) {
            let Some(kdc) = kdcs.get(number % kdcs.len()) else { continue };
            let name: Arc<str> = format!("KDC {kdc}").into();
            match tokio::time::timeout(patience, kdc::exchange(kdc, &name, request)).await {
                Ok(Ok(bytes)) => {
                    self.answered.store(number, Ordering::Relaxed);
                    return message::answer(&bytes).map_err(|_| {
                        TriggerError::answer(format!(
                            "{name} answers something that is not Kerberos"
                        ))
                    });
                }
                Ok(Err(error)) => last = error,
                Err(_) => last = TriggerError::Late(name),
            }
        }
        Err(last)
    }

    fn refused(&self, realm: &str, problem: &str) -> TriggerError {
        let server = format!("the KDC of {realm}").into();
        TriggerError::Unauthorized { server, problem: problem.into() }
    }

    /// What a KDC's refusal means, and what to do.
    fn refusal(&self, realm: &str, service: &Principal, refusal: &Refusal) -> TriggerError {
        let client = &self.account.client;
        self.refused(
            realm,
            &match refusal.code {
                UNKNOWN_CLIENT => {
                    format!("it knows no principal {client}: check username and realm")
                }
                UNKNOWN_SERVICE => format!(
                    "it knows no service {service}@{realm}: check kerberosServiceName, and that brokers are \
                     named as their principals are"
                ),
                NO_ETYPE => "it has no AES keys for this: give the principals some".to_owned(),
                REVOKED => format!("{client} is locked, disabled or expired"),
                PASSWORD_EXPIRED => format!("the password of {client} has expired: set another"),
                WRONG_PROOF => self.account.wrong(),
                PROOF_NEEDED => "it wants another proof than the encrypted time, such as FAST with \
                                 an armor, which is not supported"
                    .to_owned(),
                SKEW => SKEWED.to_owned(),
                code if refusal.text.is_empty() => format!("error {code} of Kerberos"),
                code => format!("error {code} of Kerberos: {}", refusal.text),
            },
        )
    }

    fn unusable(&self, realm: &str, unusable: Unusable) -> TriggerError {
        match unusable {
            Unusable::Key => self.refused(realm, &self.account.wrong()),
            Unusable::Etype(etype) => {
                let problem = format!(
                    "it gives a key of type {etype}; only those with AES are supported: give the principals some"
                );
                self.refused(realm, &problem)
            }
            Unusable::Malformed => TriggerError::answer(format!(
                "the KDC of {realm} answers something else than was asked"
            )),
        }
    }
}

/// What is to be done if clocks differ.
const SKEWED: &str = "its clock differs too much from the controller's: synchronize both";

impl Ticket {
    /// Whether it can be used for a while.
    fn lasts(&self, now: Timestamp) -> bool {
        now.checked_add(EARLY).is_ok_and(|soon| soon < self.ends)
    }
}

/// A proof that was begun.
pub(crate) struct Begun(Initiator);

/// A proof that both sides have given.
pub(crate) struct Proved(Agreed);

impl Begun {
    /// Reads the service's own proof.
    ///
    /// # Errors
    /// It refuses, or is another than the ticket is for; in words for people.
    pub(crate) fn proved(self, token: &[u8]) -> Result<Proved, String> {
        self.0.proved(token).map(Proved).map_err(|broken| broken.text())
    }
}

impl Proved {
    /// Answers the service's offer to protect what follows with that there is no need.
    ///
    /// # Errors
    /// It insists, or is another than the ticket is for; in words for people.
    pub(crate) fn choose(&self, token: &[u8]) -> Result<Vec<u8>, String> {
        self.0.choose(token).map_err(|broken| broken.text())
    }
}

impl Broken {
    fn text(&self) -> String {
        match self {
            Broken::Refused(refusal) => match refusal.code {
                SKEW => SKEWED.to_owned(),
                MODIFIED | NOT_THAT_SERVICE => {
                    "its keytab is not that of its principal: export it anew".to_owned()
                }
                code => format!("error {code} of Kerberos: {}", refusal.text),
            },
            Broken::Unproved => "it does not prove that it is whom the ticket is for".to_owned(),
            Broken::Layer => {
                "it insists on encryption by Kerberos: allow sasl.qop auth there, and use TLS"
                    .to_owned()
            }
            Broken::Malformed => "it does not speak GSSAPI with Kerberos".to_owned(),
        }
    }
}

fn random<const N: usize>() -> Result<[u8; N], TriggerError> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| TriggerError::answer("there is no randomness to log in with"))?;
    Ok(bytes)
}

/// A random number that is positive wherever numbers have signs, with room to count on.
fn number() -> Result<u32, TriggerError> {
    Ok(u32::from_be_bytes(random()?) & 0x3fff_ffff)
}
