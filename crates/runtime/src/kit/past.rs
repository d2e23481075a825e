//! What was said goes back in the shape that providers accept.

use super::dialect::{HeardResult, Reply, Turn};
use super::server::Server;
use super::stage::{MARK, Stage, rich, user, uses, words};
use super::{Finding, Outcome, Setup, Verdict, ensure, request, same};
use crate::ports::ModelRequest;
use loopd_kernel::model::{Message, ModelConstants, Part, StopReason, ToolOffer};
use std::sync::Arc;

fn part(id: &str, name: &str, args: &str) -> Part {
    Part::ToolUse { id: id.into(), name: name.into(), args: args.into() }
}

fn assistant(parts: impl IntoIterator<Item = Part>) -> Message {
    Message::Assistant { parts: parts.into_iter().collect() }
}

fn result(id: &str, text: &str) -> Message {
    Message::Tool { id: id.into(), text: text.into(), error: false }
}

fn after(messages: impl IntoIterator<Item = Message>, tools: &[&str]) -> ModelRequest {
    let offer = |name: &&str| ToolOffer {
        name: (*name).to_owned(),
        description: "Does nothing.".into(),
        parameters: r#"{"type":"object","properties":{"x":{"type":"integer"}}}"#.into(),
    };
    let constants = ModelConstants { tools: tools.iter().map(offer).collect(), ..ModelConstants::default() };
    let messages = messages.into_iter().map(Arc::new).collect();
    ModelRequest { constants: Arc::new(constants), messages, ..request() }
}

pub(super) async fn what_was_said_arrives_in_order(stage: Stage) -> Outcome {
    let words = |text: &str| assistant([Part::Text { text: text.into() }]);
    let mut request = after([user("one 那"), words("two \"\\"), user("three\n"), words("four"), user("five")], &[]);
    request.constants = Arc::new(ModelConstants { system: Some("Be \"brief\".".into()), ..Default::default() });
    let (heard, _) = stage.hear(request).await?;
    same("instructions", heard.system.as_str(), "Be \"brief\".")?;
    let said = |text: &str| Turn::Assistant { text: text.into(), uses: Vec::new() };
    let user = |text: &str| Turn::User(text.into());
    same("turns", &heard.turns, &vec![user("one 那"), said("two \"\\"), user("three\n"), said("four"), user("five")])?;
    Ok(Verdict::Passed)
}

pub(super) async fn reasoning_goes_back_to_its_origin_alone(stage: Stage) -> Outcome {
    if !stage.features.reasoning {
        return Ok(Verdict::NotApplicable);
    }
    let reply = rich(stage.features);
    let (first, later) = (stage.send(&reply), stage.send(&words(&["ok"])));
    let mut server = Server::start(move |number, _| if number == 1 { first.clone() } else { later.clone() }).await?;
    let said = stage.call(&stage.model(&server)?, request()).await?.answer("a reply with reasoning")?;
    let messages = [user("hi"), assistant(said.reply.parts), result("use_a", "1"), result("use_b", "2")];
    drop(server.seen.recv().await);
    for (model, goes) in [("kit-model", true), ("kit-other", false)] {
        let setup = Setup { model: model.to_owned(), ..stage.setup(&server.url) };
        stage.call(&stage.build(&setup)?, after(messages.clone(), &["f", "g"])).await?.answer("the second turn")?;
        let body = server.seen.try_recv().map(|seen| seen.body).unwrap_or_default();
        let what = if goes { "does not go back to its model" } else { "goes to another model" };
        ensure(body.contains(MARK) == goes, || format!("reasoning {what}: {body}"))?;
    }
    Ok(Verdict::Passed)
}

/// Names that a provider's alphabet may not hold, and two that such an alphabet may make one.
pub(super) async fn names_of_tools_come_back(stage: Stage) -> Outcome {
    let names = ["fs.read", "fs_read", "fs read", "größe", "plain"];
    let (heard, _) = stage.hear(after([user("hi")], &names)).await?;
    let wire = heard.tools.unwrap_or_default();
    same("number of tools", &wire.len(), &names.len())?;
    for (at, (name, own)) in names.iter().zip(&wire).enumerate() {
        let twin = wire.iter().skip(at + 1).any(|other| other == own);
        ensure(!twin, || format!("two tools are called {own:?} on the wire"))?;
        let said = vec![uses("use_a", own, &["{}"])];
        let reply = Reply { said, stop: StopReason::ToolUse, ..words(&[]) };
        let server = Server::always(stage.send(&reply)).await?;
        let asked = stage.call(&stage.model(&server)?, after([user("hi")], &names)).await?;
        let parts = asked.answer("a tool use")?.reply.parts;
        same("the tool use", &parts, &vec![part("use_a", name, "{}")])?;
        let past = [user("hi"), assistant(parts), result("use_a", "1")];
        let (heard, _) = stage.hear(after(past, &names)).await?;
        let used = heard.turns.iter().find_map(|turn| match turn {
            Turn::Assistant { uses, .. } => uses.first().map(|used| used.name.clone()),
            Turn::User(_) | Turn::Results(_) => None,
        });
        same("the name in the next request", &used.as_ref(), &Some(own))?;
    }
    Ok(Verdict::Passed)
}

