//! The environment that all scenarios share (one control plane, its kubelet and its metrics) and which
//! scenarios may use it at the same time.

use super::fixture::{Fixture, Workspace};
use super::kubelet::Kubelet;
use super::metrics::Metrics;
use super::node::Cluster;
use super::plane::{Autoscaler, ControlPlane};
use super::program::Program;
use anyhow::Result;
use libtest_mimic::{Failed, Trial};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, RwLock};

/// A control plane with pods that run and metrics that can be set.
pub struct Environment {
    pub plane: ControlPlane,
    pub kubelet: Kubelet,
    pub metrics: Metrics,
    /// The controller that scenarios share; none while one has the environment for itself.
    program: Mutex<Option<Program>>,
}

impl Environment {
    async fn new(folder: &Path) -> Result<Environment> {
        let plane = ControlPlane::start(folder).await?;
        plane.start_manager(Autoscaler::Off, &[]).await?;
        let kubelet = Kubelet::start(&plane.client);
        let metrics = Metrics::start(&plane.client, &plane.authority, kubelet.clone()).await?;
        Ok(Environment { plane, kubelet, metrics, program: Mutex::default() })
    }

    /// Starts the shared controller, which leaves these namespaces alone.
    async fn with_program(&self, apart: &[String]) -> Result<()> {
        let mut program = self.program.lock().await;
        if program.is_none() {
            let excluded = format!("--exclude-namespaces={}", apart.join(","));
            let flags = ["--leader-elect=false", &excluded];
            *program = Some(Program::quick("podscale", &self.plane, &flags)?);
        }
        Ok(())
    }

    async fn without_program(&self) {
        drop(self.program.lock().await.take());
    }

