//! Runs the workloads as processes of their own, takes medians over rounds, and holds the gates.

use crate::meter::quantile;
use crate::wire::WIRES;
use anyhow::{Context as _, Result, bail};
use comfy_table::Table;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A count that must hold whatever else the machine does.
struct Gate {
    goal: &'static str,
    what: &'static str,
    value: f64,
    limit: f64,
}

/// Every figure: workload → figure → median.
pub struct Report {
    figures: BTreeMap<String, BTreeMap<String, f64>>,
    gates: Vec<Gate>,
}

/// One workload and its parameters.
struct Measurement {
    name: String,
    probe: &'static str,
    parameters: Vec<String>,
    once: bool,
}

fn workload(name: impl Into<String>, probe: &'static str, parameters: &[(&str, u64)]) -> Measurement {
    let parameters = parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
    Measurement { name: name.into(), probe, parameters, once: false }
}

fn measurements(quick: bool) -> Vec<Measurement> {
    let scale = |full: u64, small: u64| if quick { small } else { full };
    let (steps, runs) = (scale(1000, 300), scale(10_000, 1_000));
    let agent = |mut one: Measurement| {
        one.parameters.push("agent=1".into());
        one
    };
    let once = |mut one: Measurement| {
        one.once = true;
        one
    };
    vec![
        workload("raw append + fdatasync", "append", &[("n", steps)]),
        workload("raw SQLite WAL FULL commit", "sqlite", &[("n", steps)]),
        workload("floor, 1 loop", "floor", &[("loops", 1), ("steps", steps)]),
        workload("W1 one run", "steps", &[("iterations", steps)]),
        agent(workload("W1 one run, agent over HTTP", "steps", &[("iterations", scale(200, 50))])),
        workload("floor, 100 loops", "floor", &[("loops", 100), ("steps", scale(100, 20))]),
        workload("W2 100 runs at once", "steps", &[("runs", 100), ("iterations", scale(50, 10))]),
        once(workload("W4 suspended runs", "suspended", &[("runs", runs), ("wakes", scale(200, 50))])),
        once(agent(workload("W4 suspended runs, agent", "suspended", &[("runs", runs / 10), ("wakes", 50)]))),
        once(workload("W5 bytes at step 100", "bytes", &[("iterations", 50)])),
        once(workload("W5 bytes at step 5000", "bytes", &[("iterations", scale(2500, 500))])),
        workload("W8 delivery, 1 stream", "delivery", &[("streams", 1), ("messages", scale(300, 100))]),
        workload("W8 delivery, 100 streams", "delivery", &[("streams", 100), ("messages", scale(300, 100))]),
        workload("W8 delivery, 1,000 streams", "delivery", &[("streams", 1000), ("messages", scale(100, 20))]),
        workload("W8 accepted", "accepted", &[("people", 64), ("each", scale(300, 100))]),
        workload("W8 1,000 streams resumed", "resumed", &[("streams", 1000)]),
        once(workload(
            "W9 idle server",
            "idle",
            &[("conversations", scale(10_000, 2_000)), ("streams", 1000), ("rest_s", scale(10, 4))],
        )),
    ]
    .into_iter()
    .chain(operators(quick))
    .chain(WIRES.iter().zip(0..).flat_map(|((_, name), wire)| streams(name, wire, scale(2000, 500))))
    .collect()
}

/// W10 and W11: Operators, inside of the server and as processes of their own, and the Router.
fn operators(quick: bool) -> Vec<Measurement> {
    let scale = |full: u64, small: u64| if quick { small } else { full };
    let wake = |conversations: u64, http: u64| {
        let place = if http == 1 { "over HTTP" } else { "inside" };
        let rounds = if conversations == 1 { scale(300, 50) } else { scale(5, 2) };
        let parameters = [("conversations", conversations), ("rounds", rounds), ("http", http)];
        workload(format!("W10 wake {place}, {conversations} at once"), "wake", &parameters)
    };
    let answers = |conversations: u64, rounds: u64, slots: u64| {
        let parameters = [("conversations", conversations), ("rounds", rounds), ("slots", slots)];
        workload(format!("W11 answers, {conversations} at once, {slots} slots"), "answers", &parameters)
    };
    let wakes = [0, 1].into_iter().flat_map(|http| [1, 100, 1000].map(|conversations| wake(conversations, http)));
    let many = scale(1000, 200);
    wakes.chain([answers(1, scale(50, 10), 50), answers(many, 1, 50), answers(many, 1, 400)]).collect()
}

