//! The dashboard in a real browser: what is seen, what a click, a key and an update do, in both
//! themes and at a phone's width; no errors in the console, no request to any other host.
//!
//! Needs Chromium (`$CHROMIUM`, or on the path); without one the test is shown as ignored.
//! `PODSCALE_SCREENSHOTS=FOLDER` keeps pictures of what it saw.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

#[path = "dashboard/browser.rs"]
mod browser;
#[path = "dashboard/sample.rs"]
mod sample;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use browser::Browser;
use libtest_mimic::{Arguments, Trial};
use podscale_client::clock::Clock;
use podscale_controller::dashboard::{Hub, router};
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

/// A served sample and a browser that shows it.
struct Setup {
    world: World,
    hub: Hub,
    browser: Browser,
    origin: String,
    address: SocketAddr,
    runtime: Runtime,
}

fn check(program: &Path) -> Result<()> {
    let mut setup = Setup::new(program)?;
    let seen = all_is_well(&mut setup);
    if seen.is_err() {
        setup.keep_picture("dashboard-failure")?;
    }
    seen?;
    losing_the_server_is_shown(setup)
}

fn all_is_well(setup: &mut Setup) -> Result<()> {
    empty_then_filled(setup)?;
    list_shows_the_state(setup)?;
    list_can_be_filtered_and_sorted(setup)?;
    chart_shows_replicas_and_metrics(setup)?;
    decisions_are_explained(setup)?;
    keys_move_through_decisions(setup)?;
    updates_are_pushed(setup)?;
    themes_follow_the_system_and_the_button(setup)?;
    phone_shows_one_thing_at_a_time(setup)?;
    nothing_went_wrong(setup)
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

impl Setup {
    fn new(program: &Path) -> Result<Setup> {
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
        Ok(Setup { world, hub, browser, origin: format!("http://{address}"), address, runtime })
    }

    fn text(&mut self, selector: &str) -> Result<String> {
        let quoted = serde_json::to_string(selector)?;
        let text = self.browser.eval(&format!("document.querySelector({quoted})?.textContent"))?;
        text.as_str().map(str::to_owned).with_context(|| format!("nothing is at {selector}"))
    }

    /// Keeps what is seen, from the top of everything, with the pointer out of the way.
    fn keep_screenshot(&mut self, name: &str) -> Result<()> {
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

fn empty_then_filled(setup: &mut Setup) -> Result<()> {
    let origin = setup.origin.clone();
    setup.browser.open(&format!("{origin}/"))?;
    setup
        .browser
        .wait("document.querySelector('#blank')?.textContent.startsWith('No autoscaler')")?;
    ensure!(setup.text("#link .word")? == "Live");
    setup.world.pass_minutes(44);
    setup.browser.wait(&format!("{ROWS} === 6"))
}

fn list_shows_the_state(setup: &mut Setup) -> Result<()> {
    let names = "[...document.querySelectorAll('#rows .name')].map(n => n.textContent).join()";
    // What fails stands first.
    setup.browser.eval("document.querySelector('#sort').dispatchEvent(new Event('change')), 1")?;
    let names = setup.browser.eval(names)?;
    ensure!(names.as_str().is_some_and(|n| n.starts_with("ingest,")), "{names}");
    let failing = setup.text("#rows li")?;
    for part in ["Failing", "data · Deployment/ingest", "2–8", "lag", "unknown / 1000", "scaled"]
    {
        ensure!(failing.contains(part), "{part:?} is not in {failing:?}");
    }
    ensure!(setup.text("#tally")? == "6 autoscalers, 1 failing");
    let side = "document.querySelector('.side')";
    ensure!(setup.browser.eval(&format!("{side}.scrollWidth - {side}.clientWidth"))? == 0);
    Ok(())
}

fn list_can_be_filtered_and_sorted(setup: &mut Setup) -> Result<()> {
    let find = |text: &str| {
        format!(
            "(() => {{ const f = document.querySelector('#find'); f.value = '{text}'; \
                 f.dispatchEvent(new Event('input')); return {ROWS}; }})()"
        )
    };
    ensure!(setup.browser.eval(&find("shop"))? == 3);
    ensure!(setup.browser.eval(&find("shop sear"))? == 1);
    ensure!(setup.browser.eval(&find("nothing like it"))? == 0);
    ensure!(setup.text("#blank")?.starts_with("None of 6 autoscalers"));
    ensure!(setup.browser.eval(&find(""))? == 6);
    let sorted = setup.browser.eval(
        "(() => { const s = document.querySelector('#sort'); s.value = 'name'; \
         s.dispatchEvent(new Event('change')); \
         return [...document.querySelectorAll('#rows .name')].map(n => n.textContent).join(); })()",
    )?;
    ensure!(sorted == "ingest,thumbnails,catalog-cache,checkout,search,landing", "{sorted}");
    Ok(())
}

const MARKERS: &str = "document.querySelectorAll('.marker').length";

fn chart_shows_replicas_and_metrics(setup: &mut Setup) -> Result<()> {
    setup.browser.point("document.querySelector('a.row[href=\"#/shop/search\"]')", true)?;
    setup.browser.wait("document.querySelector('#title').textContent === 'search'")?;
    setup.browser.wait("document.querySelectorAll('.pane').length === 3")?;
    setup.browser.point("document.querySelector('.ranges button:last-child')", true)?;
    setup.browser.wait(&format!("{MARKERS} > 5"))?;
    for line in
        [".line.current", ".line.desired", ".band", ".tone-0 .line.value", ".tone-1 .line.goal"]
    {
        let length = setup.browser.eval(&format!(
            "document.querySelector('.pane{0}{line}')?.getTotalLength() ?? 0",
            if line.starts_with(".tone") { "" } else { " " }
        ))?;
        ensure!(length.as_f64().is_some_and(|l| l > 300.0), "{line} has a length of {length}");
    }
    ensure!(setup.text(".pane.tone-1 .pane-title")? == "requests_per_second");
    Ok(())
}

fn decisions_are_explained(setup: &mut Setup) -> Result<()> {
    let last_up = "[...document.querySelectorAll('.marker[data-outcome=up]')].at(-1)";
    setup.browser.point(last_up, false)?;
    setup.browser.wait("!document.querySelector('.tip').hidden")?;
    let tip = setup.text(".tip")?;
    ensure!(tip.contains("so the size changes from") && tip.contains("Scaled up from"), "{tip}");
    setup.keep_picture("dashboard-hover")?;
    setup.browser.point(last_up, true)?;
    setup
        .browser
        .wait("document.querySelector('#why-title').textContent.startsWith('Scaled up')")?;
    let lines = setup
        .browser
        .eval("[...document.querySelectorAll('.why .lines li')].map(l => l.textContent)")?;
    let lines: Vec<&str> =
        lines.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    ensure!(lines.len() >= 5, "{lines:?}");
    ensure!(lines[0].starts_with("Deployment search has"), "{lines:?}");
    ensure!(lines.iter().any(|l| l.contains("cpu is at")), "{lines:?}");
    ensure!(
        setup.browser.eval("document.querySelectorAll('.log [aria-pressed=true]').length")? == 1
    );
    setup.keep_screenshot("dashboard-light")
}

fn keys_move_through_decisions(setup: &mut Setup) -> Result<()> {
    let focused = "document.activeElement?.getAttribute('aria-label')";
    setup.browser.eval("document.querySelector('.ranges button:last-child').focus()")?;
    setup.browser.key("Tab")?;
    let first = setup.browser.eval(focused)?;
    ensure!(first.as_str().is_some_and(|l| l.contains("Scaled up from")), "{first}");
    setup.browser.key("ArrowLeft")?;
    let second = setup.browser.eval(focused)?;
    ensure!(second.is_string() && second != first, "the arrow moved from {first} to {second}");
    ensure!(setup.browser.eval("document.querySelector('.tip').hidden")? == false);
    setup.browser.key("Enter")?;
    let chosen = "document.querySelector('.marker[aria-pressed=true]')?.getAttribute('aria-label')";
    ensure!(setup.browser.eval(chosen)? == second);
    setup.browser.key("Escape")?;
    ensure!(setup.browser.eval("document.querySelector('.tip').hidden")? == true);
    setup.browser.key("ArrowRight")?;
    ensure!(setup.browser.eval(focused)? == first);
    setup.browser.point("document.querySelector('.step.wide')", true)?;
    setup
        .browser
        .wait("document.querySelector('.why-when').textContent.startsWith('The latest pass')")
}

fn updates_are_pushed(setup: &mut Setup) -> Result<()> {
    let mark = "document.querySelector('.why-when').textContent";
    let before = setup.browser.eval(mark)?;
    setup.world.step();
    setup.browser.wait(&format!("{mark} !== {before}"))?;
    setup.hub.remove("web/landing");
    setup.browser.wait(&format!("{ROWS} === 5"))?;
    // The same page all along: nothing was loaded again.
    ensure!(setup.browser.eval("performance.getEntriesByType('navigation').length")? == 1);
    ensure!(setup.text("#title")? == "search");
    Ok(())
}

fn themes_follow_the_system_and_the_button(setup: &mut Setup) -> Result<()> {
    const GROUND: &str = "getComputedStyle(document.body).backgroundColor";
    let light = setup.browser.eval(GROUND)?;
    setup.browser.prefer("dark")?;
    let dark = setup.browser.eval(GROUND)?;
    ensure!(light != dark, "both are {light}");
    setup.browser.point("document.querySelector('a.row[href=\"#/shop/checkout\"]')", true)?;
    setup.browser.wait(&format!(
        "document.querySelector('#title').textContent === 'checkout' && {MARKERS} > 3"
    ))?;
    setup.keep_screenshot("dashboard-dark")?;
    setup.browser.point("document.querySelector('#theme')", true)?;
    ensure!(setup.browser.eval(GROUND)? == light, "the button chooses light first");
    setup.browser.point("document.querySelector('#theme')", true)?;
    setup.browser.prefer("light")?;
    ensure!(setup.browser.eval(GROUND)? == dark, "the choice outlasts the system's");
    setup.browser.point("document.querySelector('#theme')", true)?;
    ensure!(setup.browser.eval(GROUND)? == light);
    Ok(())
}

fn phone_shows_one_thing_at_a_time(setup: &mut Setup) -> Result<()> {
    const OVERFLOW: &str =
        "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    let shown = |id: &str| format!("document.querySelector('{id}').getClientRects().length > 0");
    setup.browser.resize(360, 780, true)?;
    setup.browser.eval("location.hash = '#/'")?;
    setup.browser.wait(&format!("{} && !({})", shown(".side"), shown("#detail")))?;
    ensure!(setup.browser.eval(OVERFLOW)? == 0, "the list is wider than the phone");
    setup.keep_screenshot("dashboard-phone-list")?;
    setup.browser.point("document.querySelector('a.row[href=\"#/media/thumbnails\"]')", true)?;
    setup.browser.wait(&format!(
        "{} && !({}) && {MARKERS} > 3",
        shown("#detail"),
        shown(".side")
    ))?;
    ensure!(setup.browser.eval(OVERFLOW)? == 0, "the charts are wider than the phone");
    setup.keep_screenshot("dashboard-phone")?;
    setup.browser.eval("scrollTo(0, 780)")?;
    setup.keep_picture("dashboard-phone-why")?;
    setup.browser.point("document.querySelector('.back')", true)?;
    setup.browser.wait(&shown(".side"))?;
    setup.browser.resize(1440, 1240, false)
}

fn nothing_went_wrong(setup: &mut Setup) -> Result<()> {
    let origin = setup.origin.clone();
    let mut requests = 0;
    for event in setup.browser.events() {
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
fn losing_the_server_is_shown(setup: Setup) -> Result<()> {
    let Setup { mut browser, hub, runtime, address, .. } = setup;
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
