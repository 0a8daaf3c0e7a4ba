//! Talks to an API server as Kubernetes' own controllers do: calls with deadlines and retries, a
//! rate limit, discovery, lean watches, an event recorder and leader election. Knows nothing of
//! autoscalers.

pub mod call;
pub mod cause;
pub mod clock;
pub mod connect;
pub mod discovery;
pub mod election;
pub mod events;
pub mod instrument;
pub mod outage;
pub mod rate_limit;
pub mod resource_version;
pub mod watch;