    /// Waits until the shared controller has ended, which it should not.
    async fn program_ended(&self) {
        loop {
            if self.program.lock().await.as_mut().is_none_or(Program::has_ended) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    async fn log_tail(&self) -> String {
        let program = self.program.lock().await;
        program.as_ref().map(Program::log_tail).unwrap_or_default()
    }
}

/// The one environment of this run, started when it is first needed.
#[derive(Clone)]
pub struct Harness(Arc<Inner>);

struct Inner {
    runtime: Runtime,
    folder: PathBuf,
    environment: Mutex<Option<Arc<Environment>>>,
    /// A cluster with a real node, for the scenarios that need one.
    cluster: Mutex<Option<Arc<Cluster>>>,
    /// Held for reading by those who share the controller, for writing by those who do not.
    turn: RwLock<()>,
    /// The namespaces of those who have a controller of their own beside the shared one.
    apart: parking_lot::Mutex<Vec<String>>,
    failed: AtomicBool,
}

impl Harness {
    pub fn new() -> Result<Harness> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let folder =
            std::env::temp_dir().join(format!("podscale-control-plane-{}", std::process::id()));
        Ok(Harness(Arc::new(Inner {
            runtime,
            folder,
            environment: Mutex::default(),
            cluster: Mutex::default(),
            turn: RwLock::new(()),
            apart: parking_lot::Mutex::default(),
            failed: AtomicBool::new(false),
        })))
    }

    /// A scenario that shares the controller with others.
    pub fn shared<F>(
        &self,
        name: &str,
        scenario: impl FnOnce(Fixture) -> F + Send + 'static,
    ) -> Trial
    where
        F: Future<Output = Result<()>>,
    {
        let inner = Arc::clone(&self.0);
        self.trial(name, move |namespace_of| async move {
            let environment = inner.environment().await?;
            let _turn = inner.turn.read().await;
            let apart = inner.apart.lock().clone();
            environment.with_program(&apart).await?;
            let fixture = Fixture::open(Arc::clone(&environment), &namespace_of).await?;
            let ended = tokio::select! {
                ended = scenario(fixture.clone()) => ended,
                () = environment.program_ended() => Err(anyhow::anyhow!("the controller has ended")),
            };
            let ended = match ended {
                Ok(()) => Ok(()),
                Err(error) => {
                    let state = fixture.describe().await;
                    let log = environment.log_tail().await;
                    Err(error.context(format!("{state}\nthe end of the controller's log:\n{log}")))
                }
            };
            fixture.close().await;
            ended
        })
    }

    /// A scenario that shares the environment, but has a controller of its own for its namespace.
    pub fn apart<F>(
        &self,
        name: &str,
        scenario: impl FnOnce(Fixture) -> F + Send + 'static,
    ) -> Trial
    where
        F: Future<Output = Result<()>>,
    {
        let inner = Arc::clone(&self.0);
        self.0.apart.lock().push(namespace_of(name));
        self.trial(name, move |namespace_of| async move {
            let environment = inner.environment().await?;
            let _turn = inner.turn.read().await;
            let fixture = Fixture::open(Arc::clone(&environment), &namespace_of).await?;
            let ended = match scenario(fixture.clone()).await {
                Ok(()) => Ok(()),
                Err(error) => Err(error.context(fixture.describe().await)),
            };
            fixture.close().await;
            ended
        })
    }

    /// A scenario that has the environment, without a controller, for itself.
    pub fn alone<F>(
        &self,
        name: &str,
        scenario: impl FnOnce(Fixture) -> F + Send + 'static,
    ) -> Trial
    where
        F: Future<Output = Result<()>>,
    {
        let inner = Arc::clone(&self.0);
        self.trial(name, move |namespace_of| async move {
            let environment = inner.environment().await?;
            let _turn = inner.turn.write().await;
            environment.without_program().await;
            let fixture = Fixture::open(Arc::clone(&environment), &namespace_of).await?;
            let ended = scenario(fixture.clone()).await;
            let ended = match ended {
                Ok(()) => Ok(()),
                Err(error) => Err(error.context(fixture.describe().await)),
            };
            fixture.close().await;
            ended
        })
    }

    /// A scenario on a real node. Real CPU is measured there, so nothing else runs meanwhile.
    pub fn on_node<F>(
        &self,
        name: &str,
        scenario: impl FnOnce(Arc<Cluster>, Workspace) -> F + Send + 'static,
    ) -> Trial
    where
        F: Future<Output = Result<()>>,
    {
        let inner = Arc::clone(&self.0);
        self.trial(name, move |namespace_of| async move {
            let _turn = inner.turn.write().await;
            if let Some(environment) = &*inner.environment.lock().await {
                environment.without_program().await;
            }
            let cluster = inner.cluster().await?;
            let client = cluster.plane.client.clone();
            let workspace = Workspace::open(client, &namespace_of).await?;
            let ended = match scenario(Arc::clone(&cluster), workspace.clone()).await {
                Ok(()) => Ok(()),
                Err(error) => {
                    let state = workspace.describe().await;
                    Err(error.context(format!("{state}\n{}", cluster.describe())))
                }
            };
            workspace.close().await;
            ended
        })
    }

    /// A scenario that needs nothing of the environment, but must not disturb one that has it for itself.
    pub fn independent<F>(
        &self,
        name: &str,
        scenario: impl FnOnce(String) -> F + Send + 'static,
    ) -> Trial
    where
        F: Future<Output = Result<()>>,
    {
        let inner = Arc::clone(&self.0);
        self.trial(name, move |name| async move {
            let _turn = inner.turn.read().await;
            scenario(name).await
        })
    }

    /// Where everything of this run is kept.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    fn trial<F>(&self, name: &str, run: impl FnOnce(String) -> F + Send + 'static) -> Trial
    where
        F: Future<Output = Result<()>>,
    {
        let inner = Arc::clone(&self.0);
        let namespace_of = namespace_of(name);
        Trial::test(name, move || {
            inner.runtime.block_on(run(namespace_of)).map_err(|error| {
                inner.failed.store(true, Ordering::Relaxed);
                Failed::from(
                    error.chain().rev().map(|cause| format!("{cause}\n")).collect::<String>(),
                )
            })
        })
    }

    /// Shuts everything down; logs are kept if a scenario failed.
    pub fn close(&self) {
        let inner = &self.0;
        inner.runtime.block_on(async {
            drop(inner.cluster.lock().await.take());
            drop(inner.environment.lock().await.take());
        });
        if inner.failed.load(Ordering::Relaxed) {
            eprintln!("logs are in {}", inner.folder.display());
        } else {
            // A folder that was never made is fine as well.
            let _ = std::fs::remove_dir_all(&inner.folder);
        }
    }
}

/// The namespace of a scenario.
fn namespace_of(name: &str) -> String {
    name.replace("::", "-").replace('_', "-")
}

impl Inner {
    async fn cluster(&self) -> Result<Arc<Cluster>> {
        let mut cluster = self.cluster.lock().await;
        match &*cluster {
            Some(cluster) => Ok(Arc::clone(cluster)),
            None => {
                let started = Cluster::start(&self.folder.join("node")).await?;
                Ok(Arc::clone(cluster.insert(Arc::new(started))))
            }
        }
    }

    async fn environment(&self) -> Result<Arc<Environment>> {
        let mut environment = self.environment.lock().await;
        match &*environment {
            Some(environment) => Ok(Arc::clone(environment)),
            None => {
                Ok(Arc::clone(environment.insert(Arc::new(Environment::new(&self.folder).await?))))
            }
        }
    }
}