/// W6 and W7 on one wire: streams of words, streams of single characters at two lengths, and turnaround.
fn streams(name: &str, wire: u64, iterations: u64) -> Vec<Measurement> {
    let stream = |what: &str, delta: u64, bytes: u64| {
        let parameters = [("wire", wire), ("delta", delta), ("bytes", bytes)];
        workload(format!("W6 {name}, {what}"), "stream", &parameters)
    };
    vec![
        stream("words", 5, 10_000_000),
        stream("characters, 1 MB", 1, 1_000_000),
        stream("characters, 10 MB", 1, 10_000_000),
        workload(format!("W7 turnaround, {name}"), "turnaround", &[("wire", wire), ("iterations", iterations)]),
    ]
}

/// W3 needs a file that another process made: (name, entries, agent).
fn resumes(quick: bool) -> Vec<(&'static str, u64, bool)> {
    let mut all =
        vec![("W3 resume at 10,000 entries", 10_000, false), ("W3 resume at 10,000 entries, agent", 10_000, true)];
    if !quick {
        all.push(("W3 resume at 100,000 entries", 100_000, false));
    }
    all
}

/// Measures everything whose name contains `only`.
pub fn measure(quick: bool, rounds: usize, only: Option<&str>) -> Result<Report> {
    let wanted = |name: &str| only.is_none_or(|only| name.contains(only));
    let folder = Folder::new()?;
    let mut samples: BTreeMap<String, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
    let mut take = |name: &str, value: &Value| {
        let figures = samples.entry(name.into()).or_default();
        for (key, number) in value.as_object().into_iter().flatten() {
            figures.entry(key.clone()).or_default().extend(number.as_f64());
        }
    };
    for round in 0..rounds {
        for one in measurements(quick).iter().filter(|one| wanted(&one.name) && (round == 0 || !one.once)) {
            eprintln!("{} ({}/{rounds})", one.name, round + 1);
            let place = folder.fresh()?;
            let value = spawn(one.probe, &one.parameters, &place, None)?;
            take(&one.name, &value);
            if one.probe == "suspended" {
                take(&one.name, &spawn("reopen", &one.parameters, &place, None)?);
            }
            std::fs::remove_dir_all(&place)?;
        }
    }
    for (name, entries, agent) in resumes(quick).into_iter().filter(|(name, ..)| wanted(name)) {
        eprintln!("{name}");
        let mut parameters = vec![format!("entries={entries}"), format!("agent={}", u64::from(agent))];
        let place = folder.fresh()?;
        spawn("build", &parameters, &place, None)?;
        for _ in 0..rounds {
            take(name, &spawn("resume", &parameters, &place, None)?);
        }
        parameters.push("verify=1".into());
        let verified = spawn("resume", &parameters, &place, None)?;
        take(name, &json!({ "ms_whole_chain_verified": verified["ms"] }));
        std::fs::remove_dir_all(&place)?;
    }
    if wanted("flushes") {
        count_flushes(&folder, quick, &mut take)?;
    }
    let median = |mut values: Vec<f64>| quantile(&mut values, 0.5);
    let figures = samples
        .into_iter()
        .map(|(name, figures)| (name, figures.into_iter().map(|(key, values)| (key, median(values))).collect()))
        .collect();
    let mut report = Report { figures, gates: Vec::new() };
    report.judge(quick);
    Ok(report)
}

