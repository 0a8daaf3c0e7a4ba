//! What the program takes from the machine, read from the kernel at every scrape.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// The kernel's clock ticks per second in what it tells programs; the same on all architectures.
const TICKS_PER_SECOND: f64 = 100.0;

pub(super) fn register(registry: &mut Registry) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    registry.register_collector(Box::new(Process { started: now.as_secs_f64() }));
}

#[derive(Debug)]
struct Process {
    started: f64,
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut gauge = |name: &str, help: &str, value: Option<f64>| {
            let Some(value) = value else { return Ok(()) };
            let gauge = ConstGauge::new(value);
            let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(metric)
        };
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let help = "Memory that is resident, in bytes";
        gauge("process_resident_memory_bytes", help, resident_bytes(&status))?;
        gauge("process_threads", "Threads", field(&status, "Threads:"))?;
        let files = std::fs::read_dir("/proc/self/fd").ok().map(Iterator::count);
        let files = files.and_then(|count| u32::try_from(count).ok()).map(f64::from);
        gauge("process_open_fds", "Open files", files)?;
        let help = "When the program started, in seconds since 1970";
        gauge("process_start_time_seconds", help, Some(self.started))?;
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        if let Some(seconds) = cpu_seconds(&stat) {
            let counter = ConstCounter::new(seconds);
            let help = "Time on processors, in seconds";
            let kind = counter.metric_type();
            counter.encode(encoder.encode_descriptor(
                "process_cpu_seconds",
                help,
                None,
                kind,
            )?)?;
        }
        Ok(())
    }
}

/// The number after a word at the beginning of a line.
fn field(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn resident_bytes(status: &str) -> Option<f64> {
    field(status, "VmRSS:").map(|kibibytes| kibibytes * 1024.0)
}

/// The program's name stands in brackets before the numbers and may itself have spaces.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, numbers) = stat.rsplit_once(')')?;
    let mut numbers = numbers.split_whitespace().skip(11);
    let ticks = |text: Option<&str>| text?.parse::<f64>().ok();
    let (user, system) = (ticks(numbers.next())?, ticks(numbers.next())?);
    Some((user + system) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_says() {
        let status = "Name:\tx\nVmRSS:\t  2048 kB\nThreads:\t7\n";
        assert_eq!(resident_bytes(status), Some(2_097_152.0));
        assert_eq!(field(status, "Threads:"), Some(7.0));
        assert_eq!(field(status, "VmSwap:"), None);
        let stat = "12 (a) b) S 1 12 12 0 -1 4194560 5 0 0 0 150 50 0 0 20 0 4 0 100 1 2";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(cpu_seconds("12 (a"), None);
        assert_eq!(cpu_seconds(""), None);
    }
}
