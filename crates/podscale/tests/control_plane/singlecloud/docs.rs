//! The commands of `docs/singlecloud.md`, run as they stand there.

use super::{HOME, Rest};
use crate::fixture::Workspace;
use crate::plane::ControlPlane;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// Where the page says that it runs.
const DOCUMENTED: &str = "podscale-metrics.podscale.svc:6444";

/// The commands of the page, each with what it prints.
fn examples(page: &str) -> Vec<(String, String)> {
    let mut examples: Vec<(String, String)> = Vec::new();
    for block in page.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let mut in_command = false;
        for line in block.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                examples.push((command.to_owned(), String::new()));
                in_command = true;
                continue;
            }
            // What goes on with a command is indented; what it prints begins at the margin.
            in_command &= line.starts_with("    ");
            if let Some((command, printed)) = examples.last_mut() {
                let text = if in_command { command } else { printed };
                text.push('\n');
                text.push_str(line);
            }
        }
    }
    examples
}

/// What does not depend on when it was run, and where.
fn comparable(text: &str, host: &str) -> String {
    const CREATED: &str = "\"creationTimestamp\": \"";
    let text = text.replace(host, DOCUMENTED);
    let text = text.trim();
    match text.split_once(CREATED).and_then(|(before, rest)| Some((before, rest.split_once('"')?)))
    {
        Some((before, (_, after))) => format!("{before}{CREATED}…\"{after}"),
        None => text.to_owned(),
    }
}

pub async fn commands_work(plane: &ControlPlane, space: &Workspace, port: u16) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/singlecloud.md");
    let page = std::fs::read_to_string(path)?;
    let examples = examples(&page);
    ensure!(examples.len() >= 8, "{} commands", examples.len());
    let editor = Rest::open(plane, space, "edit", port).await?;
    let authority = plane.folder().join("singlecloud-ca.crt");
    std::fs::write(&authority, editor.authority())?;
    let host = format!("podscale-metrics.{HOME}.svc:{port}");
    let setup = format!(
        "URL=https://{host}{root}\n\
         api() {{ curl -sS --cacert {authority} --connect-to {host}:127.0.0.1:{port} \
         -H \"Authorization: Bearer {token}\" \"$@\"; }}\n",
        root = editor.root(),
        authority = authority.display(),
        token = editor.token(),
    );
    for (command, printed) in &examples {
        let script = format!("{setup}{command}");
        let run = tokio::task::spawn_blocking(move || {
            Command::new("bash").args(["-c", &script]).output()
        });
        let output = run.await?.context("bash")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let (expected, got) = (comparable(printed, &host), comparable(&text, &host));
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(got == expected, "{command}\nprints {got}\nand not {expected}\n{error}");
    }
    Ok(())
}
