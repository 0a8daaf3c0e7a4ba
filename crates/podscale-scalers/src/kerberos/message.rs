//! Messages to and from a KDC (RFC 4120). Nothing here is sent, and nothing reads a clock.

use super::crypto::{Confounder, Etype, Key};
use super::der::{
    Malformed, Reader, SEQUENCE, application, flags, integer, list, octets, sequence, text, time,
    value,
};
use jiff::Timestamp;
use std::fmt;

/// The version of the protocol.
const VERSION: i64 = 5;
/// What a request to a KDC, and the answer to it, is about.
const AS: u8 = 10;
const TGS: u8 = 12;
const AP: u8 = 14;
/// What keys are used for.
const USE_TIMESTAMP: u32 = 1;
const USE_AS_ANSWER: u32 = 3;
const USE_TGS_BODY: u32 = 6;
const USE_TGS_AUTHENTICATOR: u32 = 7;
const USE_TGS_ANSWER: u32 = 8;
/// What is sent beside a request.
const PA_TGS_REQUEST: i64 = 1;
const PA_TIMESTAMP: i64 = 2;
const PA_ETYPE_INFO2: i64 = 19;
/// How long a ticket is asked for; the KDC gives less if it likes.
const HOURS: i64 = 24;
/// How much of what a KDC says is shown.
const MOST_CHARS: usize = 200;

/// Somebody in a realm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Principal {
    kind: i64,
    pub(super) parts: Vec<String>,
}

impl Principal {
    /// A user, perhaps with an instance: `asker` or `asker/host`.
    pub(super) fn user(name: &str) -> Principal {
        Principal { kind: 1, parts: name.split('/').map(str::to_owned).collect() }
    }

    /// A service on a host.
    pub(super) fn service(name: &str, host: &str) -> Principal {
        Principal { kind: 3, parts: vec![name.to_owned(), host.to_owned()] }
    }

    /// Who gives tickets of a realm.
    pub(super) fn granting(realm: &str) -> Principal {
        Principal { kind: 2, parts: vec!["krbtgt".to_owned(), realm.to_owned()] }
    }

    /// The realm whose tickets it gives, if it does.
    pub(super) fn grants(&self) -> Option<&str> {
        match &self.parts[..] {
            [first, realm] if first == "krbtgt" => Some(realm),
            _ => None,
        }
    }

    fn write(&self) -> Vec<u8> {
        let parts = list(self.parts.iter().map(|part| text(part)));
        sequence(&[(0, integer(self.kind)), (1, parts)])
    }

    fn read(mut from: Reader<'_>) -> Result<Principal, Malformed> {
        let mut fields = from.value(SEQUENCE)?;
        let kind = fields.field(0)?.integer()?;
        Ok(Principal { kind, parts: fields.field(1)?.list(Reader::text)? })
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts.join("/"))
    }
}

/// Somebody, with a realm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) name: Principal,
    pub(super) realm: String,
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.realm)
    }
}

/// A ticket, with the key that goes with it.
#[derive(Clone, Debug)]
pub(super) struct Ticket {
    /// As the KDC gave it.
    pub(super) bytes: Vec<u8>,
    pub(super) key: Key,
    pub(super) service: Principal,
    pub(super) ends: Timestamp,
}

/// What is asked of a KDC.
pub(super) struct Request<'a> {
    pub(super) client: &'a Client,
    /// The realm of the KDC.
    pub(super) realm: &'a str,
    pub(super) service: &'a Principal,
    pub(super) etypes: &'a [Etype],
    pub(super) now: Timestamp,
    /// Something that was not asked before.
    pub(super) nonce: u32,
}

