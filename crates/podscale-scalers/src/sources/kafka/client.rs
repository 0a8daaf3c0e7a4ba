//! Asks a Kafka cluster: who manages a group and what it has committed, and who leads partitions and how far
//! they are.

use super::lag::{NONE, Position};
use super::login::log_in;
use super::refusal::{check, unreachable};
use super::sasl::Login;
use super::wire::{self, Api, Connection, Reader, Writer};
use super::{Cluster, Question};
use crate::stream::Opener;
use crate::trigger::TriggerError;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// To how many brokers connections are kept while nobody uses them.
const MOST_IDLE: usize = 64;
/// How long one of several brokers may take, so that another can be asked within a poll's time.
const BROKER_PATIENCE: Duration = Duration::from_secs(3);
/// Where partitions end, and where they begin.
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;

/// A cluster that triggers share.
pub(super) struct KafkaClient {
    /// Some of them, which know the others.
    brokers: Vec<String>,
    login: Option<Login>,
    opener: Opener,
    idle: Mutex<HashMap<String, Connection>>,
}

/// Partitions by topic, each with the address of its leader.
type Leaders = BTreeMap<String, Vec<(i32, String)>>;
/// Offsets by topic and partition.
type Offsets = HashMap<(String, i32), i64>;

impl KafkaClient {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub(super) fn new(
        cluster: &Cluster,
        login: Option<Login>,
    ) -> Result<KafkaClient, TriggerError> {
        let opener = Opener::new(cluster.tls.as_ref())?;
        let brokers = cluster.brokers.clone();
        Ok(KafkaClient { brokers, login, opener, idle: Mutex::default() })
    }

    /// Where a group is in the partitions of its topics, in their order.
    ///
    /// # Errors
    /// A broker cannot be reached or refuses.
    pub(super) async fn positions(
        &self,
        server: &Arc<str>,
        question: &Question,
    ) -> Result<Vec<Position>, TriggerError> {
        let committed = self.committed(server, &question.group).await?;
        let topics: Vec<String> = match question.topic.is_empty() {
            false => vec![question.topic.to_string()],
            true => {
                let mut topics: Vec<_> = committed.keys().map(|(topic, _)| topic.clone()).collect();
                topics.sort();
                topics.dedup();
                topics
            }
        };
        if topics.is_empty() {
            return Ok(Vec::new());
        }
        let mut leaders = self.leaders(server, &topics).await?;
        for partitions in leaders.values_mut() {
            partitions.retain(|(id, _)| question.counts(*id));
        }
        let latest = self.offsets(server, &leaders, LATEST).await?;
        let unknown = |topic: &String, id: i32| {
            committed.get(&(topic.clone(), id)).is_none_or(|offset| *offset == NONE)
        };
        let mut first = Offsets::new();
        if question.from_earliest {
            let mut leaders = leaders.clone();
            for (topic, partitions) in &mut leaders {
                partitions.retain(|(id, _)| unknown(topic, *id));
            }
            first = self.offsets(server, &leaders, EARLIEST).await?;
        }
        let mut positions = Vec::with_capacity(latest.len());
        for (number, (topic, partitions)) in (0_i64..).zip(leaders) {
            for (id, _) in partitions {
                let key = (topic.clone(), id);
                let Some(latest) = latest.get(&key).copied() else { continue };
                let committed = committed.get(&key).copied().unwrap_or(NONE);
                let first = first.get(&key).copied().unwrap_or(0);
                let partition = (number, i64::from(id));
                positions.push(Position { partition, committed, latest, first });
            }
        }
        Ok(positions)
    }

    /// Everything that a group has committed.
    async fn committed(&self, server: &Arc<str>, group: &str) -> Result<Offsets, TriggerError> {
        let mut request = Writer::default();
        request.text(group);
        let answer = self.any(server, wire::FIND_COORDINATOR, &request).await?;
        let (code, coordinator) = coordinator(&answer).map_err(|e| unreachable(server, &e))?;
        check(server, "finding the coordinator of the consumer group", code)?;
        // No list of topics stands for all.
        request.i32(-1);
        let answer = self.call(server, &coordinator, wire::OFFSET_FETCH, &request).await?;
        let (codes, offsets) = committed(&answer).map_err(|e| unreachable(server, &e))?;
        for code in codes {
            check(server, "listing consumer group offsets", code)?;
        }
        Ok(offsets)
    }

    /// Who leads the partitions of topics.
    async fn leaders(&self, server: &Arc<str>, topics: &[String]) -> Result<Leaders, TriggerError> {
        let mut request = Writer::default();
        request.count(topics.len());
        for topic in topics {
            request.text(topic);
        }
        // Topics that are not there are not made.
        request.i8(0);
        let answer = self.any(server, wire::METADATA, &request).await?;
        let (codes, leaders) = leaders(&answer).map_err(|e| unreachable(server, &e))?;
        for code in codes {
            check(server, "describing topics", code)?;
        }
        Ok(leaders)
    }

