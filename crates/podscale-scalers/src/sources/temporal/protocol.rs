//! The messages of Temporal's workflow service that are needed, with the fields that are.

use prost::Message;

/// Types of tasks.
pub(super) const WORKFLOW: i32 = 1;
pub(super) const ACTIVITY: i32 = 2;
pub(super) const NEXUS: i32 = 3;
/// A queue that is not one worker's own.
pub(super) const NORMAL: i32 = 1;
/// What a version of workers is for: all new work, some of it, or only what it has begun.
pub(super) const CURRENT: i32 = 2;
pub(super) const RAMPING: i32 = 3;
pub(super) const DRAINING: i32 = 4;

/// The path of a method.
pub(super) fn method(name: &str) -> String {
    format!("temporal.api.workflowservice.v1.WorkflowService/{name}")
}

/// Which queue is described, by one type of its tasks.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DescribeTaskQueueRequest {
    #[prost(string, tag = "1")]
    pub(super) namespace: String,
    #[prost(message, optional, tag = "2")]
    pub(super) task_queue: Option<TaskQueue>,
    #[prost(int32, tag = "3")]
    pub(super) task_queue_type: i32,
    #[prost(bool, tag = "8")]
    pub(super) report_stats: bool,
}

/// A queue by name.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TaskQueue {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(int32, tag = "2")]
    pub(super) kind: i32,
}

/// What is known of it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DescribeTaskQueueResponse {
    #[prost(message, optional, tag = "5")]
    pub(super) stats: Option<Stats>,
}

/// How many tasks wait.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Stats {
    #[prost(int64, tag = "1")]
    pub(super) approximate_backlog_count: i64,
}

/// Which version of workers is described.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DescribeWorkerDeploymentVersionRequest {
    #[prost(string, tag = "1")]
    pub(super) namespace: String,
    #[prost(message, optional, tag = "3")]
    pub(super) deployment_version: Option<WorkerDeploymentVersion>,
    #[prost(bool, tag = "4")]
    pub(super) report_task_queue_stats: bool,
}

/// A version by its names.
#[derive(Clone, PartialEq, Message)]
pub(super) struct WorkerDeploymentVersion {
    #[prost(string, tag = "1")]
    pub(super) build_id: String,
    #[prost(string, tag = "2")]
    pub(super) deployment_name: String,
}

/// What it is for, and its queues.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DescribeWorkerDeploymentVersionResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) info: Option<VersionInfo>,
    #[prost(message, repeated, tag = "2")]
    pub(super) version_task_queues: Vec<VersionTaskQueue>,
}

/// What a version is for.
#[derive(Clone, PartialEq, Message)]
pub(super) struct VersionInfo {
    #[prost(int32, tag = "14")]
    pub(super) status: i32,
}

/// A queue of a version, by one type of its tasks.
#[derive(Clone, PartialEq, Message)]
pub(super) struct VersionTaskQueue {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(int32, tag = "2")]
    pub(super) kind: i32,
    #[prost(message, optional, tag = "3")]
    pub(super) stats: Option<Stats>,
}

/// Which workflows are counted.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CountWorkflowExecutionsRequest {
    #[prost(string, tag = "1")]
    pub(super) namespace: String,
    #[prost(string, tag = "2")]
    pub(super) query: String,
}

/// How many they are.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CountWorkflowExecutionsResponse {
    #[prost(int64, tag = "1")]
    pub(super) count: i64,
}

/// How many tasks wait, of none if nothing is known.
pub(super) fn waiting(stats: Option<&Stats>) -> i64 {
    stats.map_or(0, |stats| stats.approximate_backlog_count)
}

impl DescribeWorkerDeploymentVersionResponse {
    /// How many tasks of a queue wait, of these types.
    pub(super) fn waiting(&self, queue: &str, types: &[i32]) -> i64 {
        let queues = self.version_task_queues.iter();
        let ours = queues.filter(|found| found.name == queue && types.contains(&found.kind));
        ours.map(|found| waiting(found.stats.as_ref())).fold(0, i64::saturating_add)
    }
}
