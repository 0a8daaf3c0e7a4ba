//! The dashboard in a real browser: what is seen, what a click, a key and an update do, in both
//! themes and at a phone's width; no errors in the console, no request to any other host.
//!
//! Needs Chromium (`$CHROMIUM`, or on the path); without one the test is shown as ignored.
//! `PODSCALE_SCREENSHOTS=FOLDER` keeps pictures of what it saw.

#[path = "dashboard/browser.rs"]
mod browser;
#[path = "dashboard/sample.rs"]
mod sample;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use browser::Browser;
use libtest_mimic::{Arguments, Trial};
use podscale::dashboard::{Hub, router};
use podscale_client::clock::Clock;
use podscale_core::{Span, Time};
use sample::World;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// The time that the page shows at first.
const EPOCH: &str = "2026-11-16T10:24:00Z";

fn main() -> ExitCode {
    let program = browser::find();
    let missing = program.is_none();
    let test = Trial::test("the_page_in_a_browser", move || {
        let program = program.clone().context("there is no Chromium")?;
        check(&program).map_err(|error| format!("{error:#}").into())
    });
    libtest_mimic::run(&Arguments::from_args(), vec![test.with_ignored_flag(missing)]).exit_code()
}

/// A served sample and a browser that looks at it.
struct Stage {
    world: World,
    hub: Hub,
    browser: Browser,
    origin: String,
    address: SocketAddr,
    runtime: Runtime,
}

fn check(program: &Path) -> Result<()> {
    let mut stage = Stage::new(program)?;
    let seen = all_is_well(&mut stage);
    if seen.is_err() {
        stage.keep_picture("dashboard-failure")?;
    }
    seen?;
    losing_the_server_is_shown(stage)
}

fn all_is_well(stage: &mut Stage) -> Result<()> {
    empty_then_filled(stage)?;
    list_tells_the_state(stage)?;
    list_can_be_filtered_and_sorted(stage)?;
    chart_shows_replicas_and_metrics(stage)?;
    decisions_are_explained(stage)?;
    keys_move_through_decisions(stage)?;
    updates_are_pushed(stage)?;
    themes_follow_the_system_and_the_button(stage)?;
    phone_shows_one_thing_at_a_time(stage)?;
    nothing_went_wrong(stage)
}

/// A hub and its page on an address, for as long as the runtime lives.
fn serve(address: SocketAddr) -> Result<(Runtime, SocketAddr, Hub)> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let inside = runtime.enter();
    let hub = Hub::new(Clock::fast(EPOCH.parse()?, 1.0));
    drop(inside);
    let listener = runtime.block_on(tokio::net::TcpListener::bind(address))?;
    let address = listener.local_addr()?;
    let served = router(hub.clone());
    runtime.spawn(async move { axum::serve(listener, served).await });
    Ok((runtime, address, hub))
}

impl Stage {
    fn new(program: &Path) -> Result<Stage> {
        let (runtime, address, hub) = serve(([127, 0, 0, 1], 0).into())?;
        // The history ends where the clock begins.
        let epoch = EPOCH.parse::<jiff::Timestamp>()?;
        let began = Time(epoch.as_microsecond()).before(Span::seconds(44 * 60));
        let world = World::new(hub.clone(), began);
        let profile = std::env::temp_dir().join(format!("podscale-browser-{}", std::process::id()));
        let mut browser = Browser::start(program, profile)?;
        let utc = serde_json::json!({"timezoneId": "UTC"});
        browser.call("Emulation.setTimezoneOverride", utc)?;
        browser.resize(1440, 1240, false)?;
        browser.prefer("light")?;
        Ok(Stage { world, hub, browser, origin: format!("http://{address}"), address, runtime })
    }

    fn text(&mut self, selector: &str) -> Result<String> {
        let quoted = serde_json::to_string(selector)?;
        let text = self.browser.eval(&format!("document.querySelector({quoted})?.textContent"))?;
        text.as_str().map(str::to_owned).with_context(|| format!("nothing is at {selector}"))
    }

