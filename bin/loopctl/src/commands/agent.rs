//! `agent check` and `agent schema`.

use crate::agents;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::problem::{Code, Problem};
use crate::tools;
use crate::words;
use loopd_agent::manifest::{Provider, ToolSource, json_schema};
use loopd_fixture::excerpt;
use serde::Serialize;
use std::path::Path;

/// What an agent would use.
#[derive(Serialize)]
struct Checked {
    file: String,
    name: String,
    version: String,
    model: String,
    /// Its server, or the script that it plays.
    server: Option<String>,
    key: Option<String>,
    tools: Vec<Offered>,
    limits: loopd_kernel::Limits,
    output_schema: bool,
    /// What stands in the way of a run here, if anything does.
    problem: Option<String>,
    #[serde(skip)]
    fix: Option<String>,
}

#[derive(Serialize)]
struct Offered {
    name: String,
    class: &'static str,
    from: String,
}

/// Checks a manifest and says what a run of it would use.
pub fn check(context: &Context, file: &Path, format: Format) -> Result<Exit, Problem> {
    let manifest = agents::manifest(file)?;
    let limits = manifest.spec.limits.to_kernel();
    let ready = agents::load(file).and_then(|ready| ready.affordable(&limits));
    // A wrong manifest is said as such; what only this machine lacks is a remark.
    if let Err(problem) = &ready
        && !matches!(problem.code, Code::ModelKey | Code::Tool | Code::Model | Code::ModelPrice)
    {
        return ready.map(|()| Exit::Completed);
    }
    let (server, key) = match &manifest.spec.model.provider {
        Provider::OpenAi { base_url, api_key_env, .. }
        | Provider::Anthropic { base_url, api_key_env, .. }
        | Provider::Gemini { base_url, api_key_env, .. } => (base_url.clone(), api_key_env.clone()),
        Provider::Demo { script } => (Some(script.clone()), None),
    };
    let problem = ready.err();
    let checked = Checked {
        file: file.display().to_string(),
        name: manifest.metadata.name.clone(),
        version: manifest.metadata.version.clone(),
        model: manifest.spec.model.key(),
        server,
        key,
        tools: manifest.spec.tools.iter().flat_map(offered).collect(),
        limits,
        output_schema: manifest.spec.output.is_some(),
        fix: problem.as_ref().and_then(|problem| problem.fix.clone()),
        problem: problem.as_ref().map(|problem| format!("{} ({})", problem.what, problem.code.name())),
    };
    match format {
        Format::Json | Format::Jsonl => output::json(format, &checked)?,
        Format::Name => output::line(&checked.name)?,
        Format::Table => people(context, &checked)?,
    }
    Ok(problem.map_or(Exit::Completed, |problem| problem.code.exit()))
}

fn offered(source: &ToolSource) -> Vec<Offered> {
    let (tools, from) = tools::classes(source);
    tools.into_iter().map(|(name, class)| Offered { name: name.into(), class, from: from.clone() }).collect()
}

fn people(context: &Context, checked: &Checked) -> Result<(), Problem> {
    let paint = context.paint;
    let label = |name: &str| paint.dim(format!("  {name:<8}"));
    let safe = |text: &str| excerpt::line(text, 200);
    let mut lines = vec![format!("{}  {}", paint.bold(&checked.name), checked.version)];
    let from = if checked.model == "demo" { "plays" } else { "at" };
    let server = checked.server.as_deref().map(|server| format!(" {from} {}", safe(server))).unwrap_or_default();
    let key = checked.key.as_deref().map(|key| format!(", key in {}", safe(key))).unwrap_or_default();
    lines.push(format!("{}{}{server}{key}", label("model"), safe(&checked.model)));
    for tool in &checked.tools {
        lines.push(format!(
            "{}{}  {}",
            label("tool"),
            tool.name,
            paint.dim(format!("{} · {}", tool.class, safe(&tool.from)))
        ));
    }
    lines.push(format!("{}{}", label("limits"), words::limits(&checked.limits)));
    if checked.output_schema {
        lines.push(format!("{}must match the schema in spec.output", label("answer")));
    }
    match &checked.problem {
        None => lines.push(format!("{}{}", label("state"), paint.good("ready to run"))),
        Some(problem) => {
            lines.push(format!("{}{}", label("state"), paint.bad(format!("cannot run here: {problem}"))));
            lines.extend(checked.fix.as_ref().map(|fix| format!("{}{fix}", label("do"))));
        }
    }
    output::line(&lines.join("\n"))?;
    Ok(())
}

/// Prints the JSON Schema of manifests.
pub fn schema() -> Result<Exit, Problem> {
    output::bytes(json_schema().as_bytes())?;
    Ok(Exit::Completed)
}
