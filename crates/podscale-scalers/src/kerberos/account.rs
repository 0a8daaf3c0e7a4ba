//! Who asks, by a password or by keys, and where the KDCs are.

use super::config::Config;
use super::crypto::{Etype, Key};
use super::keytab::Keytab;
use super::message::{Client, Hint, Principal};
use crate::metadata::{AUTH, Fields};
use crate::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Somebody with a password or keys.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(super) client: Client,
    proof: Proof,
    pub(super) config: Config,
    /// What all of it was read from, to tell accounts apart.
    texts: [Secret; 4],
}

#[derive(Clone, Debug)]
enum Proof {
    Password(Secret),
    Keys(Keytab),
}

impl Account {
    /// Reads the parameters of the authentication. What is wrong is in KEDA's words where it has some.
    pub(crate) fn read(
        fields: &mut Fields<'_>,
        user: Option<Secret>,
        password: Option<Secret>,
    ) -> Option<Account> {
        let keytab = fields.field(&["keytab"], AUTH).secret();
        let cache = fields.field(&["ccacheName"], AUTH).is_given();
        let realm = fields.field(&["realm"], AUTH).text();
        let config = fields.field(&["kerberosConfig"], AUTH).text();
        // What it would switch off is never used.
        let _ = fields.field(&["kerberosDisableFAST"], AUTH).bool_or(false);
        let Some(user) = user else {
            fields.refuse("no username given", "give username in the authentication");
            return None;
        };
        if cache {
            let problem = "ccacheName is not supported: tickets are not read from files";
            fields.refuse(problem, "give password or keytab in its place");
            return None;
        }
        if password.is_some() == keytab.is_some() {
            let problem = "exactly one of 'password', 'keytab' or 'ccacheName' must be provided for GSSAPI \
                           authentication";
            fields.refuse(problem, "give password or keytab in the authentication");
            return None;
        }
        if realm.is_empty() {
            fields.refuse("no realm given", "give realm in the authentication");
            return None;
        }
        if config.is_empty() {
            let problem = "no Kerberos configuration file (kerberosConfig) given";
            fields
                .refuse(problem, "give what krb5.conf has as kerberosConfig in the authentication");
            return None;
        }
        let given = password.as_ref().or(keytab.as_ref()).cloned().unwrap_or_default();
        let texts =
            [user.clone(), given, Secret::from(realm.as_str()), Secret::from(config.as_str())];
        match Account::understand(user.expose(), password, keytab.as_ref(), &realm, &config) {
            Ok((client, proof, config)) => Some(Account { client, proof, config, texts }),
            Err((problem, hint)) => {
                fields.refuse(problem, hint);
                None
            }
        }
    }

    fn understand(
        user: &str,
        password: Option<Secret>,
        keytab: Option<&Secret>,
        realm: &str,
        config: &str,
    ) -> Result<(Client, Proof, Config), (String, &'static str)> {
        let config = Config::read(config).map_err(|problem| {
            (format!("kerberosConfig is no krb5.conf: {problem}"), "give what krb5.conf has")
        })?;
        config.kdcs(realm).map_err(|problem| (problem, "name the KDC in kerberosConfig"))?;
        let name = user.rsplit_once('@').filter(|(_, given)| *given == realm);
        let name = Principal::user(name.map_or(user, |(name, _)| name));
        let client = Client { name, realm: realm.to_owned() };
        let proof = match (password, keytab) {
            (Some(password), _) => Proof::Password(password),
            (None, keytab) => {
                let text: String = keytab.map_or("", Secret::expose).split_whitespace().collect();
                let hint = "give what the file has: in a Secret as it is, elsewhere in base64";
                let file = STANDARD.decode(text);
                let file = file.map_err(|_| ("keytab is not base64".to_owned(), hint))?;
                let keys = Keytab::read(&file, &client.name, realm);
                Proof::Keys(keys.map_err(|problem| (format!("keytab {problem}"), hint))?)
            }
        };
        Ok((client, proof, config))
    }

    /// What tells accounts apart.
    pub(crate) fn key(&self) -> Vec<&str> {
        self.texts.iter().map(Secret::expose).collect()
    }

    /// The types of encryption that it has keys for.
    pub(super) fn etypes(&self) -> Vec<Etype> {
        let has = |etype: &Etype| match &self.proof {
            Proof::Password(_) => true,
            Proof::Keys(keytab) => keytab.key(*etype).is_some(),
        };
        Etype::ALL.into_iter().filter(has).collect()
    }

    /// The key of a type, with what the KDC says of how passwords become one.
    ///
    /// # Errors
    /// There is none, or the KDC wants something that is not done.
    pub(super) fn key_of(&self, etype: Etype, hints: &[Hint]) -> Result<Key, String> {
        match &self.proof {
            Proof::Keys(keytab) => keytab.key(etype).cloned().ok_or_else(|| {
                format!("keytab has no key of type {}: export it anew", etype.number())
            }),
            Proof::Password(password) => {
                let hint = hints.iter().find(|hint| hint.etype == etype.number());
                let salt = hint.and_then(|hint| hint.salt.clone());
                let salt = salt.unwrap_or_else(|| {
                    let Client { name, realm } = &self.client;
                    format!("{realm}{}", name.parts.concat()).into_bytes()
                });
                let parameters = hint.and_then(|hint| hint.parameters.as_deref());
                let key = Key::of_password(etype, password.expose(), &salt, parameters);
                key.map_err(str::to_owned)
            }
        }
    }

    /// The key of a type by its number.
    ///
    /// # Errors
    /// As [`Account::key_of`], or the type is not known.
    pub(super) fn key_for(&self, etype: i64, hints: &[Hint]) -> Result<Key, String> {
        let known = Etype::of(etype).filter(|etype| self.etypes().contains(etype));
        let known = known.ok_or_else(|| {
            format!("it answers by a key of type {etype}, which was not asked for")
        })?;
        self.key_of(known, hints)
    }

    /// The key of the type that the KDC likes best of those that there are.
    ///
    /// # Errors
    /// As [`Account::key_of`], or there is none.
    pub(super) fn preferred(&self, hints: &[Hint]) -> Result<Key, String> {
        let own = self.etypes();
        let known = |hint: &Hint| Etype::of(hint.etype).filter(|etype| own.contains(etype));
        let etype = match hints {
            [] => own.first().copied(),
            hints => hints.iter().find_map(known),
        };
        let problem =
            "it has no AES keys of the principal: give it some, by a new password or keytab";
        self.key_of(etype.ok_or(problem)?, hints)
    }

    /// That the proof is wrong, and what to do.
    pub(super) fn wrong(&self) -> String {
        let client = &self.client;
        match self.proof {
            Proof::Password(_) => format!("the password of {client} is wrong"),
            Proof::Keys(_) => {
                format!(
                    "the key of {client} in keytab is not the one it has: export the keytab anew"
                )
            }
        }
    }
}
