//! The exact bytes of an exchange, kept with the settlement of its Call.

use crate::world;
use loopd_kernel::model::ModelCall;
use loopd_kernel::record::Record;
use loopd_kernel::{Decision, Event, Failure, Seq};
use loopd_providers::{Connection, ModelConfig, OpenAiConfig, from_config_with};
use loopd_runtime::{Model, Program, RunEnd, Started};
use loopd_store::{MemoryStore, Store as _};
use looptest::fake::{FakeModel, Script};
use std::sync::Arc;

fn model(fake: &FakeModel, keep_exchange: bool) -> Arc<dyn Model> {
    let connection = Connection { keep_exchange, ..Connection::default() };
    let config = OpenAiConfig { api_key_env: Some("KEY".into()), ..OpenAiConfig::new("m").at(fake.openai_url()) };
    let config = ModelConfig::Openai(config).reached(connection);
    from_config_with(&config, &|_| Some("sk-secret-1".into())).expect("a model")
}

/// The bodies that a run over `fake` kept: request and response.
async fn kept(fake: &FakeModel, keep: bool) -> Option<(Vec<u8>, Vec<u8>)> {
    let asks = world::closure(|event| {
        Ok::<_, Failure>(match event {
            Event::IterationStarted { .. } => Decision::model(ModelCall::transcript("m")),
            _ => Decision::finish(&1),
        })
    });
    let store = Arc::new(MemoryStore::new());
    let program = Arc::new(Program::new(asks).model("m", model(fake, keep)));
    let runtime = world::worker(store.clone(), &program).await;
    let Started::New(driven) = runtime.start(&program, world::admission("\"hi\"")).await.unwrap() else { panic!() };
    let run = driven.run;
    assert!(matches!(driven.wait().await, RunEnd::Ended(_)));
    runtime.shutdown().await;
    let entries = store.entries(run, Seq(0), 100).await.unwrap();
    let exchange = entries.iter().find_map(|entry| match Record::decode(entry.kind, &entry.record) {
        Ok(Record::Settled(settled)) => settled.exchange,
        _ => None,
    })?;
    let named: Vec<_> = entries.iter().flat_map(|entry| loopd_fixture::named_blobs(entry).unwrap()).collect();
    assert!(named.contains(&exchange.request) && named.contains(&exchange.response), "a recording holds them");
    let blob = async |digest| store.blob(digest).await.unwrap().expect("it is stored");
    Some((blob(exchange.request).await, blob(exchange.response).await))
}

#[tokio::test]
async fn an_exchange_is_kept_byte_for_byte_and_without_the_key() {
    let fake = FakeModel::start(Script::empty().says("one two")).await;
    let (request, response) = kept(&fake, true).await.expect("kept");
    let heard = fake.journal().remove(0);
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&request).unwrap(), heard.body);
    let response = String::from_utf8(response).unwrap();
    assert!(response.starts_with("data: ") && response.trim_end().ends_with("data: [DONE]"), "{response}");
    assert!(!String::from_utf8(request).unwrap().contains("sk-secret-1"));
}

#[tokio::test]
async fn nothing_is_kept_unless_somebody_wants_it() {
    let fake = FakeModel::start(Script::empty().says("one two")).await;
    assert_eq!(kept(&fake, false).await, None);
}
