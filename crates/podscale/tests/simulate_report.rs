//! The report of `podscale simulate` in a real browser: tables, charts, what pointing at a moment shows, in
//! both themes and at a phone's width; no errors in the console, no request to anywhere.
//!
//! Needs Chromium (`$CHROMIUM`, or on the path); without one the test is shown as ignored.
//! `PODSCALE_SCREENSHOTS=FOLDER` keeps pictures of what it saw.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

// The dashboard's test uses more of it.
#[allow(dead_code)]
#[path = "dashboard/browser.rs"]
mod browser;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use browser::Browser;
use libtest_mimic::{Arguments, Trial};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let program = browser::find();
    let missing = program.is_none();
    let test = Trial::test("the_report_in_a_browser", move || {
        let program = program.clone().context("there is no Chromium")?;
        check(&program).map_err(|error| format!("{error:#}").into())
    });
    libtest_mimic::run(&Arguments::from_args(), vec![test.with_ignored_flag(missing)]).exit_code()
}

/// A report of two loads, as a file.
fn report() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO_BIN_EXE_podscale"))
        .args(["simulate", "-f", "docs/examples/web.yaml", "--seeds", "2", "-o", "html"])
        .args([
            "--load",
            "spike:base=40,peak=400,at=10m,rise=1m,hold=20m",
            "--load",
            "constant:150",
        ])
        .current_dir(root)
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report.html");
    std::fs::write(&file, output.stdout)?;
    Ok(file)
}

fn keep_picture(browser: &mut Browser, name: &str) -> Result<()> {
    let Some(folder) = std::env::var_os("PODSCALE_SCREENSHOTS").map(PathBuf::from) else {
        return Ok(());
    };
    let bytes = base64::engine::general_purpose::STANDARD.decode(browser.picture()?)?;
    std::fs::write(folder.join(format!("{name}.png")), bytes)?;
    Ok(())
}

fn check(program: &Path) -> Result<()> {
    let file = report()?;
    let profile = std::env::temp_dir().join(format!("podscale-report-{}", std::process::id()));
    let mut browser = Browser::start(program, profile)?;
    browser.resize(1280, 1100, false)?;
    browser.prefer("light")?;
    browser.open(&format!("file://{}", file.display()))?;
    browser.wait("document.querySelectorAll('section').length === 3")?;
    browser.wait("document.querySelectorAll('figure').length === 6")?;
    // Charts are drawn once the page has given them their size.
    browser.wait("document.querySelectorAll('.line.offered').length === 2")?;
    let rows = browser.eval("document.querySelectorAll('section tbody tr').length")?;
    ensure!(rows == 18, "six policies in three tables, not {rows}");
    let length = "document.querySelector('.line.offered').getTotalLength()";
    let length = browser.eval(length)?;
    ensure!(length.as_f64().is_some_and(|length| length > 800.0), "the load is a line: {length}");
    browser.wait("document.querySelectorAll('section:nth-of-type(2) .mark').length > 3")?;

    browser.point("document.querySelectorAll('section:nth-of-type(2) figure svg')[1]", false)?;
    browser.wait("!document.querySelector('section:nth-of-type(2) .tip').hidden")?;
    let tip = browser.eval("document.querySelector('section:nth-of-type(2) .tip').textContent")?;
    let tip = tip.as_str().unwrap_or_default();
    for part in ["web at ", "could be served", "last change at", "so the size changes from"] {
        ensure!(tip.contains(part), "no {part:?} in {tip:?}");
    }
    keep_picture(&mut browser, "simulate-report")?;

    browser.point("document.querySelectorAll('section:nth-of-type(2) tbody tr')[4]", true)?;
    let chosen =
        "document.querySelector('section:nth-of-type(2) tr[aria-selected=true] td').textContent";
    ensure!(browser.eval(chosen)? == "knative");
    browser.prefer("dark")?;
    keep_picture(&mut browser, "simulate-report-dark")?;
    browser.resize(400, 800, true)?;
    let wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
    browser.wait(wide)?;
    keep_picture(&mut browser, "simulate-report-phone")?;
    let wrong = browser.events().iter().find(|event| {
        let method = event["method"].as_str().unwrap_or_default();
        let url = event["params"]["request"]["url"].as_str().unwrap_or_default();
        method == "Runtime.exceptionThrown"
            || method == "Log.entryAdded"
            || method == "Network.requestWillBeSent" && !url.starts_with("file://")
    });
    ensure!(wrong.is_none(), "{wrong:?}");
    Ok(())
}
