//! From a Message to the beginning of its Reconcile: of an Operator inside of the process of the platform, and of one that
//! is a process of its own.

use crate::meter;
use crate::probe::Parameters;
use crate::served::{Client, Served};
use anyhow::{Context as _, Result};
use async_trait::async_trait;
use loopd_inside::Inside;
use loopd_operator::{Config, Cx, Desk, Error, Http, Next, Operator, Reconcile};
use loopd_platform::{Caller, Engine, Platform};
use loopd_protocol::{ActorKey, Block, ConversationId, KnownBlock, NewConversation, Registration, Role, Say};
use loopd_runtime::{FixedPrograms, Runtime};
use loopd_store::Store;
use loopd_store_sqlite::SqliteStore;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const OPERATOR: &str = "operator/bench";

/// Says when it begins, and is done with it.
struct Hears(mpsc::UnboundedSender<(ConversationId, Instant)>);

#[async_trait]
impl Reconcile for Hears {
    async fn reconcile(&self, cx: &mut Cx, conversation: ConversationId) -> Result<Next, Error> {
        let begun = Instant::now();
        if !cx.inputs().is_empty() {
            cx.handle_all();
            let _ = self.0.send((conversation, begun));
        }
        Ok(Next::Done)
    }
}

/// The Operator, running.
struct Heard {
    operator: Arc<Operator<Hears>>,
    begun: mpsc::UnboundedReceiver<(ConversationId, Instant)>,
    stop: CancellationToken,
}

impl Heard {
    fn start(desk: Arc<dyn Desk>, actor: ActorKey) -> Self {
        let (tell, begun) = mpsc::unbounded_channel();
        let operator = Operator::new(desk, actor, registration(), Hears(tell), Config::new("bench"));
        let (operator, stop) = (Arc::new(operator), CancellationToken::new());
        let (running, stopped) = (operator.clone(), stop.clone());
        tokio::spawn(async move { running.run(stopped).await });
        Self { operator, begun, stop }
    }

    /// So many rounds in which something is said in all of the Conversations at once. The first round is not counted: in
    /// it the leases are taken.
    async fn measure<F>(mut self, rooms: &[ConversationId], rounds: u64, say: impl Fn(usize) -> F) -> Result<Value>
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let mut all = Vec::new();
        for round in 0..=rounds {
            let mut saying = JoinSet::new();
            for (index, room) in rooms.iter().enumerate() {
                let (room, said) = (*room, say(index));
                saying.spawn(async move {
                    let at = Instant::now();
                    said.await?;
                    anyhow::Ok((room, at))
                });
            }
            let mut said = HashMap::new();
            while let Some(done) = saying.join_next().await {
                said.extend([done??]);
            }
            for _ in rooms {
                let (room, begun) = self.begun.recv().await.context("the operator has ended")?;
                let at = said.get(&room).context("nothing was said there")?;
                if round > 0 {
                    all.push(begun.duration_since(*at).as_secs_f64() * 1e3);
                }
            }
        }
        let counted = self.operator.counted();
        self.stop.cancel();
        Ok(json!({
            "ms_p50": meter::quantile(&mut all, 0.5), "ms_p99": meter::quantile(&mut all, 0.99),
            "ms_in_its_queue": counted.waited_us as f64 / 1e3 / counted.reconciles.max(1) as f64,
        }))
    }
}

fn registration() -> Registration {
    Registration { name: "Bench".to_owned(), description: String::new(), lease_s: 60 }
}

/// Messages at once in so many Conversations, each until its Reconcile begins.
pub fn wake(parameters: &Parameters) -> Result<Value> {
    let conversations = usize::try_from(parameters.number("conversations", 1))?;
    let rounds = parameters.number("rounds", 100);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match parameters.number("http", 0) {
        0 => runtime.block_on(inside(&parameters.folder(), conversations, rounds)),
        _ => runtime.block_on(over_http(&parameters.folder(), conversations, rounds)),
    }
}

async fn inside(folder: &Path, conversations: usize, rounds: u64) -> Result<Value> {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open_driver(folder.join("store.db"))?);
    let platform = Platform::new(store.clone(), loopd_platform::Config::default());
    let engine = Engine::new(platform, Vec::new())?;
    let runtime = Runtime::builder(store, Arc::new(FixedPrograms::new([]))).outlet(engine.outlet().await?);
    let (sender, deltas) = mpsc::unbounded_channel();
    let runtime = runtime.deltas(sender).start().await?;
    engine.start(runtime.clone(), deltas).await?;
    let actor: ActorKey = OPERATOR.parse()?;
    let itself = Caller::new(actor.clone(), Role::Operator);
    engine.platform().register(&itself, &actor, registration()).await?;
    let ann = Caller::new("person/ann".parse()?, Role::Member);
    let mut rooms = Vec::new();
    for _ in 0..conversations {
        let new = NewConversation { title: "bench".to_owned(), members: vec![actor.clone()] };
        rooms.push(engine.platform().open(&ann, "", new).await?.0.id);
    }
    let heard = Heard::start(Arc::new(Inside::new(engine.clone(), actor.clone())), actor);
    let figures = heard.measure(&rooms, rounds, |index| {
        let (engine, ann, room) = (engine.clone(), ann.clone(), rooms[index]);
        async move {
            let text = Block::Known(KnownBlock::Text { text: "now".to_owned() });
            let say = Say { actor: None, to: vec![OPERATOR.parse()?], reply_to: None, blocks: vec![text] };
            engine.say(&ann, room, "", say).await?;
            Ok(())
        }
    });
    let figures = figures.await;
    engine.drain().await;
    runtime.shutdown().await;
    figures
}

async fn over_http(folder: &Path, conversations: usize, rounds: u64) -> Result<Value> {
    // One person says it all here; what one token may ask is not what is measured.
    let settings = "[limits]\nrequests-per-s = 1000000\nrequests-burst = 1000000\n";
    std::fs::write(folder.join("bench.toml"), settings)?;
    let served = Served::start_as(folder, &["serve", "--config", "bench.toml"]).await?;
    let mut admin = served.client(&served.admin).await?;
    let body = json!({ "name": "bench", "actor": OPERATOR, "roles": ["operator"] });
    let made = admin.json("POST", "/v1/tokens", &body).await?;
    let token = made["secret"].as_str().context("no secret")?;
    let desk = Http::new(loopd_client::Client::new(&served.address, Some(token))?);
    let actor: ActorKey = OPERATOR.parse()?;
    desk.register(&actor, &registration()).await?;
    let (mut rooms, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..conversations {
        let mut client: Client = served.client(&served.admin).await?;
        let room = client.conversation(&[OPERATOR.to_owned()]).await?;
        clients.push((Arc::new(Mutex::new(client)), format!("/v1/conversations/{room}/messages")));
        rooms.push(room.parse().map_err(|_| anyhow::anyhow!("{room} is no id"))?);
    }
    let heard = Heard::start(Arc::new(desk), actor);
    let say = json!({ "to": [OPERATOR], "blocks": [{ "type": "text", "text": "now" }] });
    let figures = heard.measure(&rooms, rounds, |index| {
        let ((client, path), say) = (clients[index].clone(), say.clone());
        async move { client.lock().await.json("POST", &path, &say).await.map(drop) }
    });
    figures.await
}
