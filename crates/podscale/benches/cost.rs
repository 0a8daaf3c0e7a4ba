//! What a process costs, as the kernel counts it.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

use anyhow::{Context, Result};

/// The time that a process has spent on processors.
pub fn cpu_seconds(id: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    let after_name = text.rsplit_once(')').context("no name in /proc")?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok());
    // User and system time, in hundredths of a second on every Linux there is.
    let (user, system) = (ticks(11).context("utime")?, ticks(12).context("stime")?);
    Ok((user + system) / 100.0)
}

/// The memory that a process has, in MiB.
pub fn resident_mib(id: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kib / 1024.0)
}