    /// Keeps what is seen, from the top of everything, with the pointer out of the way.
    fn keep_scene(&mut self, name: &str) -> Result<()> {
        self.browser.eval(
            "for (const e of [document.documentElement, ...document.querySelectorAll('.side, #detail')]) \
             e.scrollTop = 0; document.activeElement?.blur()",
        )?;
        self.browser.point("document.querySelector('.top .link')", false)?;
        self.keep_picture(name)
    }

    fn keep_picture(&mut self, name: &str) -> Result<()> {
        let Some(folder) = std::env::var_os("PODSCALE_SCREENSHOTS").map(PathBuf::from) else {
            return Ok(());
        };
        let picture = self.browser.picture()?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(picture)?;
        std::fs::write(folder.join(format!("{name}.png")), bytes)?;
        Ok(())
    }
}

const ROWS: &str = "document.querySelectorAll('#rows a.row').length";

fn empty_then_filled(stage: &mut Stage) -> Result<()> {
    let origin = stage.origin.clone();
    stage.browser.open(&format!("{origin}/"))?;
    stage
        .browser
        .wait("document.querySelector('#blank')?.textContent.startsWith('No autoscaler')")?;
    ensure!(stage.text("#link .word")? == "Live");
    stage.world.pass_minutes(44);
    stage.browser.wait(&format!("{ROWS} === 6"))
}

fn list_tells_the_state(stage: &mut Stage) -> Result<()> {
    let names = "[...document.querySelectorAll('#rows .name')].map(n => n.textContent).join()";
    // What fails stands first.
    stage.browser.eval("document.querySelector('#sort').dispatchEvent(new Event('change')), 1")?;
    let names = stage.browser.eval(names)?;
    ensure!(names.as_str().is_some_and(|n| n.starts_with("ingest,")), "{names}");
    let failing = stage.text("#rows li")?;
    for part in ["Failing", "data · Deployment/ingest", "2–8", "lag", "unknown / 1000", "scaled"]
    {
        ensure!(failing.contains(part), "{part:?} is not in {failing:?}");
    }
    ensure!(stage.text("#tally")? == "6 autoscalers, 1 failing");
    let side = "document.querySelector('.side')";
    ensure!(stage.browser.eval(&format!("{side}.scrollWidth - {side}.clientWidth"))? == 0);
    Ok(())
}

fn list_can_be_filtered_and_sorted(stage: &mut Stage) -> Result<()> {
    let find = |text: &str| {
        format!(
            "(() => {{ const f = document.querySelector('#find'); f.value = '{text}'; \
                 f.dispatchEvent(new Event('input')); return {ROWS}; }})()"
        )
    };
    ensure!(stage.browser.eval(&find("shop"))? == 3);
    ensure!(stage.browser.eval(&find("shop sear"))? == 1);
    ensure!(stage.browser.eval(&find("nothing like it"))? == 0);
    ensure!(stage.text("#blank")?.starts_with("None of 6 autoscalers"));
    ensure!(stage.browser.eval(&find(""))? == 6);
    let sorted = stage.browser.eval(
        "(() => { const s = document.querySelector('#sort'); s.value = 'name'; \
         s.dispatchEvent(new Event('change')); \
         return [...document.querySelectorAll('#rows .name')].map(n => n.textContent).join(); })()",
    )?;
    ensure!(sorted == "ingest,thumbnails,catalog-cache,checkout,search,landing", "{sorted}");
    Ok(())
}

const MARKERS: &str = "document.querySelectorAll('.marker').length";

