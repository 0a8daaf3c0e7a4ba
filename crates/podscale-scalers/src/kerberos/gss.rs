//! Proves to a service who asks, and has it prove who it is: GSS-API's tokens (RFC 4121), and the exchange that follows
//! in SASL (RFC 4752).

use super::crypto::{Confounder, Key};
use super::der::{Malformed, Reader, SEQUENCE, application, integer, octets, sequence, value};
use super::message::{
    Authenticator, Client, Refusal, Ticket, Unusable, micros, read_encrypted, read_key, refusal,
};
use jiff::Timestamp;

/// What says that Kerberos is spoken.
const MECHANISM: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02];
/// What tokens begin with.
const REQUEST: [u8; 2] = [1, 0];
const ANSWER: [u8; 2] = [2, 0];
const REFUSAL: [u8; 2] = [3, 0];
const WRAPPED: [u8; 2] = [5, 4];
/// What keys are used for.
const USE_REQUEST: u32 = 11;
const USE_ANSWER: u32 = 12;
const USE_BY_SERVICE: u32 = 22;
const USE_BY_CLIENT: u32 = 24;
/// The type of a checksum that has flags in it, and those: the service proves itself, and messages can be signed.
const CHECKSUM: i64 = 0x8003;
const MUTUAL: u32 = 2;
const SIGNED: u32 = 32;
/// The option of a request that the service must prove itself.
const MUTUAL_REQUIRED: u32 = 0x2000_0000;
/// Flags of a wrapped message.
const BY_SERVICE: u8 = 1;
const SEALED: u8 = 2;
const BY_SUBKEY: u8 = 4;
/// The bit for no protection of what follows, in what a service offers and what is chosen.
const NO_LAYER: u8 = 1;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The service refuses.
    Refused(Refusal),
    /// It does not prove that it is whom the ticket is for.
    Unproved,
    /// It wants what follows to be encrypted by Kerberos.
    Layer,
    /// It says something else than the protocol has.
    Malformed,
}

impl From<Malformed> for Broken {
    fn from(_: Malformed) -> Broken {
        Broken::Malformed
    }
}

impl From<Unusable> for Broken {
    fn from(_: Unusable) -> Broken {
        Broken::Malformed
    }
}

/// One that has begun.
pub(super) struct Initiator {
    key: Key,
    at: Timestamp,
    number: u32,
}

/// One that both sides have agreed on.
pub(super) struct Agreed {
    key: Key,
    subkey: Option<Key>,
    number: u32,
}

impl Initiator {
    /// Begins, with the first token.
    pub(super) fn begin(
        ticket: &Ticket,
        client: &Client,
        now: Timestamp,
        number: u32,
        confounder: &Confounder,
    ) -> (Initiator, Vec<u8>) {
        let mut bound = vec![16, 0, 0, 0];
        bound.extend([0; 16]);
        bound.extend((MUTUAL | SIGNED).to_le_bytes());
        let checksum = sequence(&[(0, integer(CHECKSUM)), (1, octets(&bound))]);
        let who = Authenticator { client, now, checksum, number: Some(number) };
        let request = who.request(ticket, MUTUAL_REQUIRED, USE_REQUEST, confounder);
        let token = value(application(0), &[MECHANISM, &REQUEST, &request].concat());
        (Initiator { key: ticket.key.clone(), at: now, number }, token)
    }

    /// Reads the service's proof.
    ///
    /// # Errors
    /// It refuses, or is another.
    pub(super) fn proved(self, token: &[u8]) -> Result<Agreed, Broken> {
        let Reader(inner) = Reader(token).value(application(0))?;
        let inner = inner.strip_prefix(MECHANISM).ok_or(Malformed)?;
        if let Some(refused) = inner.strip_prefix(&REFUSAL) {
            return Err(Broken::Refused(refusal(Reader(refused))?));
        }
        let answer = inner.strip_prefix(&ANSWER).ok_or(Malformed)?;
        let mut fields = Reader(answer).value(application(15))?.value(SEQUENCE)?;
        let (etype, encrypted) = read_encrypted(fields.field(2)?)?;
        let is_key = etype == self.key.etype.number();
        let plain = is_key.then(|| self.key.decrypt(USE_ANSWER, encrypted)).flatten();
        let plain = plain.ok_or(Broken::Unproved)?;
        let mut fields = Reader(&plain).value(application(27))?.value(SEQUENCE)?;
        let (seconds, rest) = (fields.field(0)?.time()?, fields.field(1)?.integer()?);
        if (seconds.as_second(), rest) != (self.at.as_second(), micros(self.at)) {
            return Err(Broken::Unproved);
        }
        let subkey = fields.optional(2)?.map(read_key).transpose()?;
        Ok(Agreed { key: self.key, subkey, number: self.number })
    }
}

impl Agreed {
    /// Answers the service's offer of protection with that there is to be none: there is TLS for that.
    ///
    /// # Errors
    /// It wants some, or is another.
    pub(super) fn choose(&self, token: &[u8]) -> Result<Vec<u8>, Broken> {
        let offered = self.unwrap(token)?;
        match offered[..] {
            [layers, _, _, _] if layers & NO_LAYER != 0 => Ok(self.wrap(&[NO_LAYER, 0, 0, 0])),
            [_, _, _, _] => Err(Broken::Layer),
            _ => Err(Broken::Malformed),
        }
    }

    fn unwrap(&self, token: &[u8]) -> Result<Vec<u8>, Broken> {
        let (head, rest) = token.split_at_checked(16).ok_or(Malformed)?;
        let [a, b, flags, 0xff, e, c, r1, r2, ..] = *head else { return Err(Broken::Malformed) };
        if [a, b] != WRAPPED || flags & BY_SERVICE == 0 || flags & SEALED != 0 {
            return Err(Broken::Malformed);
        }
        let key = match (flags & BY_SUBKEY != 0, &self.subkey) {
            (false, _) => &self.key,
            (true, Some(subkey)) => subkey,
            (true, None) => return Err(Broken::Malformed),
        };
        let (count, turned) = (u16::from_be_bytes([e, c]), u16::from_be_bytes([r1, r2]));
        let mut rest = rest.to_vec();
        let turned = usize::from(turned).checked_rem(rest.len()).ok_or(Malformed)?;
        rest.rotate_left(turned);
        let at = rest.len().checked_sub(usize::from(count)).ok_or(Malformed)?;
        let (plain, checksum) = rest.split_at_checked(at).ok_or(Malformed)?;
        let mut signed = plain.to_vec();
        signed.extend([a, b, flags, 0xff, 0, 0, 0, 0]);
        signed.extend(head.get(8..).unwrap_or_default());
        if !key.verifies(USE_BY_SERVICE, &signed, checksum) {
            return Err(Broken::Unproved);
        }
        Ok(plain.to_vec())
    }

    fn wrap(&self, plain: &[u8]) -> Vec<u8> {
        let key = self.subkey.as_ref().unwrap_or(&self.key);
        let [a, b] = WRAPPED;
        let flags = if self.subkey.is_some() { BY_SUBKEY } else { 0 };
        let number = u64::from(self.number).to_be_bytes();
        let head = |count: u16| {
            let [e, c] = count.to_be_bytes();
            [&[a, b, flags, 0xff, e, c, 0, 0][..], &number].concat()
        };
        let checksum = key.sign(USE_BY_CLIENT, &[plain, &head(0)].concat());
        let count = u16::try_from(checksum.len()).unwrap_or(u16::MAX);
        [&head(count)[..], plain, &checksum].concat()
    }
}

#[cfg(test)]
mod tests;
