//! The Router of `loopd up` beside a model server that answers every call in the same time.

use crate::meter;
use crate::probe::Parameters;
use crate::serve::read_request;
use crate::served::{STREAMS_PER_TOKEN, Served, cpu_us};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// How long a model call takes.
const MODEL: Duration = Duration::from_millis(50);

/// What tells the prompt of a plan from the others.
const PLAN: &[u8] = b"You plan how";

/// A question is answered by a plan, two tasks side by side, and a sum: so long at least.
const AT_LEAST_MS: f64 = 150.0;

/// A server that plans two tasks, and answers everything else with a word. It counts its calls.
async fn model(calls: Arc<AtomicU64>) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}/v1", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            tokio::spawn(connection(stream, calls.clone()));
        }
    });
    Ok(address)
}

async fn connection(mut stream: TcpStream, calls: Arc<AtomicU64>) {
    let task = |title: &str, agent: &str| json!({ "title": title, "agent": agent, "prompt": title });
    let plan = json!({ "kind": "complex", "tasks": [task("One", "assistant"), task("Two", "writer")] }).to_string();
    let mut buffer = Vec::new();
    loop {
        let Some(end) = read_request(&mut stream, &mut buffer).await else { return };
        let plans = buffer[..end].windows(PLAN.len()).any(|window| window == PLAN);
        buffer.drain(..end);
        calls.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(MODEL).await;
        let body = json!({
            "id": "r", "object": "chat.completion", "model": "bench",
            "choices": [{ "index": 0, "finish_reason": "stop",
                "message": { "role": "assistant", "content": if plans { plan.as_str() } else { "Done." } } }],
            "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 }
        });
        let body = body.to_string();
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
        if stream.write_all(format!("{head}{body}").as_bytes()).await.is_err() {
            return;
        }
    }
}

fn write_agents(folder: &Path, url: &str) -> Result<()> {
    std::fs::create_dir_all(folder.join("agents"))?;
    for name in ["assistant", "writer"] {
        let agent = format!(
            "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: {{ name: {name}, description: Works. }}\nspec:\n  \
             model: {{ provider: openai, baseUrl: \"{url}\", name: bench }}\n  limits: {{ iterations: 10 }}\n"
        );
        std::fs::write(folder.join(format!("agents/{name}.yaml")), agent)?;
    }
    let settings = "queue = 10000\n[limits]\nrequests-per-s = 1000000\nrequests-burst = 1000000\n\
                    target-slots = 10000\n";
    Ok(std::fs::write(folder.join("bench.toml"), settings)?)
}

/// Questions to the Router, in so many Conversations at once, each until its answer is on an open stream.
pub fn answers(parameters: &Parameters) -> Result<Value> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(asked(parameters))
}

async fn asked(parameters: &Parameters) -> Result<Value> {
    let (conversations, rounds) = (parameters.number("conversations", 1), parameters.number("rounds", 10));
    let (folder, calls) = (parameters.folder(), Arc::new(AtomicU64::new(0)));
    write_agents(&folder, &model(calls.clone()).await?)?;
    let slots = parameters.number("slots", 50).to_string();
    let how = ["up", "--model", "demo", "--agents", "agents", "--config", "bench.toml", "--slots", &slots];
    let served = Served::start_as(&folder, &how).await?;
    let mut people = Vec::new();
    for token in served.tokens(conversations.div_ceil(STREAMS_PER_TOKEN)).await? {
        for _ in 0..STREAMS_PER_TOKEN.min(conversations) {
            let mut speaker = served.client(&token).await?;
            let room = speaker.conversation(&[]).await?;
            let mut listener = served.client(&token).await?;
            listener.follow(&room, None).await?;
            people.push((speaker, listener, format!("/v1/conversations/{room}/messages")));
        }
    }
    people.truncate(usize::try_from(conversations)?);
    let question = json!({ "to": ["operator/router"], "blocks": [{ "type": "text", "text": "Which is better?" }] });
    let (mut all, mut took, count) = (Vec::new(), 0.0, (conversations * rounds) as f64);
    let cpu = cpu_us(served.pid());
    for _ in 0..rounds {
        let (begun, mut asking) = (Instant::now(), JoinSet::new());
        for (mut speaker, mut listener, path) in std::mem::take(&mut people) {
            let question = question.clone();
            asking.spawn(async move {
                let begun = Instant::now();
                speaker.json("POST", &path, &question).await?;
                listener.until("\"from\":\"operator/router\"").await?;
                anyhow::Ok((begun.elapsed(), (speaker, listener, path)))
            });
        }
        while let Some(answered) = asking.join_next().await {
            let (time, person) = answered?.context("an answer")?;
            all.push(time.as_secs_f64() * 1e3);
            people.push(person);
        }
        took += begun.elapsed().as_secs_f64();
    }
    let cpu = cpu_us(served.pid()).saturating_sub(cpu) as f64;
    let p50 = meter::quantile(&mut all, 0.5);
    Ok(json!({
        "answers_per_s": count / took, "ms_p50": p50, "ms_p99": meter::quantile(&mut all, 0.99),
        "ms_max": meter::quantile(&mut all, 1.0), "ms_p50_beside_its_model_calls": p50 - AT_LEAST_MS,
        "model_calls_per_answer": calls.load(Ordering::Relaxed) as f64 / count, "server_cpu_ms_per_answer": cpu / 1e3 / count,
    }))
}
