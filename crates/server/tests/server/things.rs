//! One of each thing that requests can be about, and for each operation a request that is in order.

use crate::world::{Ask, World, description};
use loopd_platform::Config;
use serde_json::{Value, json};
use std::time::Duration;

/// An operation as the description knows it.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    pub method: &'static str,
    pub path: &'static str,
    pub id: &'static str,
    pub says: &'static Value,
}

impl Operation {
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for (path, item) in description()["paths"].as_object().unwrap() {
            for (method, says) in item.as_object().unwrap() {
                all.push(Self { method, path, id: says["operationId"].as_str().unwrap(), says });
            }
        }
        assert!(all.len() > 45);
        all
    }

    /// Whether strangers may ask it.
    pub fn is_open(&self) -> bool {
        self.says.get("security").is_some() || self.path == "/metrics"
    }

    pub fn is_stream(&self) -> bool {
        matches!(self.id, "stream" | "wakes")
    }

    pub fn takes_json(&self) -> bool {
        self.says["requestBody"]["content"].get("application/json").is_some()
    }

    /// What stands behind the question mark, by name.
    pub fn query(&self) -> Vec<&'static Value> {
        self.says["parameters"].as_array().into_iter().flatten().filter(|one| one["in"] == "query").collect()
    }
}

pub struct Things {
    pub world: World,
    /// Of ann, ben, eve and op.
    pub conversation: String,
    /// Said by ann.
    pub message: String,
    /// Begun by op.
    pub open: String,
    /// Asked by op.
    pub question: String,
    /// Made by ann; it waits for a text.
    pub call: String,
    /// Made by ann; it waits for a limit to be raised.
    pub parked: String,
    /// Attached by ann.
    pub artifact: String,
    /// A token of `person/zoe`, who is in no Conversation, and the token's identity.
    pub zoe: String,
    pub token: String,
}

impl Things {
    pub async fn new() -> Self {
        Self::with(Config::default()).await
    }

    pub async fn with(platform: Config) -> Self {
        let world = World::with_agent(platform).await;
        for actor in ["operator/op", "operator/op/plan"] {
            let register = Ask::new("put", format!("/v1/actors/{actor}")).by(&world.op).json(json!({"name": "Op"}));
            assert_eq!(world.send(register).await.brief(), "200");
        }
        let conversation = world.conversation(&["person/ben", "person/eve", "operator/op"]).await;
        let within = |end: &str| format!("/v1/conversations/{conversation}/{end}");
        let message = world.say(&world.ann, &conversation, "one word").await["id"].as_str().unwrap().to_owned();
        let made = |ask: Ask| {
            let world = &world;
            async move {
                let got = world.send(ask).await;
                assert_eq!(got.status.as_u16(), 201, "{}", got.text());
                got.json()
            }
        };
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let begin = Ask::post(within("messages/begin")).by(&world.op);
        let open = text(&made(begin.json(json!({"blocks": [{"type": "text", "text": ""}]}))).await["message"]["id"]);
        let ask = Ask::post(within("questions")).by(&world.op);
        let asked =
            json!({"kind": "ask", "prompt": "Which?", "timeout_s": 600, "choices": [{"value": "a"}, {"value": "b"}]});
        let question = text(&made(ask.json(asked)).await["id"]);
        let call = |prompt: &str, iterations: u64| {
            let budget = json!({"iterations": iterations});
            Ask::post(within("calls"))
                .by(&world.ann)
                .json(json!({"target": "steps", "prompt": prompt, "budget": budget}))
        };
        let parked = text(&made(call("speak:a speak:b speak:c done", 2)).await["call"]["id"]);
        let call = text(&made(call("wait done", 100)).await["call"]["id"]);
        let attach = Ask::post(within("artifacts?name=a.txt")).by(&world.ann).text("text/plain", "bytes");
        let artifact = text(&made(attach).await["id"]);
        let token = json!({"actor": "person/zoe", "roles": ["member", "operator"]});
        let keep = Ask::new("put", "/v1/agents/kept").by(&world.root).text("application/yaml", "name: kept");
        made(keep).await;
        let lease = Ask::post(within("lease")).by(&world.op).json(json!({"holder": "one", "lease_s": 600}));
        assert_eq!(world.send(lease).await.json()["epoch"], 1);
        let made = made(Ask::post("/v1/tokens").by(&world.root).json(token)).await;
        let (zoe, token) = (text(&made["secret"]), text(&made["token"]["id"]));
        let things = Self { conversation, message, open, question, call, parked, artifact, zoe, token, world };
        things.phase(&things.call, "running").await;
        things.phase(&things.parked, "waiting").await;
        things
    }

    /// Lets time pass until a call is in this phase.
    pub async fn phase(&self, call: &str, phase: &str) -> Value {
        until(&self.world, call, phase).await
    }

    /// Ends the calls.
    pub async fn settle(&self) {
        for call in [&self.call, &self.parked] {
            self.world.send(Ask::post(format!("/v1/calls/{call}/cancel")).by(&self.world.ann)).await;
            self.phase(call, "cancelled").await;
        }
    }