fn chart_shows_replicas_and_metrics(stage: &mut Stage) -> Result<()> {
    stage.browser.point("document.querySelector('a.row[href=\"#/shop/search\"]')", true)?;
    stage.browser.wait("document.querySelector('#title').textContent === 'search'")?;
    stage.browser.wait("document.querySelectorAll('.pane').length === 3")?;
    stage.browser.point("document.querySelector('.ranges button:last-child')", true)?;
    stage.browser.wait(&format!("{MARKERS} > 5"))?;
    for line in
        [".line.current", ".line.desired", ".band", ".tone-0 .line.value", ".tone-1 .line.goal"]
    {
        let length = stage.browser.eval(&format!(
            "document.querySelector('.pane{0}{line}')?.getTotalLength() ?? 0",
            if line.starts_with(".tone") { "" } else { " " }
        ))?;
        ensure!(length.as_f64().is_some_and(|l| l > 300.0), "{line} has a length of {length}");
    }
    ensure!(stage.text(".pane.tone-1 .pane-title")? == "requests_per_second");
    Ok(())
}

fn decisions_are_explained(stage: &mut Stage) -> Result<()> {
    let last_up = "[...document.querySelectorAll('.marker[data-outcome=up]')].at(-1)";
    stage.browser.point(last_up, false)?;
    stage.browser.wait("!document.querySelector('.tip').hidden")?;
    let tip = stage.text(".tip")?;
    ensure!(tip.contains("so the size changes from") && tip.contains("Scaled up from"), "{tip}");
    stage.keep_picture("dashboard-hover")?;
    stage.browser.point(last_up, true)?;
    stage
        .browser
        .wait("document.querySelector('#why-title').textContent.startsWith('Scaled up')")?;
    let lines = stage
        .browser
        .eval("[...document.querySelectorAll('.why .lines li')].map(l => l.textContent)")?;
    let lines: Vec<&str> =
        lines.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    ensure!(lines.len() >= 5, "{lines:?}");
    ensure!(lines[0].starts_with("Deployment search has"), "{lines:?}");
    ensure!(lines.iter().any(|l| l.contains("cpu is at")), "{lines:?}");
    ensure!(
        stage.browser.eval("document.querySelectorAll('.log [aria-pressed=true]').length")? == 1
    );
    stage.keep_scene("dashboard-light")
}

fn keys_move_through_decisions(stage: &mut Stage) -> Result<()> {
    let focused = "document.activeElement?.getAttribute('aria-label')";
    stage.browser.eval("document.querySelector('.ranges button:last-child').focus()")?;
    stage.browser.key("Tab")?;
    let first = stage.browser.eval(focused)?;
    ensure!(first.as_str().is_some_and(|l| l.contains("Scaled up from")), "{first}");
    stage.browser.key("ArrowLeft")?;
    let second = stage.browser.eval(focused)?;
    ensure!(second.is_string() && second != first, "the arrow moved from {first} to {second}");
    ensure!(stage.browser.eval("document.querySelector('.tip').hidden")? == false);
    stage.browser.key("Enter")?;
    let chosen = "document.querySelector('.marker[aria-pressed=true]')?.getAttribute('aria-label')";
    ensure!(stage.browser.eval(chosen)? == second);
    stage.browser.key("Escape")?;
    ensure!(stage.browser.eval("document.querySelector('.tip').hidden")? == true);
    stage.browser.key("ArrowRight")?;
    ensure!(stage.browser.eval(focused)? == first);
    stage.browser.point("document.querySelector('.step.wide')", true)?;
    stage
        .browser
        .wait("document.querySelector('.why-when').textContent.startsWith('The latest pass')")
}

fn updates_are_pushed(stage: &mut Stage) -> Result<()> {
    let mark = "document.querySelector('.why-when').textContent";
    let before = stage.browser.eval(mark)?;
    stage.world.step();
    stage.browser.wait(&format!("{mark} !== {before}"))?;
    stage.hub.remove("web/landing");
    stage.browser.wait(&format!("{ROWS} === 5"))?;
    // The same page all along: nothing was loaded again.
    ensure!(stage.browser.eval("performance.getEntriesByType('navigation').length")? == 1);
    ensure!(stage.text("#title")? == "search");
    Ok(())
}

