//! What the operating system says about this process and its files.

use std::path::Path;

/// Bytes that this process has caused to be written to the device.
pub fn device_bytes() -> u64 {
    proc_field("/proc/self/io", "write_bytes:")
}

/// Resident memory in bytes.
pub fn resident_bytes() -> u64 {
    resident_bytes_of("/proc/self/status")
}

/// The same of the process with this `status` file.
pub fn resident_bytes_of(path: &str) -> u64 {
    proc_field(path, "VmRSS:") * 1024
}

/// Voluntary context switches of all threads: how often this process slept and was woken.
pub fn wakeups() -> u64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let paths = tasks.flatten().map(|task| task.path().join("status"));
    paths.map(|path| proc_field(path, "voluntary_ctxt_switches:")).sum()
}

/// CPU time of this process, user and system, in microseconds.
pub fn cpu_us() -> u64 {
    cpu_us_of("/proc/self/stat")
}

/// The same of the process with this `stat` file.
pub fn cpu_us_of(path: &str) -> u64 {
    let stat = std::fs::read_to_string(path).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks: u64 = fields.iter().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    // USER_HZ is 100 on every Linux that this runs on.
    ticks * 10_000
}

fn proc_field(path: impl AsRef<Path>, name: &str) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_whitespace().nth(1)).and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// The size of a database file with its WAL.
pub fn file_bytes(path: &Path) -> u64 {
    let size = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        std::fs::metadata(name).map_or(0, |meta| meta.len())
    };
    size("") + size("-wal")
}

/// A quantile of unsorted values.
pub fn quantile(values: &mut [f64], q: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * q).round() as usize]
}