impl Request<'_> {
    fn body(&self, names_client: bool) -> Vec<u8> {
        let until = self.now.as_second().saturating_add(HOURS * 3600);
        let until = Timestamp::from_second(until).unwrap_or(Timestamp::MAX);
        let etypes = list(self.etypes.iter().map(|etype| integer(etype.number())));
        let mut fields = vec![(0, flags(0))];
        if names_client {
            fields.push((1, self.client.name.write()));
        }
        fields.extend([
            (2, text(self.realm)),
            (3, self.service.write()),
            (5, time(until)),
            (7, integer(i64::from(self.nonce))),
            (8, etypes),
        ]);
        sequence(&fields)
    }

    /// Asks for a first ticket, without a proof or with the time as one.
    pub(super) fn first(&self, proof: Option<(&Key, &Confounder)>) -> Vec<u8> {
        let proof = proof.map(|(key, confounder)| {
            let now = sequence(&[(0, time(self.now)), (1, integer(micros(self.now)))]);
            (PA_TIMESTAMP, encrypted(key, USE_TIMESTAMP, confounder, &now))
        });
        request(AS, proof, self.body(true))
    }

    /// Asks for another ticket by one.
    pub(super) fn next(&self, by: &Ticket, confounder: &Confounder) -> Vec<u8> {
        let body = self.body(false);
        let checksum = sequence(&[
            (0, integer(by.key.etype.checksum())),
            (1, octets(&by.key.sign(USE_TGS_BODY, &body))),
        ]);
        let who = Authenticator { client: self.client, now: self.now, checksum, number: None };
        let proof = who.request(by, 0, USE_TGS_AUTHENTICATOR, confounder);
        request(TGS, Some((PA_TGS_REQUEST, proof)), body)
    }

    /// The ticket of an answer to [`Request::first`].
    pub(super) fn first_ticket(&self, answer: &Answer, key: &Key) -> Result<Ticket, Unusable> {
        self.ticket(answer, key, USE_AS_ANSWER)
    }

    /// The ticket of an answer to [`Request::next`].
    pub(super) fn next_ticket(&self, answer: &Answer, by: &Ticket) -> Result<Ticket, Unusable> {
        self.ticket(answer, &by.key, USE_TGS_ANSWER)
    }

    fn ticket(&self, answer: &Answer, key: &Key, usage: u32) -> Result<Ticket, Unusable> {
        let plain = match key.etype.number() == answer.etype {
            true => key.decrypt(usage, &answer.encrypted).ok_or(Unusable::Key)?,
            false => return Err(Unusable::Etype(answer.etype)),
        };
        let (ticket, nonce) = granted(answer, &plain)?;
        let is_ours = nonce == i64::from(self.nonce)
            && answer.client.parts == self.client.name.parts
            && answer.client_realm == self.client.realm
            // One that leads to another realm is given in place of one that is not there.
            && (ticket.service.parts == self.service.parts || ticket.service.grants().is_some());
        if is_ours { Ok(ticket) } else { Err(Unusable::Malformed) }
    }
}

/// Why an answer gives no ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// The key does not open it.
    Key,
    /// It is encrypted in a way that is not known or was not asked for.
    Etype(i64),
    /// It is not the answer to what was asked.
    Malformed,
}

impl From<Malformed> for Unusable {
    fn from(_: Malformed) -> Unusable {
        Unusable::Malformed
    }
}

fn granted(answer: &Answer, plain: &[u8]) -> Result<(Ticket, i64), Unusable> {
    // Some KDCs say of the one that it is the other.
    let tag = plain.first().copied().filter(|tag| [application(25), application(26)].contains(tag));
    let mut fields = Reader(plain).value(tag.ok_or(Malformed)?)?.value(SEQUENCE)?;
    let key = read_key(fields.field(0)?)?;
    let nonce = fields.field(2)?.integer()?;
    let ends = fields.field(7)?.time()?;
    let service = Principal::read(fields.field(10)?)?;
    Ok((Ticket { bytes: answer.ticket.clone(), key, service, ends }, nonce))
}

/// A key that is sent.
pub(super) fn read_key(mut from: Reader<'_>) -> Result<Key, Unusable> {
    let mut fields = from.value(SEQUENCE)?;
    let number = fields.field(0)?.integer()?;
    let etype = Etype::of(number).ok_or(Unusable::Etype(number))?;
    Ok(Key::new(etype, fields.field(1)?.octets()?).ok_or(Malformed)?)
}

fn request(kind: u8, proof: Option<(i64, Vec<u8>)>, body: Vec<u8>) -> Vec<u8> {
    let mut fields = vec![(1, integer(VERSION)), (2, integer(i64::from(kind)))];
    if let Some((kind, proof)) = proof {
        fields.push((3, list([sequence(&[(1, integer(kind)), (2, octets(&proof))])])));
    }
    fields.push((4, body));
    value(application(kind), &sequence(&fields))
}

/// Something encrypted, with how.
pub(super) fn encrypted(key: &Key, usage: u32, confounder: &Confounder, plain: &[u8]) -> Vec<u8> {
    let encrypted = key.encrypt(usage, confounder, plain);
    sequence(&[(0, integer(key.etype.number())), (2, octets(&encrypted))])
}

/// The type of encryption, and what is encrypted.
pub(super) fn read_encrypted(mut from: Reader<'_>) -> Result<(i64, &[u8]), Malformed> {
    let mut fields = from.value(SEQUENCE)?;
    Ok((fields.field(0)?.integer()?, fields.field(2)?.octets()?))
}

/// The millionths of a second.
pub(super) fn micros(time: Timestamp) -> i64 {
    i64::from(time.subsec_microsecond())
}