/// In one turn directly behind the uses, in their order; a result that was lost is made up for.
pub(super) async fn each_tool_use_has_its_result_behind_it(stage: Stage) -> Outcome {
    let calls = || assistant([part("use_a", "f", "{\"x\":1}"), part("use_b", "g", "{}"), part("use_c", "f", "{}")]);
    let later = [result("use_c", "three"), user("meanwhile"), result("use_a", "one"), result("use_b", "two")];
    let kept = [&[user("hi"), calls()], later.as_slice()].concat();
    let lost = vec![user("hi"), calls(), result("use_b", "two"), user("meanwhile")];
    for (what, messages, texts) in [
        ("results in another order", kept, [Some("one"), Some("two"), Some("three")]),
        ("results that were lost", lost, [None, Some("two"), None]),
    ] {
        let (heard, body) = stage.hear(after(messages, &["f", "g"])).await?;
        let mut turns = heard.turns.iter().skip_while(|turn| !matches!(turn, Turn::Assistant { .. }));
        let (Some(Turn::Assistant { uses, .. }), Some(Turn::Results(results))) = (turns.next(), turns.next()) else {
            return Err(Finding::new(format!("{what} do not stand behind their uses: {body}")));
        };
        let ids: Vec<&str> = uses.iter().map(|used| used.id.as_str()).collect();
        let of: Vec<&str> = results.iter().map(|result| result.id.as_str()).collect();
        same(&format!("ids of {what}"), &of, &ids)?;
        same(&format!("number of {what}"), &of.len(), &texts.len())?;
        for (HeardResult { text, .. }, expected) in results.iter().zip(texts) {
            let fits = expected.is_none_or(|expected| text.contains(expected));
            ensure(fits && !text.is_empty(), || format!("{what}: {text:?} stands for {expected:?}"))?;
        }
        let meanwhile = turns.any(|turn| matches!(turn, Turn::User(text) if text == "meanwhile"));
        ensure(meanwhile, || format!("{what}: what a person said meanwhile is lost: {body}"))?;
    }
    Ok(Verdict::Passed)
}

/// The Journal holds what a model wrote; a provider refuses this and every later request for it.
pub(super) async fn arguments_go_back_as_objects(stage: Stage) -> Outcome {
    for args in ["{\"x\":", "", "[1]", "\"x\"", "null", "{} {}", "{\"x\":1}", "rm -rf", "{\"x\": 1e400, \"y\":"] {
        let past = [user("hi"), assistant([part("use_a", "f", args)]), result("use_a", "no"), user("again")];
        let (heard, body) = stage.hear(after(past, &["f"])).await?;
        let on_wire = heard.turns.iter().find_map(|turn| match turn {
            Turn::Assistant { uses, .. } => uses.first().map(|used| used.args.clone()),
            Turn::User(_) | Turn::Results(_) => None,
        });
        let text = on_wire.ok_or_else(|| Finding::new(format!("the use with {args:?} is lost: {body}")))?;
        let value: Option<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(&text).ok();
        ensure(value.is_some(), || format!("the arguments {args:?} go out as {text}"))?;
        ensure(args != "{\"x\":1}" || text.contains('1'), || format!("the arguments {args:?} go out as {text}"))?;
    }
    Ok(Verdict::Passed)
}

/// Some servers refuse an empty list, some go mad.
pub(super) async fn no_tools_are_no_list(stage: Stage) -> Outcome {
    let (heard, body) = stage.hear(after([user("hi")], &[])).await?;
    ensure(heard.tools.is_none(), || format!("a list of tools without tools: {body}"))?;
    let (heard, _) = stage.hear(after([user("hi")], &["f", "g"])).await?;
    same("tools", &heard.tools, &Some(vec!["f".to_owned(), "g".to_owned()]))?;
    Ok(Verdict::Passed)
}
