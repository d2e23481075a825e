//! `call list|targets|start|show|cancel|steer|resume`.

use super::follow::Ear;
use super::names::{self, all, short};
use super::part;
use super::reach::Reach;
use super::send::again;
use super::text_of;
use super::wait::{self, Awaited, Patience};
use crate::cli::{CallArgs, CallCommand, CallStartArgs, LimitArgs};
use crate::commands::{painted, plain_table, table_text};
use crate::context::{Context, fresh_key};
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::problem::{Code, Problem};
use crate::words;
use comfy_table::Cell;
use loopd_agent::manifest::Duration as Span;
use loopd_client::Start;
use loopd_fixture::excerpt;
use loopd_kernel::{MicroUsd, TimeMs};
use loopd_protocol::{Budget, CallPhase, HarnessCall, NewCall, OnPark, Steer};

/// `loopctl call …`.
///
/// # Errors
/// [`Problem`].
pub async fn call(context: &Context, args: CallArgs) -> Result<Exit, Problem> {
    let reach = Reach::new(context, &args.server)?;
    match args.command {
        CallCommand::List { conv, limit, work, format } => {
            list(context, &reach, (&conv, limit, work), format.format).await
        }
        CallCommand::Start(args) => start(context, &reach, args).await,
        CallCommand::Targets(format) => targets(&reach, format.format).await,
        CallCommand::Show { call, wait, timeout, format } => {
            show(context, &reach, &call, (wait, timeout), format.format).await
        }
        CallCommand::Cancel { call, reason, format } => cancel(&reach, &call, &reason, format.format).await,
        CallCommand::Steer { call, text, key, format } => steer(&reach, &call, (text, key), format.format).await,
        CallCommand::Resume { call, limits, format } => resume(&reach, &call, &limits, format.format).await,
    }
}

async fn list(
    context: &Context,
    reach: &Reach,
    (conv, limit, work): (&str, u32, bool),
    format: Format,
) -> Result<Exit, Problem> {
    let conversation = names::conversation(reach, conv).await?;
    let most = limit as usize;
    let mut found = all(most, async |part| reach.client.calls(conversation, &part).await).await?;
    if work {
        for work in reach.client.work(conversation).await? {
            found.extend(all(most, async |part| reach.client.calls(work.id, &part).await).await?);
        }
        found.sort_by_key(|call| std::cmp::Reverse(call.created_at));
        found.truncate(most);
    }
    match format {
        Format::Json | Format::Jsonl => output::json_list(format, &found)?,
        Format::Name => found.iter().try_for_each(|one| output::line(&one.id.to_string()))?,
        Format::Table if found.is_empty() => output::note("no calls"),
        Format::Table if work => output::line(&steps(context, &found))?,
        Format::Table => {
            let mut table = plain_table(["CALL", "TARGET", "STATE", "TOKENS", "COST", "MADE", "PROMPT"]);
            for one in &found {
                let (tone, standing) = part::standing(one);
                table.add_row([
                    Cell::new(short(one.id)),
                    Cell::new(excerpt::line(&one.target, 30)),
                    painted(context.paint, tone, &excerpt::line(&standing, 40)),
                    Cell::new(words::count(one.spent.tokens)),
                    Cell::new(cost(one)),
                    Cell::new(words::ago(TimeMs(one.created_at), context.now())),
                    Cell::new(excerpt::line(asked(&one.prompt), 40)),
                ]);
            }
            output::line(&table_text(&table))?;
        }
    }
    Ok(Exit::Completed)
}

