//! What the program takes from the machine, read from the kernel when metrics are read.

use super::registry::{Description, Kind, Registry};
use std::time::{SystemTime, UNIX_EPOCH};

/// The kernel's clock ticks per second in what programs read from it; the same on all architectures.
const TICKS_PER_SECOND: f64 = 100.0;

pub(super) fn register(registry: &mut Registry) {
    let gauge = |name, help| Description { name, help, kind: Kind::Gauge };
    let resident = gauge("process_resident_memory_bytes", "Memory that is resident, in bytes");
    registry.computed(resident, || resident_bytes(&read("status")));
    registry.computed(gauge("process_threads", "Threads"), || field(&read("status"), "Threads:"));
    registry.computed(gauge("process_open_fds", "Open files"), open_files);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let help = "When the program started, in seconds since 1970";
    registry.computed(gauge("process_start_time_seconds", help), move || Some(now));
    let cpu = Description {
        name: "process_cpu_seconds",
        help: "Time on processors, in seconds",
        kind: Kind::Counter,
    };
    registry.computed(cpu, || cpu_seconds(&read("stat")));
}

/// What the kernel says of this process; nothing where it does not say it this way.
fn read(file: &str) -> String {
    std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default()
}

fn open_files() -> Option<f64> {
    let count = std::fs::read_dir("/proc/self/fd").ok()?.count();
    u32::try_from(count).ok().map(f64::from)
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
