//! Room beside the demand that is learned by what comes of it: more whenever the demand is above what the ready pods
//! are for, a little less all the other time, so that it is above them as often as the spec allows.
//!
//! Nothing is assumed of the load. Where it is steady the room shrinks to nothing; where bursts keep coming it grows
//! until they fit, or to its limit, and shrinks again in the hours after the last one.

use super::Context;
use crate::history::{Memory, Room};
use crate::model::{Headroom, Milli};
use crate::pod::Pod;
use crate::predict::Demand;
use crate::time::Span;

/// By how many millionths of the demand the room grows in a second in which the demand is above the pods: a tenth in
/// ten seconds. Allowed to be short for two thousandths of the time, it shrinks by as much within an hour and a half.
const GROWTH: i64 = 10_000;
/// What happened between two decisions is not known for longer than this.
const LONGEST: Span = Span::seconds(60);
/// Millionths in a hundredth.
const PERCENT: i64 = 10_000;

/// Learns from a demand; the room beside it in replicas, or nothing if it is not to be learned.
pub(super) fn learn(
    context: &Context<'_>,
    headroom: Headroom,
    pods: &[Pod],
    demand: &Demand,
    memory: &mut Memory,
) -> Option<Milli> {
    let allowed = i64::from(headroom.overload_permille?.min(1000));
    let most = i64::from(headroom.most_percent).saturating_mul(PERCENT);
    let before = memory.room.unwrap_or(Room { part: 0, at: demand.at });
    let passed = demand.at.since(before.at).clamp(Span(0), LONGEST).0;
    let serving = pods.iter().filter(|pod| pod.is_serving()).count() as i64;
    let is_above = demand.replicas.0 > serving.saturating_mul(1000);
    // With as many pods as there may be, more room would change nothing but the time it takes to shrink.
    let grows = is_above && context.current() < context.bounds.max;
    let change = if grows { GROWTH } else { 0 } - GROWTH * allowed / 1000;
    let part = before.part.saturating_add(passed * change / 1_000_000).clamp(0, most);
    memory.room = Some(Room { part, at: demand.at.max(before.at) });
    let room = i128::from(demand.replicas.0.max(0)) * i128::from(part) / 1_000_000;
    Some(Milli(i64::try_from(room).unwrap_or(i64::MAX)))
}
