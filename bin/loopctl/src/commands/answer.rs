//! `ask answer` on a store: what a person says.

use crate::cli::AnswerArgs;
use crate::context::{Context, fresh_key};
use crate::drive::answerable_after;
use crate::exit::Exit;
use crate::find;
use crate::output;
use crate::problem::{Code, Problem};
use crate::words;
use loopd_fixture::excerpt;
use loopd_kernel::machine::accepts;
use loopd_kernel::question::{Ask, OpenQuestion, QuestionEnd, Resolution};
use loopd_kernel::{Digest, RunId, Seq, TimeMs};
use loopd_store::{Batch, Expectation, InboxBody, InboxItem, Store, StoreError, Write};
use serde_json::value::RawValue;

/// Inbox items that are looked at.
const INBOX: usize = 1000;

/// Problems of an answer that are shown.
const PROBLEMS: usize = 5;

/// Answers a Question. Whoever drives the Run takes the answer; when nobody does, it waits in the inbox.
pub async fn answer(context: &Context, args: AnswerArgs) -> Result<Exit, Problem> {
    let store = context.place.client()?;
    let row = find::question(&*store, &args.question).await?;
    let (run, question) = (row.run, &row.question);
    let name = format!("{}/{}", words::short(run), question.id);
    if args.dismiss {
        return Err(Problem::new(Code::Answer, format!("{name} cannot be closed without an answer"))
            .fix("decline it with --decline, or cancel the run"));
    }
    let (end, value) = if args.decline {
        decline(&name, &question.ask)?
    } else {
        (QuestionEnd::Answered, value(&name, question, &args, context.now())?)
    };
    let head = store.run(run).await?.map_or(Seq(0), |row| row.head);
    let waiting = store.inbox(run, INBOX).await?;
    let answered = |body: &InboxBody| matches!(body, InboxBody::Answer { question: id, .. } if *id == question.id);
    let already = || {
        Problem::new(Code::RunState, format!("{name} is answered already"))
            .why("the answer waits until somebody drives the run")
            .fix(context.place.command(&format!("run resume {}", words::short(run))))
    };
    if waiting.iter().any(|item| answered(&item.body)) {
        return Err(already());
    }
    let body = InboxBody::Answer { question: question.id, end, actor: context.actor(), value };
    // Two people who answer at once name the same key, and the store lets one of them in.
    let key = format!("answer/{}/{head}", question.id);
    let item = |key: String| InboxItem { id: 0, run, key, at: context.now(), body: body.clone() };
    let add = |item| Batch { expect: Vec::new(), writes: vec![Write::AddInbox(item)] };
    match store.commit(add(item(key))).await {
        Err(StoreError::Conflict(Expectation::InboxKey(_))) => {
            if store.inbox(run, INBOX).await?.iter().any(|item| answered(&item.body)) {
                return Err(already());
            }
            // An earlier answer was taken and did not fit; this one gets its own try.
            store.commit(add(item(fresh_key("answer")))).await?;
        }
        other => drop(other?),
    }
    let said = if args.decline { "declined" } else { "answered" };
    let way = if context.place.is_driven() { String::new() } else { way(context, &*store, run).await? };
    output::note(&format!("{name} {said}{way}"));
    Ok(Exit::Completed)
}

/// How the Run goes on that nobody drives now.
async fn way(context: &Context, store: &dyn Store, run: RunId) -> Result<String, Problem> {
    let row = store.run(run).await?;
    let in_rust = row.filter(|row| row.definition == Digest::sha256(&[]));
    let how = match in_rust {
        Some(row) => format!("Start the program of `{}` again", excerpt::line(&row.loop_name, 60)),
        None => format!("Go on with  {}", context.place.command(&format!("run resume {}", words::short(run)))),
    };
    Ok(format!("; nobody drives the run now. {how}"))
}

fn decline(name: &str, ask: &Ask) -> Result<(QuestionEnd, String), Problem> {
    match ask {
        Ask::Ask { .. } | Ask::Confirm { .. } => Ok((QuestionEnd::Declined, String::new())),
        Ask::Resolve { .. } => Err(Problem::new(Code::Answer, format!("{name} cannot be declined"))
            .why("a call that may have had an effect stays open until somebody says what became of it")
            .fix("answer `unknown` if nobody can tell; the agent then decides")),
    }
}

/// A line that somebody typed as the answer of a Question, as JSON text once it fits.
///
/// # Errors
/// [`Problem`] with what does not fit.
pub fn typed_answer(name: &str, question: &OpenQuestion, text: &str, now: TimeMs) -> Result<String, Problem> {
    let args = AnswerArgs {
        question: name.into(),
        value: Some(text.into()),
        json: false,
        decline: false,
        dismiss: false,
        output: None,
        evidence: None,
    };
    value(name, question, &args, now)
}

/// The answer as JSON text, once it fits.
fn value(name: &str, question: &OpenQuestion, args: &AnswerArgs, now: TimeMs) -> Result<String, Problem> {
    let text = args.value.as_deref().unwrap_or_default();
    let resolves = matches!(question.ask, Ask::Resolve { .. });
    if !resolves && (args.output.is_some() || args.evidence.is_some()) {
        return Err(Problem::new(Code::Answer, format!("{name} does not ask what became of a call"))
            .fix("leave --output and --evidence out"));
    }
    match &question.ask {
        Ask::Ask { schema, .. } => typed(name, schema.as_deref(), text, args.json),
        Ask::Confirm { .. } => match text.to_ascii_lowercase().as_str() {
            "yes" | "y" | "true" => Ok("true".into()),
            "no" | "n" | "false" => Ok("false".into()),
            _ => Err(Problem::new(Code::Answer, format!("{name} takes yes or no"))),
        },
        Ask::Resolve { .. } => {
            let value = resolution(name, text, args)?;
            too_early(name, question, &value, now)?;
            Ok(value)
        }
    }
}