    /// Where partitions end or begin, each by its leader.
    async fn offsets(
        &self,
        server: &Arc<str>,
        leaders: &Leaders,
        place: i64,
    ) -> Result<Offsets, TriggerError> {
        let mut by_leader: BTreeMap<&str, BTreeMap<&str, Vec<i32>>> = BTreeMap::new();
        for (topic, partitions) in leaders {
            for (id, leader) in partitions {
                by_leader.entry(leader).or_default().entry(topic).or_default().push(*id);
            }
        }
        let mut all = Offsets::new();
        for (leader, topics) in by_leader {
            let mut request = Writer::default();
            // It is no broker that asks.
            request.i32(-1).count(topics.len());
            for (topic, partitions) in topics {
                request.text(topic).count(partitions.len());
                for id in partitions {
                    request.i32(id).i64(place);
                }
            }
            let answer = self.call(server, leader, wire::LIST_OFFSETS, &request).await?;
            let (codes, offsets) = listed(&answer).map_err(|e| unreachable(server, &e))?;
            for code in codes {
                check(server, "listing the offsets of partitions", code)?;
            }
            all.extend(offsets);
        }
        Ok(all)
    }

    /// Asks the first broker that can be reached.
    async fn any(
        &self,
        server: &Arc<str>,
        api: Api,
        request: &Writer,
    ) -> Result<Vec<u8>, TriggerError> {
        let mut last = TriggerError::Late(server.clone());
        for address in &self.brokers {
            let asking = self.call(server, address, api, request);
            match tokio::time::timeout(BROKER_PATIENCE, asking).await {
                Ok(Err(error)) if error.is_outage() => last = error,
                Ok(answer) => return answer,
                Err(_) => last = TriggerError::Late(server.clone()),
            }
        }
        Err(last)
    }

    /// Asks a broker.
    async fn call(
        &self,
        server: &Arc<str>,
        address: &str,
        api: Api,
        request: &Writer,
    ) -> Result<Vec<u8>, TriggerError> {
        let kept = self.idle.lock().remove(address);
        // A connection that was kept may have been closed meanwhile; a new one cannot have been.
        if let Some(mut kept) = kept
            && let Ok(answer) = kept.call(api, request).await
        {
            self.keep(address, kept);
            return Ok(answer);
        }
        let mut connection = Connection::new(self.opener.open(address).await?);
        if let Some(login) = &self.login {
            log_in(server, address, &mut connection, login).await?;
        }
        let answer = connection.call(api, request).await;
        let answer = answer.map_err(|error| unreachable(server, &error))?;
        self.keep(address, connection);
        Ok(answer)
    }

    fn keep(&self, address: &str, connection: Connection) {
        let mut idle = self.idle.lock();
        if idle.len() < MOST_IDLE {
            idle.insert(address.to_owned(), connection);
        }
    }
}

fn coordinator(answer: &[u8]) -> io::Result<(i16, String)> {
    let mut reader = Reader(answer);
    let (code, _node) = (reader.i16()?, reader.i32()?);
    Ok((code, host_and_port(reader.text()?, reader.i32()?)))
}

fn host_and_port(host: String, port: i32) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn committed(answer: &[u8]) -> io::Result<(Vec<i16>, Offsets)> {
    let (mut reader, mut codes, mut offsets) = (Reader(answer), Vec::new(), Offsets::new());
    reader.list(|reader| {
        let topic = reader.text()?;
        reader.list(|reader| {
            let (id, offset, _about) = (reader.i32()?, reader.i64()?, reader.text()?);
            codes.push(reader.i16()?);
            offsets.insert((topic.clone(), id), offset);
            Ok(())
        })
    })?;
    codes.push(reader.i16()?);
    Ok((codes, offsets))
}

fn leaders(answer: &[u8]) -> io::Result<(Vec<i16>, Leaders)> {
    let (mut reader, mut codes, mut leaders) = (Reader(answer), Vec::new(), Leaders::new());
    let _throttled = reader.i32()?;
    let brokers = reader.list(|reader| {
        let (node, host, port) = (reader.i32()?, reader.text()?, reader.i32()?);
        reader.text().map(|_rack| (node, host_and_port(host, port)))
    })?;
    let brokers: HashMap<i32, String> = brokers.into_iter().collect();
    let (_cluster, _controller) = (reader.text()?, reader.i32()?);
    reader.list(|reader| {
        codes.push(reader.i16()?);
        let (topic, _internal) = (reader.text()?, reader.i8()?);
        let partitions = reader.list(|reader| {
            let (code, id, leader) = (reader.i16()?, reader.i32()?, reader.i32()?);
            let (_replicas, _in_sync) = (reader.list(Reader::i32)?, reader.list(Reader::i32)?);
            Ok((code, id, leader))
        })?;
        let known = partitions.iter().filter_map(|(code, id, leader)| {
            let address = brokers.get(leader);
            if address.is_none() {
                // Nobody leads it at the moment.
                codes.push(if *code == 0 { 5 } else { *code });
            }
            Some((*id, address?.clone()))
        });
        let known = known.collect();
        leaders.insert(topic, known);
        Ok(())
    })?;
    Ok((codes, leaders))
}

fn listed(answer: &[u8]) -> io::Result<(Vec<i16>, Offsets)> {
    let (mut reader, mut codes, mut offsets) = (Reader(answer), Vec::new(), Offsets::new());
    reader.list(|reader| {
        let topic = reader.text()?;
        reader.list(|reader| {
            let id = reader.i32()?;
            codes.push(reader.i16()?);
            let (_time, offset) = (reader.i64()?, reader.i64()?);
            offsets.insert((topic.clone(), id), offset);
            Ok(())
        })
    })?;
    Ok((codes, offsets))
}
