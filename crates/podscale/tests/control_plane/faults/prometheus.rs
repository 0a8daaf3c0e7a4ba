//! A Prometheus in trouble, as the source of cpu: those measured by another source do not wait for it.

use super::*;
use axum::extract::Form;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use std::collections::HashMap;
use tokio::net::TcpListener;

/// How it behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Well,
    /// Says nothing until it behaves in another way.
    Hangs,
    /// 503, as with too many queries.
    Overloaded,
    /// 422, as for a query that takes too many samples.
    Refuses,
    /// A web page.
    SomethingElse,
    /// The truth, among 100,000 series of pods that there are not.
    VeryManySeries,
}

#[derive(Clone)]
struct Fake {
    fixture: Fixture,
    burning: Burning,
    mode: watch::Receiver<Mode>,
}

fn refuse(code: StatusCode, kind: &str, error: &str) -> Response {
    (code, Json(json!({"status": "error", "errorType": kind, "error": error}))).into_response()
}

async fn answer(State(mut fake): State<Fake>, Form(_): Form<HashMap<String, String>>) -> Response {
    // If nobody can change it any more, the test is over.
    let _ = fake.mode.wait_for(|mode| *mode != Mode::Hangs).await;
    let mode = *fake.mode.borrow();
    match mode {
        Mode::Overloaded => {
            let error = "query timed out in expression evaluation";
            refuse(StatusCode::SERVICE_UNAVAILABLE, "timeout", error)
        }
        Mode::Refuses => {
            let error = "query processing would load too many samples into memory";
            refuse(StatusCode::UNPROCESSABLE_ENTITY, "execution", error)
        }
        Mode::SomethingElse => "<html>moved</html>".into_response(),
        Mode::Well | Mode::Hangs => fake.truth(0),
        Mode::VeryManySeries => fake.truth(100_000),
    }
}

impl Fake {
    fn truth(&self, others: u32) -> Response {
        let series = |pod: &str, cores: f64| {
            json!({"metric": {"namespace": self.fixture.namespace, "pod": pod, "container": "app"},
                "value": [jiff::Timestamp::now().as_second(), cores.to_string()]})
        };
        let mut all: Vec<Value> =
            (0..others).map(|number| series(&format!("none-{number}"), 1.0)).collect();
        let shares = self.burning.shares(&self.fixture, "cpu");
        all.extend(shares.iter().map(|(pod, cores)| series(pod, *cores)));
        Json(json!({"status": "success", "data": {"resultType": "vector", "result": all}}))
            .into_response()
    }
}

pub(super) async fn scenario(fixture: Fixture) -> Result<()> {
    let (plane, burning) = (&fixture.environment.plane, Burning::default());
    let (mode, behaviour) = watch::channel(Mode::Well);
    let fake = Fake { fixture: fixture.clone(), burning: burning.clone(), mode: behaviour };
    let router = Router::new().route("/api/v1/query", post(answer)).with_state(fake);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let url = format!("--prometheus-url=http://{}", listener.local_addr()?);
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    burning.set("cpu", 2);
    fixture.set_load("load", 2.0);
    for (name, metric) in [("cpu", cpu()), ("load", load("load"))] {
        fixture.deployment(name, 2).await?;
        fixture.autoscaler(name, (1, 9), metric, Value::Null).await?;
    }
    let timeout = format!("--prometheus-timeout={FOR_EVER}");
    let flags = ["--leader-elect=false", "--resource-metrics=prometheus", &url, &timeout];
    let mut program = Program::quick(&fixture.namespace, plane, &flags)?;
    let ended = through_all(&fixture, &burning, &mode).await;
    ended.with_context(|| program.log_tail())?;
    serving.abort();
    program.stop().await
}

async fn through_all(
    fixture: &Fixture,
    burning: &Burning,
    mode: &watch::Sender<Mode>,
) -> Result<()> {
    cpu_follows(fixture, burning).await.context("at first")?;
    for (fault, says) in [
        (Mode::Hangs, None),
        (Mode::Overloaded, Some("Prometheus answered 503 timeout: query timed out")),
        (Mode::Refuses, Some("Prometheus answered 422 execution: query processing would load")),
        (Mode::SomethingElse, Some("the answer is not one of Prometheus' API")),
    ] {
        mode.send_replace(fault);
        burning.set("cpu", 9);
        load_follows(fixture).await.with_context(|| format!("{fault:?}"))?;
        if let Some(says) = says {
            let verdict = "False FailedGetResourceMetric";
            let said = fixture.until_message("cpu", "ScalingActive", verdict, says).await;
            said.with_context(|| format!("{fault:?}"))?;
        }
        ensure!(fixture.replicas("cpu").await? == 2, "{fault:?}: it was scaled without a value");
        burning.set("cpu", 2);
        mode.send_replace(Mode::Well);
        cpu_follows(fixture, burning).await.with_context(|| format!("after {fault:?}"))?;
    }
    mode.send_replace(Mode::VeryManySeries);
    load_follows(fixture).await.context("with 100,000 series")?;
    cpu_follows(fixture, burning).await.context("with 100,000 series")
}

/// What Prometheus measures is followed.
async fn cpu_follows(fixture: &Fixture, burning: &Burning) -> Result<()> {
    for replicas in [3, 2] {
        burning.set("cpu", replicas);
        fixture.until_replicas("cpu", replicas).await?;
        fixture.until_pods("cpu", i32::try_from(replicas)?).await?;
    }
    Ok(())
}

/// What another source measures is followed.
async fn load_follows(fixture: &Fixture) -> Result<()> {
    for replicas in SIZES {
        fixture.set_load("load", replicas as f64);
        fixture.until_replicas("load", replicas).await?;
    }
    Ok(())
}