/// Calls by what they are for and what they took.
fn steps(context: &Context, calls: &[HarnessCall]) -> String {
    let mut table = plain_table(["CALL", "STEP", "TARGET", "STATE", "TOKENS", "COST", "TOOK", "MADE"]);
    for one in calls {
        let (tone, standing) = part::standing(one);
        let until = one.ended_at.unwrap_or(context.now().0);
        table.add_row([
            Cell::new(short(one.id)),
            Cell::new(excerpt::line(&one.effect_key, 30)),
            Cell::new(excerpt::line(&one.target, 30)),
            painted(context.paint, tone, &excerpt::line(&standing, 40)),
            Cell::new(words::count(one.spent.tokens)),
            Cell::new(cost(one)),
            Cell::new(one.started_at.map(|from| part::took(from, until)).unwrap_or_default()),
            Cell::new(words::ago(TimeMs(one.created_at), context.now())),
        ]);
    }
    table_text(&table)
}

/// The last line of a prompt: what was asked, behind what was said before.
fn asked(prompt: &str) -> &str {
    prompt.trim_end().lines().last().unwrap_or_default()
}

fn cost(call: &HarnessCall) -> String {
    if call.spent.micro_usd == 0 { String::new() } else { words::dollars(MicroUsd(call.spent.micro_usd)) }
}

async fn targets(reach: &Reach, format: Format) -> Result<Exit, Problem> {
    let found = reach.client.targets().await?.items;
    match format {
        Format::Json | Format::Jsonl => output::json_list(format, &found)?,
        Format::Name => found.iter().try_for_each(|one| output::line(&excerpt::line(&one.name, 100)))?,
        Format::Table if found.is_empty() => output::note("no targets"),
        Format::Table => {
            let mut table = plain_table(["TARGET", "SPEAKS AS", "RUNNING", "QUEUED", "WHAT IT DOES"]);
            for one in &found {
                let what = match &one.unavailable {
                    Some(why) => format!("takes no calls: {why}"),
                    None => one.description.clone(),
                };
                table.add_row([
                    excerpt::line(&one.name, 40),
                    one.actor.to_string(),
                    format!("{}/{}", one.running, one.slots),
                    one.queued.to_string(),
                    excerpt::line(&what, 80),
                ]);
            }
            output::line(&table_text(&table))?;
        }
    }
    Ok(Exit::Completed)
}

async fn start(context: &Context, reach: &Reach, args: CallStartArgs) -> Result<Exit, Problem> {
    let prompt = text_of(args.prompt, "prompt")?;
    let format = args.format.format;
    let conversation = names::conversation(reach, &args.conv).await?;
    let ear = if args.wait { Some(Ear::open(reach, conversation, Start::Now).await?) } else { None };
    let new = NewCall {
        target: args.target,
        prompt,
        artifacts: Vec::new(),
        effect_key: String::new(),
        actor: None,
        recipient: None,
        reply_to: None,
        timeout_s: args.deadline.ms.div_ceil(1000),
        budget: budget(&args.limits)?,
        on_park: if args.fail_on_limit { OnPark::Fail } else { OnPark::Wait },
        priority: args.priority.into(),
    };
    let key = args.key.unwrap_or_else(|| fresh_key("call"));
    let called = again(async || reach.client.start(conversation, &key, &new).await).await?;
    if called.already {
        output::note("it had been made before, with this key");
    }
    if let Some(ear) = ear {
        let awaited = Awaited::Calls(vec![called.call.id]);
        return wait::wait(context, reach, (conversation, ear), awaited, Patience::new(args.timeout, format)).await;
    }
    match format {
        Format::Json | Format::Jsonl => output::json(format, &called)?,
        Format::Table | Format::Name => output::line(&called.call.id.to_string())?,
    }
    Ok(Exit::Completed)
}

fn budget(limits: &LimitArgs) -> Result<Budget, Problem> {
    if limits.max_wall.is_some() || limits.max_retries.is_some() {
        return Err(Problem::new(Code::Usage, "a call is limited by --max-iterations, --max-tokens and --max-usd")
            .fix("its time is limited by `call start --deadline`"));
    }
    let micro_usd = limits.max_usd.map(|usd| usd.0);
    Ok(Budget { tokens: limits.max_tokens, micro_usd, iterations: limits.max_iterations })
}

