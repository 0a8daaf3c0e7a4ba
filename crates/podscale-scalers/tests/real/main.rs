//! Sources against real servers, which the tests start on the loopback, kill, restart and give wrong credentials
//! for: `./test triggers`. A server that is not installed leaves its test out with a loud line; in CI all must be
//! there.

mod activemq;
mod etcd;
mod external;
mod harness;
mod kafka;
mod mysql;
mod nats;
mod postgresql;
mod prometheus;
mod rabbitmq;
mod redis;
mod redis_topologies;
mod sqs;
mod temporal;