    /// The path of an operation, about what is there.
    pub fn path(&self, operation: &Operation) -> String {
        let call = if operation.id == "resume_call" { &self.parked } else { &self.call };
        let message = if operation.id == "get_message" { &self.message } else { &self.open };
        let (kind, key) = if operation.id == "register_actor" { ("person", "ann") } else { ("operator", "op") };
        let ids = [
            ("{conversation}", self.conversation.as_str()),
            ("{message}", message),
            ("{question}", &self.question),
            ("{call}", call),
            ("{artifact}", &self.artifact),
            ("{token}", &self.token),
            ("{run}", &self.call.replace("hcl_", "run_")),
            ("{kind}", kind),
            ("{key}", key),
            ("{role}", "plan"),
            ("{agent}", "kept"),
        ];
        let path = ids.iter().fold(operation.path.to_owned(), |path, (name, id)| path.replace(name, id));
        format!("{path}{}", self.behind(operation))
    }

    /// What stands behind the path because the operation wants it.
    fn behind(&self, operation: &Operation) -> String {
        match operation.id {
            "attach" => "?name=a.txt".to_owned(),
            "search" => "?q=word".to_owned(),
            "stream" => format!("?feed=conversation/{}", self.conversation),
            "sign_in_page" => format!("?code={}", self.world.server.sign_in_code().unwrap()),
            "get_keyed" => "?key=k".to_owned(),
            "get_run" | "list_entries" => format!("?call={}", self.call),
            _ => String::new(),
        }
    }

    /// Who may ask it.
    pub fn who(&self, operation: &Operation) -> &str {
        match operation.id {
            "ask" | "withdraw" | "update_message" | "end_message" | "register_role" | "lease" | "turn" => {
                &self.world.op
            }
            "make_token" | "revoke_token" | "list_tokens" | "list_audit" | "list_runs" | "apply_agent"
            | "delete_agent" => &self.world.root,
            _ => &self.world.ann,
        }
    }

    /// A body that is in order. An operation that takes one and has none here is not tested: say what it takes.
    pub fn body(&self, operation: &Operation) -> Option<Value> {
        let body = match operation.id {
            "register_actor" | "register_role" => json!({"name": "N"}),
            "open_conversation" => json!({"title": "t"}),
            "change_conversation" => json!({"title": "new"}),
            "change_members" => json!({"remove": ["person/ben"]}),
            "say" => json!({"blocks": [{"type": "text", "text": "x"}]}),
            "begin_message" => json!({}),
            "update_message" => json!({"revision": 1, "ops": [{"op": "append", "index": 0, "text": "x"}]}),
            "end_message" => json!({"status": "completed"}),
            "commit" => json!({"seq": 1}),
            "lease" => json!({"holder": "one", "epoch": 1, "lease_s": 600}),
            "turn" => {
                let say = json!({"blocks": [{"type": "text", "text": "x"}]});
                json!({"epoch": 1, "acts": [{"act": "say", "key": "k", "say": say}], "handled": {"seq": 1}})
            }
            "ask" => json!({"kind": "ask", "prompt": "?", "timeout_s": 9}),
            "answer" => json!({"status": "answered", "value": "a"}),
            "call" => json!({"target": "steps", "prompt": "done"}),
            "cancel_call" => json!({"reason": "enough"}),
            "resume_call" => json!({"iterations": 50}),
            "steer_call" => json!({"text": "Hurry."}),
            "make_token" => json!({"actor": "person/yan", "roles": ["viewer"]}),
            "sign_in" => json!({"code": self.world.server.sign_in_code().unwrap()}),
            id => {
                assert!(!operation.takes_json(), "say what body `{id}` takes, and what it refuses");
                return None;
            }
        };
        Some(body)
    }

    /// The request, but for whoever sends it.
    pub fn ask(&self, operation: &Operation) -> Ask {
        let ask = Ask::new(operation.method, self.path(operation));
        match (self.body(operation), operation.id) {
            (Some(body), _) => ask.json(body),
            (None, "attach") => ask.text("text/plain", "bytes"),
            (None, "apply_agent") => ask.text("application/yaml", "name: kept"),
            (None, _) => ask,
        }
    }

    /// Sends what has to be refused: it writes nothing.
    #[track_caller]
    pub fn refused(&self, ask: Ask) -> impl Future<Output = crate::world::Got> {
        let at = std::panic::Location::caller();
        async move {
            let shown = format!("{ask:?}");
            let shown = shown.get(..300).unwrap_or(&shown);
            let before = self.world.store.commits();
            let got = self.world.send(ask).await;
            assert!(got.status.as_u16() >= 400, "{at}: not refused: {shown} {}", got.text());
            assert!(got.status.as_u16() < 500, "{at}: {shown} {}", got.text());
            assert_eq!(self.world.store.commits(), before, "{at}: refused, and something was written: {shown}");
            got
        }
    }
}

/// Lets time pass until a call is in this phase.
pub async fn until(world: &World, call: &str, phase: &str) -> Value {
    for _ in 0..1000 {
        let got = world.send(Ask::get(format!("/v1/calls/{call}")).by(&world.root)).await.json();
        if got["phase"] == phase {
            return got;
        }
        world.pass(Duration::from_millis(100)).await;
    }
    panic!("{call} does not come to be {phase}");
}
