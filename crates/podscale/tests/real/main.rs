//! Event sources against real servers, which the tests start on the loopback, kill, restart and give wrong credentials
//! for: `./test triggers`. Each server has a file, with what its source makes of it; `driven.rs` has all of them drive
//! ScaledObjects in one cluster. A server that is not installed is left out with a loud line; in CI all must be there.

// Helpers of tests may fail as loudly as tests do.
#![allow(clippy::expect_used, clippy::panic)]

mod activemq;
mod certificates;
mod cluster;
mod driven;
mod etcd;
mod external;
mod harness;
mod kafka;
mod kerberos;
mod mysql;
mod nats;
mod planted;
mod postgresql;
mod prometheus;
mod rabbitmq;
mod redis;
mod redis_topologies;
mod sqs;
mod temporal;
mod tokens;