fn themes_follow_the_system_and_the_button(stage: &mut Stage) -> Result<()> {
    const GROUND: &str = "getComputedStyle(document.body).backgroundColor";
    let light = stage.browser.eval(GROUND)?;
    stage.browser.prefer("dark")?;
    let dark = stage.browser.eval(GROUND)?;
    ensure!(light != dark, "both are {light}");
    stage.browser.point("document.querySelector('a.row[href=\"#/shop/checkout\"]')", true)?;
    stage.browser.wait(&format!(
        "document.querySelector('#title').textContent === 'checkout' && {MARKERS} > 3"
    ))?;
    stage.keep_scene("dashboard-dark")?;
    stage.browser.point("document.querySelector('#theme')", true)?;
    ensure!(stage.browser.eval(GROUND)? == light, "the button chooses light first");
    stage.browser.point("document.querySelector('#theme')", true)?;
    stage.browser.prefer("light")?;
    ensure!(stage.browser.eval(GROUND)? == dark, "the choice outlasts the system's");
    stage.browser.point("document.querySelector('#theme')", true)?;
    ensure!(stage.browser.eval(GROUND)? == light);
    Ok(())
}

fn phone_shows_one_thing_at_a_time(stage: &mut Stage) -> Result<()> {
    const OVERFLOW: &str =
        "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    let shown = |id: &str| format!("document.querySelector('{id}').getClientRects().length > 0");
    stage.browser.resize(360, 780, true)?;
    stage.browser.eval("location.hash = '#/'")?;
    stage.browser.wait(&format!("{} && !({})", shown(".side"), shown("#detail")))?;
    ensure!(stage.browser.eval(OVERFLOW)? == 0, "the list is wider than the phone");
    stage.keep_scene("dashboard-phone-list")?;
    stage.browser.point("document.querySelector('a.row[href=\"#/media/thumbnails\"]')", true)?;
    stage.browser.wait(&format!(
        "{} && !({}) && {MARKERS} > 3",
        shown("#detail"),
        shown(".side")
    ))?;
    ensure!(stage.browser.eval(OVERFLOW)? == 0, "the charts are wider than the phone");
    stage.keep_scene("dashboard-phone")?;
    stage.browser.eval("scrollTo(0, 780)")?;
    stage.keep_picture("dashboard-phone-why")?;
    stage.browser.point("document.querySelector('.back')", true)?;
    stage.browser.wait(&shown(".side"))?;
    stage.browser.resize(1440, 1240, false)
}

fn nothing_went_wrong(stage: &mut Stage) -> Result<()> {
    let origin = stage.origin.clone();
    let mut requests = 0;
    for event in stage.browser.events() {
        match event["method"].as_str() {
            Some("Network.requestWillBeSent") => {
                let url = event["params"]["request"]["url"].as_str().unwrap_or_default();
                ensure!(url.starts_with(&format!("{origin}/")), "a request to {url}");
                requests += 1;
            }
            Some("Runtime.exceptionThrown" | "Log.entryAdded") => {
                anyhow::bail!("in the console: {}", event["params"]);
            }
            Some("Runtime.consoleAPICalled") => {
                anyhow::bail!("in the console: {}", event["params"])
            }
            _ => {}
        }
    }
    ensure!(requests > 10, "only {requests} requests were seen");
    Ok(())
}

/// The server goes away, and another one comes in its place.
fn losing_the_server_is_shown(stage: Stage) -> Result<()> {
    let Stage { mut browser, hub, runtime, address, .. } = stage;
    hub.close();
    runtime.shutdown_timeout(Duration::from_secs(60));
    browser.wait("document.querySelector('#link .word').textContent === 'Reconnecting'")?;
    ensure!(browser.eval(ROWS)? == 5, "what was known stays");
    let (_runtime, _, hub) = serve(address)?;
    let epoch = Time(EPOCH.parse::<jiff::Timestamp>()?.as_microsecond());
    World::new(hub, epoch).step();
    browser.wait("document.querySelector('#link .word').textContent === 'Live'")?;
    browser.wait(&format!("{ROWS} === 6"))
}