/// Flushes a step, exactly: two sizes under a system-call counter, subtracted.
fn count_flushes(folder: &Folder, quick: bool, take: &mut impl FnMut(&str, &Value)) -> Result<()> {
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("flushes: strace is not installed, so they are not counted");
        return Ok(());
    }
    let small = if quick { 50 } else { 200 };
    for (name, runs, iterations) in [("flushes, 1 run", 1, small), ("flushes, 100 runs", 100, small / 10)] {
        eprintln!("{name}");
        let count = |iterations: u64| -> Result<u64> {
            let place = folder.fresh()?;
            let trace = place.join("trace");
            let parameters = [format!("runs={runs}"), format!("iterations={iterations}")];
            spawn("steps", &parameters, &place, Some(&trace))?;
            let text = std::fs::read_to_string(&trace)?;
            std::fs::remove_dir_all(&place)?;
            Ok(text.lines().filter(|line| line.contains("sync(") && !line.contains("resumed")).count() as u64)
        };
        let (one, two) = (count(iterations)?, count(iterations * 2)?);
        let steps = (runs * iterations * 2) as f64;
        take(name, &json!({ "flushes_per_step": (two.saturating_sub(one)) as f64 / steps }));
    }
    Ok(())
}

fn spawn(probe: &str, parameters: &[String], place: &Path, trace: Option<&Path>) -> Result<Value> {
    let program = std::env::current_exe()?;
    let mut command = match trace {
        Some(trace) => {
            let mut command = Command::new("strace");
            command.args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"]).arg(trace).arg(program);
            command
        }
        None => Command::new(program),
    };
    let place = format!("dir={}", place.display());
    let output = command.args(["--probe", probe]).args(parameters).arg(place).output()?;
    if !output.status.success() {
        bail!("{probe} {parameters:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).with_context(|| format!("{probe} printed no figures"))
}

/// A scratch folder beside the working directory's disk, removed at the end.
struct Folder {
    root: PathBuf,
    count: std::cell::Cell<u32>,
}

impl Folder {
    fn new() -> Result<Self> {
        let root = std::env::temp_dir().join(format!("loopd-bench-{}", std::process::id()));
        std::fs::create_dir_all(&root)?;
        Ok(Self { root, count: std::cell::Cell::new(0) })
    }

    fn fresh(&self) -> Result<PathBuf> {
        self.count.set(self.count.get() + 1);
        let place = self.root.join(self.count.get().to_string());
        std::fs::create_dir_all(&place)?;
        Ok(place)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

impl Report {
    fn figure(&self, name: &str, key: &str) -> Option<f64> {
        self.figures.get(name)?.get(key).copied()
    }

    /// The gates of the performance goals: counts, so that a busy machine does not move them.
    fn judge(&mut self, quick: bool) {
        let limits = [
            ("P1", "flushes per step, 1 run", "flushes, 1 run", "flushes_per_step", 1.02),
            ("P1", "device bytes per step, 1 run", "W1 one run", "device_bytes_per_step", 20_480.0),
            ("P3", "flushes per step, 100 runs", "flushes, 100 runs", "flushes_per_step", 0.1),
            ("P3", "device bytes per step, 100 runs", "W2 100 runs at once", "device_bytes_per_step", 8_192.0),
            ("P3", "CPU microseconds per step, 100 runs", "W2 100 runs at once", "cpu_us_per_step", 100.0),
            ("P3", "p99 / p50 of run latency", "W2 100 runs at once", "run_ms_p99_over_p50", 1.2),
            ("P4", "reads per resume at 10,000 entries", "W3 resume at 10,000 entries", "reads", 16.0),
            ("P5", "resident bytes per suspended run", "W4 suspended runs", "resident_bytes_per_run", 200.0),
            ("P5", "wakeups in 10 s idle", "W4 suspended runs", "wakeups_in_10_s_idle", 40.0),
            ("P6", "resident MiB of an idle server", "W9 idle server", "empty_mib", 40.0),
            ("P6", "ms from process start to the first answer", "W9 idle server", "ready_ms", 150.0),
            ("P7", "stored / (payload + 600) at step 100", "W5 bytes at step 100", "stored_over_allowed", 1.3),
            ("P7", "stored / (payload + 600) at step 5000", "W5 bytes at step 5000", "stored_over_allowed", 1.3),
        ];
        let found = |(goal, what, name, key, limit): (&'static str, &'static str, &str, &str, f64)| {
            let value = match key {
                "run_ms_p99_over_p50" => self.figure(name, "run_ms_p99")? / self.figure(name, "run_ms_p50")?,
                _ => self.figure(name, key)?,
            };
            Some(Gate { goal, what, value, limit })
        };
        // Start-up and first fills dominate a quick round of these; they are judged at full size only.
        let large_only = ["cpu_us_per_step", "run_ms_p99_over_p50", "resident_bytes_per_run"];
        let judged = |key: &str| !quick || !large_only.contains(&key);
        let limits = limits.into_iter().filter(|(.., key, _)| judged(key));
        let mut gates: Vec<Gate> = limits.filter_map(found).collect();
        let early = self.figure("W5 bytes at step 100", "file_bytes_per_step");
        let late = self.figure("W5 bytes at step 5000", "file_bytes_per_step");
        if let (Some(early), Some(late)) = (early, late) {
            let what = "growth of bytes per step from step 100 to 5000";
            gates.push(Gate { goal: "P7", what, value: late / early, limit: 1.05 });
        }
        // The worst of the wires. The best of several times moves least on a busy machine.
        let wires = || WIRES.iter().map(|(_, name)| name);
        let rate = |name: &str, length: &str| self.figure(&format!("W6 {name}, characters, {length}"), "best_mb_per_s");
        let growth = wires().filter_map(|name| Some(rate(name, "1 MB")? / rate(name, "10 MB")?)).reduce(f64::max);
        if let Some(value) = growth {
            gates.push(Gate { goal: "P11", what: "growth of time per byte from 1 to 10 MB", value, limit: 1.3 });
        }
        let turn = wires().filter_map(|name| self.figure(&format!("W7 turnaround, {name}"), "ms_p50")).reduce(f64::max);
        if let Some(value) = turn {
            gates.push(Gate { goal: "P12", what: "ms from last byte to next request, p50", value, limit: 1.0 });
        }
        self.gates = gates;
    }

    /// A table for people.
    pub fn table(&self) -> String {
        let mut figures = Table::new();
        figures.load_style(comfy_table::presets::NOTHING);
        figures.set_header(["workload", "figure", "median", "of raw commit", "of floor"]);
        let raw = self.figure("raw SQLite WAL FULL commit", "per_s");
        for (name, values) in &self.figures {
            let floor = if name.starts_with("W2") { "floor, 100 loops" } else { "floor, 1 loop" };
            for (key, value) in values {
                let rate = key == "steps_per_s" || key == "per_s";
                let ratio = |to: Option<f64>| match to {
                    Some(to) if rate && to > 0.0 => format!("{:.2}", value / to),
                    _ => String::new(),
                };
                let of_floor =
                    if name.starts_with('W') { ratio(self.figure(floor, "steps_per_s")) } else { String::new() };
                figures.add_row([name.clone(), key.replace('_', " "), short(*value), ratio(raw), of_floor]);
            }
        }
        let mut gates = Table::new();
        gates.load_style(comfy_table::presets::NOTHING);
        gates.set_header(["goal", "gate", "value", "limit", ""]);
        for gate in &self.gates {
            let verdict = if gate.value <= gate.limit { "holds" } else { "MISSED" };
            gates.add_row([gate.goal, gate.what, &short(gate.value), &short(gate.limit), verdict]);
        }
        format!("{figures}\n\n{gates}")
    }

    /// Everything, for machines.
    pub fn json(&self) -> Result<String> {
        let gates: Vec<Value> = self
            .gates
            .iter()
            .map(|gate| json!({ "goal": gate.goal, "what": gate.what, "value": gate.value, "limit": gate.limit }))
            .collect();
        let figures: Map<String, Value> =
            self.figures.iter().map(|(name, values)| (name.clone(), json!(values))).collect();
        Ok(serde_json::to_string_pretty(&json!({ "figures": figures, "gates": gates }))?)
    }

    /// Fails when a gate was missed.
    pub fn gates(&self) -> Result<()> {
        let missed: Vec<&str> =
            self.gates.iter().filter(|gate| gate.value > gate.limit).map(|gate| gate.what).collect();
        if missed.is_empty() { Ok(()) } else { bail!("gates missed: {}", missed.join("; ")) }
    }
}

fn short(value: f64) -> String {
    if value >= 1000.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.3}")
    }
}
