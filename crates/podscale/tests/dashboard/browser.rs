//! A headless Chromium, driven over its own debugging pipe: no driver, no port, no library.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Generous: a loaded machine is no failure.
const PATIENCE: Duration = Duration::from_secs(120);

const FLAGS: [&str; 14] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
    "about:blank",
];

/// Where Chromium is: `$CHROMIUM`, or the first of its usual names on the path.
pub fn find() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("CHROMIUM") {
        return Some(given.into());
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

/// One browser with one page.
pub struct Browser {
    child: Child,
    pipe: ChildStdin,
    messages: Receiver<Value>,
    session: String,
    next: u64,
    events: VecDeque<Value>,
    profile: PathBuf,
}

impl Browser {
    pub fn start(program: &Path, profile: PathBuf) -> Result<Browser> {
        std::fs::create_dir_all(&profile)?;
        // The debugging pipe is at descriptors 3 and 4, which a shell can tie to our own pipes.
        let mut child = Command::new("sh")
            .args(["-c", "exec 3<&0 4>&1 0</dev/null 1>&2; exec \"$0\" \"$@\""])
            .arg(program)
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(FLAGS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let pipe = child.stdin.take().context("no pipe")?;
        let output = child.stdout.take().context("no pipe")?;
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(output).split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { break };
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let (session, next, events) = (String::new(), 1, VecDeque::new());
        let mut browser = Browser { child, pipe, messages, session, next, events, profile };
        let made = browser.call("Target.createTarget", json!({"url": "about:blank"}))?;
        let wanted = json!({"targetId": made["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", wanted)?;
        browser.session = attached["sessionId"].as_str().context("no session")?.to_owned();
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(browser)
    }

    /// One command and its answer.
    pub fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        let id = self.next;
        self.next += 1;
        let mut message = json!({"id": id, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.pipe.write_all(&bytes)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.receive(deadline).with_context(|| method.to_owned())?;
            if answer["id"] != id {
                self.events.push_back(answer);
            } else if answer["error"].is_object() {
                bail!("{method}: {}", answer["error"]["message"]);
            } else {
                return Ok(answer["result"].clone());
            }
        }
    }

    fn receive(&mut self, deadline: Instant) -> Result<Value> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.messages.recv_timeout(left) {
            Ok(message) => Ok(message),
            Err(RecvTimeoutError::Timeout) => bail!("the browser did not answer"),
            Err(RecvTimeoutError::Disconnected) => bail!("the browser ended"),
        }
    }

    /// The events that came so far.
    pub fn events(&mut self) -> &VecDeque<Value> {
        while let Ok(event) = self.messages.try_recv() {
            self.events.push_back(event);
        }
        &self.events
    }

    /// The value of an expression in the page.
    pub fn eval(&mut self, expression: &str) -> Result<Value> {
        let params = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true,
        });
        let result = self.call("Runtime.evaluate", params)?;
        if let Some(thrown) = result.get("exceptionDetails") {
            bail!("{expression}: {}", thrown["exception"]["description"]);
        }
        Ok(result["result"]["value"].clone())
    }

    /// Waits until an expression is true.
    pub fn wait(&mut self, expression: &str) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.eval(expression)? != true {
            if Instant::now() > deadline {
                bail!("never became true: {expression}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    pub fn open(&mut self, url: &str) -> Result<()> {
        self.call("Page.navigate", json!({"url": url}))?;
        Ok(())
    }

    pub fn resize(&mut self, width: u32, height: u32, mobile: bool) -> Result<()> {
        let params =
            json!({"width": width, "height": height, "deviceScaleFactor": 2, "mobile": mobile});
        self.call("Emulation.setDeviceMetricsOverride", params)?;
        Ok(())
    }

    pub fn prefer(&mut self, scheme: &str) -> Result<()> {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}))?;
        Ok(())
    }

    /// Presses and releases a key.
    pub fn key(&mut self, key: &str) -> Result<()> {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            _ => bail!("unknown key {key}"),
        };
        for kind in ["rawKeyDown", "keyUp"] {
            let params =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            self.call("Input.dispatchKeyEvent", params)?;
        }
        Ok(())
    }

    /// Moves the pointer to the middle of an element, and clicks if asked to.
    pub fn point(&mut self, element: &str, click: bool) -> Result<()> {
        let place = self.eval(&format!(
            "(() => {{ const e = {element}; e.scrollIntoView({{block: 'center'}}); \
             const b = e.getBoundingClientRect(); \
             return [b.left + b.width / 2, b.top + b.height / 2]; }})()"
        ))?;
        let at = |kind: &str| json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
        let mut moved = at("mouseMoved");
        moved["button"] = json!("none");
        self.call("Input.dispatchMouseEvent", moved)?;
        if click {
            self.call("Input.dispatchMouseEvent", at("mousePressed"))?;
            self.call("Input.dispatchMouseEvent", at("mouseReleased"))?;
        }
        Ok(())
    }

    /// A picture of what is seen, base64.
    pub fn picture(&mut self) -> Result<String> {
        // Two frames, so that everything asked for has been drawn.
        self.eval(
            "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))",
        )?;
        let shot = self.call("Page.captureScreenshot", json!({"format": "png"}))?;
        shot["data"].as_str().map(str::to_owned).context("no picture")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session.clear();
        let _ = self.call("Browser.close", json!({}));
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
