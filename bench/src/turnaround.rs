//! Turnaround: from a provider's last byte to the next request on the wire.

use crate::meter;
use crate::noop::{self, Plan};
use crate::probe::Parameters;
use crate::wire::WIRES;
use anyhow::{Context as _, Result, bail};
use loopd_kernel::budget::Limits;
use loopd_kernel::erase;
use loopd_kernel::machine::Admission;
use loopd_providers::recorded::Wire;
use loopd_providers::{AnthropicConfig, GeminiConfig, OpenAiConfig};
use loopd_runtime::{Config, FixedPrograms, Model, Program, Runtime, Started};
use loopd_store::MemoryStore;
use serde_json::{Value, json};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

/// When something happened at the server.
#[derive(Default)]
struct Times {
    /// Milliseconds from last byte to next request.
    gaps: Vec<f64>,
    connections: u64,
    last: Option<Instant>,
}

/// Runs of model call and tool call over HTTP, with a store in memory: what lies between an answer's last byte and the
/// next request, both as the server sees them. Two commits, a tool call and the loop-back connection are in it.
pub fn turnaround(parameters: &Parameters) -> Result<Value> {
    let iterations = parameters.number("iterations", 2000);
    let (wire, _) = WIRES.get(usize::try_from(parameters.number("wire", 0))?).context("there is no such wire")?;
    let times = Arc::new(Mutex::new(Times::default()));
    let (tell, address) = mpsc::channel();
    let (shared, wire) = (times.clone(), *wire);
    // A thread of its own, as a server has, so that its work and the loop's do not wait for each other.
    std::thread::spawn(move || -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(serve(wire, shared, tell))
    });
    let url: String = address.recv()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(drive(&url, wire, iterations))?;
    let mut times = times.lock().map_err(|_| anyhow::anyhow!("the server failed"))?;
    // The first answers fill caches and open the connection.
    let warm = times.gaps.len().min(50);
    let mut gaps = times.gaps.split_off(warm);
    if gaps.len() < usize::try_from(iterations)? / 2 {
        bail!("{} requests came", gaps.len());
    }
    Ok(json!({
        "ms_p50": meter::quantile(&mut gaps, 0.5), "ms_p99": meter::quantile(&mut gaps, 0.99),
        "ms_max": meter::quantile(&mut gaps, 1.0), "connections": times.connections,
    }))
}

async fn drive(url: &str, wire: Wire, iterations: u64) -> Result<()> {
    let none = |_: &str| None;
    let model: Arc<dyn Model> = match wire {
        Wire::ChatCompletions => Arc::new(OpenAiConfig::new("bench").at(format!("{url}/v1")).build(&none)?),
        Wire::Messages => Arc::new(AnthropicConfig::new("bench").at(url).build(&none)?),
        Wire::GenerateContent => Arc::new(GeminiConfig::new("bench").at(format!("{url}/v1beta")).build(&none)?),
    };
    let program = Program::new(erase(noop::Noop, Vec::new())).model("noop", model);
    let program = Arc::new(noop::agent_tools(512).into_iter().fold(program, Program::tool));
    let programs = Arc::new(FixedPrograms::new([program.clone()]));
    let runtime = Runtime::builder(Arc::new(MemoryStore::new()), programs).config(Config::default()).start().await?;
    let input = serde_json::to_string(&Plan { iterations, waits: false })?;
    let limits = Limits { iterations: Some(iterations + 1), ..Limits::default() };
    let admission = Admission { tenant: "default".into(), input, limits, key: None };
    match runtime.start(&program, admission).await? {
        Started::New(driven) => drop(driven.wait().await),
        Started::Already(run) => bail!("{run} was started already"),
    }
    runtime.shutdown().await;
    Ok(())
}

async fn serve(wire: Wire, times: Arc<Mutex<Times>>, tell: mpsc::Sender<String>) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    tell.send(format!("http://{}", listener.local_addr()?))?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        if let Ok(mut times) = times.lock() {
            times.connections += 1;
        }
        tokio::spawn(connection(stream, wire, times.clone()));
    }
}

async fn connection(mut stream: TcpStream, wire: Wire, times: Arc<Mutex<Times>>) -> Result<()> {
    let answer = answer(wire);
    let mut buffer = Vec::new();
    loop {
        let Some(end) = crate::serve::read_request(&mut stream, &mut buffer).await else { return Ok(()) };
        let now = Instant::now();
        buffer.drain(..end);
        let gap = |times: &mut Times| times.last.take().map(|last| now.duration_since(last).as_secs_f64() * 1e3);
        if let Ok(mut times) = times.lock() {
            let gap = gap(&mut times);
            times.gaps.extend(gap);
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await?;
        let (last, before) = answer.split_last().context("an empty answer")?;
        for event in before {
            stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await?;
        }
        // The clock starts before the last byte is written.
        if let Ok(mut times) = times.lock() {
            times.last = Some(Instant::now());
        }
        stream.write_all(format!("{:x}\r\n{last}\r\n0\r\n\r\n", last.len()).as_bytes()).await?;
    }
}

/// A short answer, event by event.
fn answer(wire: Wire) -> Vec<String> {
    let body = crate::wire::words(wire, 40);
    let blank = if body.contains("\r\n\r\n") { "\r\n\r\n" } else { "\n\n" };
    body.split_inclusive(blank).map(str::to_owned).collect()
}
