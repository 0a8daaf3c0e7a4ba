//! Keytabs, version 0x502: files with the keys of principals.

use super::crypto::{Etype, Key};
use super::message::Principal;

/// A key of a principal.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    realm: String,
    parts: Vec<String>,
    version: u32,
    key: Key,
}

/// The keys of somebody, the newest of each type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keytab(Vec<Entry>);

impl Keytab {
    /// Reads what a file has of somebody.
    ///
    /// # Errors
    /// It is no keytab, or has nothing of use.
    pub(super) fn read(file: &[u8], client: &Principal, realm: &str) -> Result<Keytab, String> {
        let Some(content) = file.strip_prefix(&[5, 2]) else {
            return Err("is no keytab of version 0x502".to_owned());
        };
        let all = entries(content).ok_or("is a keytab that is cut off, or damaged")?;
        let mut own: Vec<Entry> = all
            .into_iter()
            .filter(|entry| entry.realm == realm && entry.parts == client.parts)
            .collect();
        if own.is_empty() {
            return Err(format!(
                "has no AES key of {client}@{realm}: export that principal's keys into it"
            ));
        }
        own.sort_by_key(|entry| std::cmp::Reverse(entry.version));
        Ok(Keytab(own))
    }

    /// The newest key of a type.
    pub(super) fn key(&self, etype: Etype) -> Option<&Key> {
        self.0.iter().map(|entry| &entry.key).find(|key| key.etype == etype)
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn number<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    take(rest, N)?.try_into().ok()
}

fn counted<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let count = u16::from_be_bytes(number(rest)?);
    take(rest, usize::from(count))
}

fn text(rest: &mut &[u8]) -> Option<String> {
    counted(rest).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// All with keys of types that are known.
fn entries(mut rest: &[u8]) -> Option<Vec<Entry>> {
    let mut all = Vec::new();
    while !rest.is_empty() {
        let length = i32::from_be_bytes(number(&mut rest)?);
        let content = take(&mut rest, usize::try_from(length.unsigned_abs()).ok()?)?;
        match length {
            0 => break,
            // What was deleted.
            i32::MIN..0 => {}
            _ => all.extend(entry(content)?),
        }
    }
    Some(all)
}

/// One with a key, unless its type is not known.
fn entry(mut rest: &[u8]) -> Option<Option<Entry>> {
    let count = u16::from_be_bytes(number(&mut rest)?);
    let realm = text(&mut rest)?;
    // Each takes at least two bytes, so that a wrong count ends with the entry.
    let parts = (0..count).map(|_| text(&mut rest)).collect::<Option<Vec<String>>>()?;
    let (_kind, _time) = (number::<4>(&mut rest)?, number::<4>(&mut rest)?);
    let [short_version] = number(&mut rest)?;
    let etype = u16::from_be_bytes(number(&mut rest)?);
    let key = counted(&mut rest)?;
    let long_version = number(&mut rest).map(u32::from_be_bytes).filter(|version| *version > 0);
    let version = long_version.unwrap_or(u32::from(short_version));
    let key = Etype::of(i64::from(etype)).and_then(|etype| Key::new(etype, key));
    Some(key.map(|key| Entry { realm, parts, version, key }))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An entry as a file has it.
    pub(crate) fn written(name: &str, etype: u16, version: u32, key: &[u8]) -> Vec<u8> {
        let counted = |text: &[u8]| [&(text.len() as u16).to_be_bytes()[..], text].concat();
        let parts: Vec<&str> = name.split('/').collect();
        let mut entry = (parts.len() as u16).to_be_bytes().to_vec();
        entry.extend(counted(b"SHOP.TEST"));
        entry.extend(parts.iter().flat_map(|part| counted(part.as_bytes())));
        entry.extend([0, 0, 0, 1, 0, 0, 0, 0, version as u8]);
        entry.extend(etype.to_be_bytes());
        entry.extend(counted(key));
        entry.extend(version.to_be_bytes());
        [&(entry.len() as i32).to_be_bytes()[..], &entry].concat()
    }

    fn read(entries: &[Vec<u8>]) -> Result<Keytab, String> {
        let file = [&[5, 2][..], &entries.concat()].concat();
        Keytab::read(&file, &Principal::user("asker/one"), "SHOP.TEST")
    }

    #[test]
    fn the_newest_key_of_a_type_counts() {
        let deleted = [&(-3_i32).to_be_bytes()[..], &[1, 2, 3]].concat();
        let keytab = read(&[
            written("asker/one", 18, 2, &[2; 32]),
            deleted,
            written("asker/one", 18, 300, &[3; 32]),
            written("asker/one", 18, 1, &[1; 32]),
            written("asker/one", 23, 9, &[9; 16]),
            written("asker", 17, 9, &[9; 16]),
        ])
        .expect("a keytab");
        assert_eq!(keytab.key(Etype::Aes256Sha1), Key::new(Etype::Aes256Sha1, &[3; 32]).as_ref());
        assert_eq!(keytab.key(Etype::Aes128Sha1), None, "somebody else's");
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        let none = "has no AES key of asker/one@SHOP.TEST: export that principal's keys into it";
        let damaged = "is a keytab that is cut off, or damaged";
        let whole = written("asker/one", 18, 2, &[2; 32]);
        for (entries, expected) in [
            (vec![], none),
            (vec![written("asker", 18, 1, &[1; 32])], none),
            (vec![written("asker/one", 23, 1, &[1; 16])], none),
            (vec![written("asker/one", 18, 1, &[1; 16])], none),
            (vec![whole[..whole.len() - 1].to_vec()], damaged),
            (vec![i32::MIN.to_be_bytes().to_vec()], damaged),
        ] {
            assert_eq!(read(&entries), Err(expected.to_owned()), "{entries:?}");
        }
        let no_keytab = Keytab::read(b"\x05\x01", &Principal::user("a"), "R");
        assert_eq!(no_keytab, Err("is no keytab of version 0x502".to_owned()));
    }

    proptest! {
        #[test]
        fn nothing_panics(any: Vec<u8>, at: usize, byte: u8) {
            let _ = read(&[any]);
            let mut damaged = written("asker/one", 18, 2, &[2; 32]);
            let at = at % damaged.len();
            damaged[at] = byte;
            let _ = read(&[damaged]);
        }
    }
}
