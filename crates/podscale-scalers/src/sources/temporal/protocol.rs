//! The messages of Temporal's workflow service that are needed, with the fields that are.

use prost::Message;
use std::collections::HashMap;

/// Types of tasks.
pub(super) const WORKFLOW: i32 = 1;
pub(super) const ACTIVITY: i32 = 2;
pub(super) const NEXUS: i32 = 3;
/// The answer tells versions and types apart.
pub(super) const ENHANCED: i32 = 1;

/// Which queue is described, and how.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DescribeTaskQueueRequest {
    #[prost(string, tag = "1")]
    pub(super) namespace: String,
    #[prost(message, optional, tag = "2")]
    pub(super) task_queue: Option<TaskQueue>,
    #[prost(int32, tag = "5")]
    pub(super) api_mode: i32,
    #[prost(message, optional, tag = "6")]
    pub(super) versions: Option<VersionSelection>,
    #[prost(int32, repeated, tag = "7")]
    pub(super) task_queue_types: Vec<i32>,
    #[prost(bool, tag = "8")]
    pub(super) report_stats: bool,
}

/// A queue by name.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TaskQueue {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

/// Which versions of workers count.
#[derive(Clone, PartialEq, Message)]
pub(super) struct VersionSelection {
    #[prost(string, repeated, tag = "1")]
    pub(super) build_ids: Vec<String>,
    #[prost(bool, tag = "2")]
    pub(super) unversioned: bool,
    #[prost(bool, tag = "3")]
    pub(super) all_active: bool,
}

/// A queue by version.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DescribeTaskQueueResponse {
    #[prost(map = "string, message", tag = "3")]
    pub(super) versions_info: HashMap<String, VersionInfo>,
}

/// A version by type of tasks.
#[derive(Clone, PartialEq, Message)]
pub(super) struct VersionInfo {
    #[prost(map = "int32, message", tag = "1")]
    pub(super) types_info: HashMap<i32, TypeInfo>,
}

/// Tasks of one type.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TypeInfo {
    #[prost(message, optional, tag = "2")]
    pub(super) stats: Option<Stats>,
}

/// How many wait.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Stats {
    #[prost(int64, tag = "1")]
    pub(super) approximate_backlog_count: i64,
}

impl DescribeTaskQueueResponse {
    /// How many tasks wait, of all versions and types.
    pub(super) fn waiting(&self) -> f64 {
        let types = self.versions_info.values().flat_map(|version| version.types_info.values());
        let counts = types.filter_map(|info| Some(info.stats.as_ref()?.approximate_backlog_count));
        counts.fold(0, i64::saturating_add) as f64
    }
}
