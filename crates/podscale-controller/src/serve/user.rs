//! Who asks.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Everybody whose name is known is in this group.
const AUTHENTICATED: &str = "system:authenticated";
/// Who gives no name.
const ANONYMOUS: &str = "system:anonymous";
const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Whoever is in this group may do everything.
const MASTERS: &str = "system:masters";

/// Somebody, as authenticators and authorizers of Kubernetes describe them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct User {
    /// The name.
    pub name: String,
    /// What tells those apart who had the name one after the other.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What else is known.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Nobody in particular.
    #[must_use]
    pub fn anonymous() -> User {
        let groups = vec![UNAUTHENTICATED.to_owned()];
        User { name: ANONYMOUS.to_owned(), groups, ..User::default() }
    }

    /// The same user, known to be who they are.
    #[must_use]
    pub fn authenticated(mut self) -> User {
        let known = |group: &String| group == AUTHENTICATED || group == UNAUTHENTICATED;
        if !self.groups.iter().any(known) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    /// Whether nobody needs to be asked what this user may do.
    #[must_use]
    pub fn may_everything(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }

    /// The fields of a SubjectAccessReview that name the user.
    #[must_use]
    pub fn review(&self) -> Value {
        json!({"user": self.name, "uid": self.uid, "groups": self.groups, "extra": self.extra})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_is_in_one_of_two_groups() {
        let of = |groups: &[&str]| User {
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..User::default()
        };
        for (groups, expected) in [
            (vec![], vec![AUTHENTICATED]),
            (vec!["dev"], vec!["dev", AUTHENTICATED]),
            (vec![AUTHENTICATED, "dev"], vec![AUTHENTICATED, "dev"]),
            (vec![UNAUTHENTICATED], vec![UNAUTHENTICATED]),
        ] {
            assert_eq!(of(&groups).authenticated(), of(&expected));
        }
        assert!(of(&[MASTERS]).may_everything() && !of(&[AUTHENTICATED]).may_everything());
    }
}