/// Who shows a ticket, and when.
pub(super) struct Authenticator<'a> {
    pub(super) client: &'a Client,
    pub(super) now: Timestamp,
    /// As it is written.
    pub(super) checksum: Vec<u8>,
    /// That of the first message of those that follow.
    pub(super) number: Option<u32>,
}

impl Authenticator<'_> {
    /// The message that shows a ticket.
    pub(super) fn request(
        &self,
        ticket: &Ticket,
        options: u32,
        usage: u32,
        confounder: &Confounder,
    ) -> Vec<u8> {
        let mut fields = vec![
            (0, integer(VERSION)),
            (1, text(&self.client.realm)),
            (2, self.client.name.write()),
            (3, self.checksum.clone()),
            (4, integer(micros(self.now))),
            (5, time(self.now)),
        ];
        fields.extend(self.number.map(|number| (7, integer(i64::from(number)))));
        let who = value(application(2), &sequence(&fields));
        let fields = [
            (0, integer(VERSION)),
            (1, integer(i64::from(AP))),
            (2, flags(options)),
            (3, ticket.bytes.clone()),
            (4, encrypted(&ticket.key, usage, confounder, &who)),
        ];
        value(application(AP), &sequence(&fields))
    }
}

/// How a password becomes a key of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hint {
    pub(super) etype: i64,
    pub(super) salt: Option<Vec<u8>>,
    pub(super) parameters: Option<Vec<u8>>,
}

/// An answer with a ticket.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    client: Principal,
    client_realm: String,
    ticket: Vec<u8>,
    /// How the rest is encrypted.
    pub(super) etype: i64,
    encrypted: Vec<u8>,
    pub(super) hints: Vec<Hint>,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: i64,
    /// What is said about it, if anything.
    pub(super) text: String,
    pub(super) hints: Vec<Hint>,
}

/// Reads an answer of a KDC.
pub(super) fn answer(bytes: &[u8]) -> Result<Result<Answer, Refusal>, Malformed> {
    let tag = bytes.first().copied().ok_or(Malformed)?;
    if tag == application(30) {
        return refusal(Reader(bytes)).map(Err);
    }
    if ![application(AS + 1), application(TGS + 1)].contains(&tag) {
        return Err(Malformed);
    }
    let mut fields = Reader(bytes).value(tag)?.value(SEQUENCE)?;
    let hints = fields.optional(2)?.map_or(Ok(Vec::new()), hints)?;
    let client_realm = fields.field(3)?.text()?;
    let client = Principal::read(fields.field(4)?)?;
    let ticket = fields.field(5)?.0.to_vec();
    let (etype, encrypted) = read_encrypted(fields.field(6)?)?;
    let encrypted = encrypted.to_vec();
    Ok(Ok(Answer { client, client_realm, ticket, etype, encrypted, hints }))
}

/// Reads a refusal.
pub(super) fn refusal(mut from: Reader<'_>) -> Result<Refusal, Malformed> {
    let mut fields = from.value(application(30))?.value(SEQUENCE)?;
    let code = fields.field(6)?.integer()?;
    let text = fields.optional(11)?.map_or(Ok(String::new()), |mut text| text.text())?;
    let shown = text.chars().filter(|char| !char.is_control()).take(MOST_CHARS).collect();
    // What is here depends on the code.
    let data = fields.optional(12)?.and_then(|mut data| data.octets().ok());
    let hints = data.and_then(|data| hints(Reader(data)).ok()).unwrap_or_default();
    Ok(Refusal { code, text: shown, hints })
}

/// What is said beside an answer of how passwords become keys.
fn hints(from: Reader<'_>) -> Result<Vec<Hint>, Malformed> {
    let all = from.list(|reader| {
        let mut fields = reader.value(SEQUENCE)?;
        let kind = fields.field(1)?.integer()?;
        Ok((kind, fields.field(2)?.octets()?))
    })?;
    let info = all.into_iter().find(|(kind, _)| *kind == PA_ETYPE_INFO2);
    let Some((_, info)) = info else { return Ok(Vec::new()) };
    Reader(info).list(|reader| {
        let mut fields = reader.value(SEQUENCE)?;
        let etype = fields.field(0)?.integer()?;
        let salt = fields.optional(1)?.map(|mut salt| salt.text()).transpose()?;
        let parameters = fields.optional(2)?.map(|mut bytes| bytes.octets()).transpose()?;
        let (salt, parameters) = (salt.map(String::into_bytes), parameters.map(<[u8]>::to_vec));
        Ok(Hint { etype, salt, parameters })
    })
}

#[cfg(test)]
mod tests;