async fn show(
    context: &Context,
    reach: &Reach,
    text: &str,
    (wait, timeout): (bool, Option<Span>),
    format: Format,
) -> Result<Exit, Problem> {
    let id = names::call(reach, text).await?;
    let call = reach.client.call(id).await?;
    if wait {
        let ear = Ear::open(reach, call.conversation, Start::Now).await?;
        let awaited = Awaited::Calls(vec![id]);
        return wait::wait(context, reach, (call.conversation, ear), awaited, Patience::new(timeout, format)).await;
    }
    if format != Format::Table {
        return told(&call, format);
    }
    let (tone, standing) = part::standing(&call);
    let paint = context.paint;
    output::line(&format!("{}  {}", call.id, paint.tone(tone, standing)))?;
    let used = words::spending(call.spent.tokens, MicroUsd(call.spent.micro_usd));
    let iterations = words::plural(call.spent.iterations, "iteration", "iterations");
    let mut rows = vec![
        ("target", format!("{}, spoken for by {}", excerpt::line(&call.target, 60), call.actor)),
        ("asked", format!("{} ({})", excerpt::line(asked(&call.prompt), 200), call.caller)),
        ("in", call.conversation.to_string()),
        ("run", excerpt::line(call.run.as_deref().unwrap_or_default(), 60)),
        ("used", format!("{used}, {iterations}")),
        ("made", words::moment(TimeMs(call.created_at))),
    ];
    match call.ended_at {
        Some(at) => rows.push(("ended", words::moment(TimeMs(at)))),
        None => rows.push(("until", words::moment(TimeMs(call.deadline)))),
    }
    if let Some(confirmed) = call.stop_confirmed {
        let text = if confirmed { "confirmed by the remote" } else { "not confirmed by the remote" };
        rows.push(("stop", text.to_owned()));
    }
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        output::line(&format!("  {}  {value}", paint.dim(format!("{name:<6}"))))?;
    }
    if call.phase == CallPhase::Succeeded {
        let answer = part::answer(&reach.client.message(call.message).await?);
        output::line(&excerpt::lines(answer.trim_end()))?;
    }
    Ok(Exit::Completed)
}

fn told(call: &HarnessCall, format: Format) -> Result<Exit, Problem> {
    match format {
        Format::Json | Format::Jsonl => output::json(format, call)?,
        Format::Name => output::line(&call.id.to_string())?,
        Format::Table => output::note(&format!("{} {}", short(call.id), part::standing(call).1)),
    }
    Ok(Exit::Completed)
}

async fn cancel(reach: &Reach, text: &str, reason: &str, format: Format) -> Result<Exit, Problem> {
    let id = names::call(reach, text).await?;
    told(&again(async || reach.client.cancel(id, reason).await).await?, format)
}

async fn steer(
    reach: &Reach,
    text: &str,
    (words, key): (String, Option<String>),
    format: Format,
) -> Result<Exit, Problem> {
    let steer = Steer { text: text_of(words, "text")? };
    let id = names::call(reach, text).await?;
    let key = key.unwrap_or_else(|| fresh_key("steer"));
    let steered = again(async || reach.client.steer(id, &key, &steer).await).await?;
    match format {
        Format::Json | Format::Jsonl => output::json(format, &steered)?,
        Format::Name => output::line(&excerpt::line(&steered.steer, 200))?,
        Format::Table => output::note(&format!("{} will see it at its next step", short(id))),
    }
    Ok(Exit::Completed)
}

async fn resume(reach: &Reach, text: &str, limits: &LimitArgs, format: Format) -> Result<Exit, Problem> {
    let budget = budget(limits)?;
    if budget == Budget::default() {
        return Err(Problem::new(Code::Usage, "which limit is to be higher?")
            .fix("say --max-iterations N, --max-tokens N or --max-usd DOLLARS"));
    }
    let id = names::call(reach, text).await?;
    told(&reach.client.resume(id, &budget).await?, format)
}
