//! Counters for `/metrics`, in the text format of Prometheus. No label holds anything that somebody sent.

use crate::locked;
use axum::http::StatusCode;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::time::Instant;

/// What the server counts.
#[derive(Debug)]
pub(crate) struct Metrics {
    started: Instant,
    /// By route as it is declared, and the first digit of the status.
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    rate_limited: Mutex<BTreeMap<&'static str, u64>>,
    events: AtomicU64,
    messages: AtomicU64,
    calls: AtomicU64,
}

/// One figure of somebody else, for `/metrics`. No label may hold anything that somebody sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Its name; one that ends in `_total` only ever grows.
    pub name: &'static str,
    /// What it is, as a sentence.
    pub help: &'static str,
    /// What it is about: name and value of a label.
    pub label: (&'static str, String),
    /// Its value now.
    pub value: u64,
}

/// Somebody in the process of a server who counts, for `/metrics`.
pub trait Counts: Send + Sync + std::fmt::Debug {
    /// The figures as they are now, those of one name together.
    fn samples(&self) -> Vec<Sample>;
}

/// What is read at the moment of asking.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) streams: usize,
    pub(crate) calls: BTreeMap<&'static str, u64>,
    pub(crate) ready: bool,
    pub(crate) others: Vec<Sample>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            requests: Mutex::default(),
            rate_limited: Mutex::default(),
            events: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            calls: AtomicU64::new(0),
        }
    }

    pub(crate) fn request(&self, route: Option<&str>, status: StatusCode) {
        let key = (route.unwrap_or("other").to_owned(), status.as_u16() / 100);
        *locked(&self.requests).entry(key).or_default() += 1;
    }

    pub(crate) fn rate_limited(&self, code: &'static str) {
        *locked(&self.rate_limited).entry(code).or_default() += 1;
    }

    pub(crate) fn events(&self, count: u64) {
        self.events.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn message(&self) {
        self.messages.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn text(&self, gauges: &Gauges) -> String {
        let mut out = Text(String::new());
        out.head("loopd_http_requests_total", "counter", "Requests that were answered.");
        for ((route, class), count) in &*locked(&self.requests) {
            out.line("loopd_http_requests_total", &[("route", route), ("status", &format!("{class}xx"))], *count);
        }
        out.head("loopd_rate_limited_total", "counter", "Requests that were refused because there were too many.");
        for (code, count) in &*locked(&self.rate_limited) {
            out.line("loopd_rate_limited_total", &[("code", code)], *count);
        }
        let counter = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        out.one(
            "loopd_events_delivered_total",
            "counter",
            "Events of Feeds that streams delivered.",
            counter(&self.events),
        );
        out.one("loopd_messages_accepted_total", "counter", "Messages that were new.", counter(&self.messages));
        out.one("loopd_calls_accepted_total", "counter", "Calls to Harnesses that were new.", counter(&self.calls));
        out.head("loopd_calls", "gauge", "Calls to Harnesses by phase.");
        for (phase, count) in &gauges.calls {
            out.line("loopd_calls", &[("phase", phase)], *count);
        }
        let streams = u64::try_from(gauges.streams).unwrap_or(u64::MAX);
        out.one("loopd_streams_open", "gauge", "Streams that are open.", streams);
        out.one("loopd_ready", "gauge", "Whether new work is taken.", u64::from(gauges.ready));
        out.one("loopd_uptime_seconds", "gauge", "Seconds since the start.", self.started.elapsed().as_secs());
        let mut last = "";
        for Sample { name, help, label: (label, about), value } in &gauges.others {
            if *name != last {
                out.head(name, if name.ends_with("_total") { "counter" } else { "gauge" }, help);
                last = name;
            }
            out.line(name, &[(label, about)], *value);
        }
        out.0
    }
}

struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: u64) {
        let labels: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.head(name, kind, help);
        self.line(name, &[], value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_count_stands_under_one_head_each() {
        let sample = |name, about: &str, value| Sample {
            name,
            help: "What it is.",
            label: ("operator", about.to_owned()),
            value,
        };
        let others = vec![sample("x_waiting", "a", 1), sample("x_waiting", "b", 2), sample("x_turns_total", "a", 3)];
        let text = Metrics::new().text(&Gauges { others, ..Gauges::default() });
        let (_, shown) = text.split_once("loopd_uptime_seconds 0\n").expect("the others come last");
        let expected = "# HELP x_waiting What it is.\n# TYPE x_waiting gauge\nx_waiting{operator=\"a\"} 1\n\
                        x_waiting{operator=\"b\"} 2\n\
                        # HELP x_turns_total What it is.\n# TYPE x_turns_total counter\nx_turns_total{operator=\"a\"} 3\n";
        assert_eq!(shown, expected);
    }
}
