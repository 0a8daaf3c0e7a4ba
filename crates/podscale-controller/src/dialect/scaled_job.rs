//! KEDA's ScaledJobs, as a kind of objects. They give no target a size, so they are no dialect: `scaled_jobs` follows
//! them.

use super::Kind;
use podscale_api::keda::API_VERSION;
use podscale_api::keda::scaled_job::{KIND, PLURAL, RESOURCE};
use podscale_client::watch::Presence;

/// Where they live in the API.
pub static SCALED_JOB: Kind = Kind {
    name: KIND,
    api_version: API_VERSION,
    plural: PLURAL,
    resource: RESOURCE,
    presence: Presence::Optional,
};
