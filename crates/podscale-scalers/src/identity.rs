//! Whose identity in a cloud a trigger has.

use crate::secret::Secret;

/// An identity in a cloud, as an authentication names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// In Amazon's.
    Aws(AwsIdentity),
    /// In Microsoft's.
    Azure(AzureIdentity),
    /// In Google's: the controller's own.
    Gcp,
}

/// An identity in Amazon's cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AwsIdentity {
    /// The controller's own, and a role that it takes on from there.
    Controller {
        /// The role, if there is one.
        role: Option<String>,
        /// What the role wants to hear besides.
        external_id: Option<String>,
    },
    /// That of a service account, which takes on a role by its token.
    Workload {
        /// The role.
        role: String,
        /// Its namespace and name.
        account: String,
        /// A token that is meant for Amazon.
        token: Secret,
    },
}

/// An identity in Microsoft's cloud, which trusts a service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AzureIdentity {
    /// The identity's client id; that of the controller's environment if there is none.
    pub client: Option<String>,
    /// Its tenant; that of the controller's environment if there is none.
    pub tenant: Option<String>,
    /// Who gives tokens; whom the controller's environment names if there is none.
    pub authority: Option<String>,
    /// Whose service account it trusts.
    pub account: Federation,
}

/// Which service account an identity trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Federation {
    /// The controller's own.
    Controller,
    /// That of a workload.
    Workload {
        /// Its namespace and name.
        account: String,
        /// A token that is meant for Microsoft.
        token: Secret,
    },
}

impl AzureIdentity {
    /// Whether whoever has a token of it is the controller there.
    pub(crate) fn is_of_controller(&self) -> bool {
        self.account == Federation::Controller
    }
}

impl Identity {
    /// What an authentication calls its cloud.
    #[must_use]
    pub fn provider(&self) -> &'static str {
        match self {
            Identity::Aws(_) => "aws",
            Identity::Azure(_) => "azure-workload",
            Identity::Gcp => "gcp",
        }
    }

    /// The token in it, if there is one: no text may hold it.
    #[must_use]
    pub fn token(&self) -> Option<&Secret> {
        match self {
            Identity::Aws(AwsIdentity::Workload { token, .. }) => Some(token),
            Identity::Azure(AzureIdentity {
                account: Federation::Workload { token, .. }, ..
            }) => Some(token),
            _ => None,
        }
    }
}