/// What was sent may land after somebody has looked: until it cannot, "it did not happen" is a guess.
fn too_early(name: &str, question: &OpenQuestion, value: &str, now: TimeMs) -> Result<(), Problem> {
    let skew = u64::try_from(loopd_runtime::Config::default().skew.as_millis()).unwrap_or(u64::MAX);
    accepts(question, QuestionEnd::Answered, value, now, skew).map_err(|refused| {
        let problem =
            Problem::new(Code::Answer, format!("{name} does not take that answer now")).why(refused.to_string());
        match &question.ask {
            Ask::Resolve { lands_until: Some(until), .. } => {
                let after = words::rfc3339(answerable_after(*until));
                problem.fix(format!("look again after {after}, and answer then"))
            }
            Ask::Ask { .. } | Ask::Confirm { .. } | Ask::Resolve { .. } => problem,
        }
    })
}

/// What became of a call, as JSON text.
///
/// # Errors
/// [`Problem`] with what can be said.
pub fn resolution(name: &str, text: &str, args: &AnswerArgs) -> Result<String, Problem> {
    let (output, evidence) = (args.output.clone(), args.evidence.clone());
    let (resolution, unused) = match text {
        "landed" => (Resolution::Landed { output: output.unwrap_or_default() }, evidence),
        "failed" => (Resolution::Failed { evidence: evidence.unwrap_or_default() }, output),
        "unknown" => (Resolution::Unknown { evidence: evidence.unwrap_or_default() }, output),
        "retry" => (Resolution::Retry, output.or(evidence)),
        _ if args.json && serde_json::from_str::<Resolution>(text).is_ok() => return Ok(text.into()),
        _ => {
            return Err(Problem::new(Code::Answer, format!("{name} asks what became of a call"))
                .fix("answer landed [--output TEXT], failed [--evidence TEXT], retry, or unknown [--evidence TEXT]"));
        }
    };
    if unused.is_some() {
        return Err(Problem::new(Code::Answer, format!("`{text}` does not take that option"))
            .fix("landed takes --output; failed and unknown take --evidence"));
    }
    serde_json::to_string(&resolution).map_err(|error| Problem::new(Code::Answer, error.to_string()))
}

/// Text is an answer of its own; where a schema asks for something else, JSON that fits is one.
///
/// # Errors
/// [`Problem`] with what does not fit.
pub fn typed(name: &str, schema: Option<&str>, text: &str, json: bool) -> Result<String, Problem> {
    let quoted = || serde_json::to_string(text).map_err(|error| Problem::new(Code::Answer, error.to_string()));
    let raw = serde_json::from_str::<&RawValue>(text).map(|raw| raw.get().to_owned());
    if json && let Err(error) = &raw {
        return Err(Problem::new(Code::Answer, format!("the answer is not JSON: {error}")));
    }
    let candidates: Vec<String> =
        if json { raw.into_iter().collect() } else { [Some(quoted()?), raw.ok()].into_iter().flatten().collect() };
    let Some(schema) = schema else {
        return candidates.into_iter().next().ok_or_else(|| Problem::new(Code::Answer, "there is no answer"));
    };
    let mut problems = Vec::new();
    for candidate in candidates {
        match misfits(schema, &candidate)? {
            found if found.is_empty() => return Ok(candidate),
            found => problems = found,
        }
    }
    let list: Vec<String> = problems.iter().take(PROBLEMS).map(|problem| excerpt::line(problem, 200)).collect();
    Err(Problem::new(Code::Answer, format!("the answer does not fit {name}: {}", list.join("; ")))
        .why(format!("its schema is {}", excerpt::line(schema, 400)))
        .fix("give an answer that fits; --json takes any JSON value"))
}

/// What of the value the schema refuses. The schema comes from a model: it fetches nothing.
fn misfits(schema: &str, value: &str) -> Result<Vec<String>, Problem> {
    let wrong = |what: String| {
        Problem::new(Code::Answer, format!("the question's schema cannot be used: {what}"))
            .fix("decline the question, or cancel the run")
    };
    let schema: serde_json::Value = serde_json::from_str(schema).map_err(|error| wrong(error.to_string()))?;
    let value: serde_json::Value =
        serde_json::from_str(value).map_err(|error| Problem::new(Code::Answer, error.to_string()))?;
    let validator = jsonschema::validator_for(&schema).map_err(|error| wrong(error.to_string()))?;
    Ok(validator.iter_errors(&value).map(|error| error.to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Option<&str>, text: &str, json: bool, expected: Result<&str, &str>) {
        let found = typed("x/q1", schema, text, json).map_err(|problem| problem.what);
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn answers_become_the_json_that_fits() {
        let choices = Some(r#"{"enum":["red","blue"]}"#);
        let number = Some(r#"{"type":"integer","minimum":1}"#);
        check(None, "Paris", false, Ok("\"Paris\""));
        check(None, "42", false, Ok("\"42\""));
        check(None, "42", true, Ok("42"));
        check(None, "Paris", true, Err("the answer is not JSON: expected value at line 1 column 1"));
        check(choices, "red", false, Ok("\"red\""));
        check(
            choices,
            "green",
            false,
            Err("the answer does not fit x/q1: \"green\" is not one of \"red\" or \"blue\""),
        );
        check(number, "42", false, Ok("42"));
        check(number, "0", false, Err("the answer does not fit x/q1: 0 is less than the minimum of 1"));
    }
}
