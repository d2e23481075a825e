//! `agent check` and `agent schema`.

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::problem::Problem;
use crate::words;
use loopd_agent::Manifest;
use loopd_agent::manifest::{Provider, ToolSource, json_schema};
use loopd_assemble::{models, tools};
use loopd_fixture::excerpt;
use loopd_kernel::units::Price;
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
    /// Micro-dollars per million tokens; `null` is unknown.
    price: Option<Price>,
    price_from: Option<String>,
    context_window: Option<u64>,
    context_window_from: Option<String>,
    /// The models that take over, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fallbacks: Vec<String>,
    tools: Vec<Offered>,
    limits: loopd_kernel::Limits,
    output_schema: bool,
    /// What is likely not meant, though a run can start.
    remarks: Vec<String>,
    /// The first thing that stands in the way of a run here, if anything does.
    problem: Option<String>,
    /// Everything that does.
    problems: Vec<Obstacle>,
}

#[derive(Serialize)]
struct Obstacle {
    code: &'static str,
    what: String,
    why: Option<String>,
    fix: Option<String>,
}

impl Obstacle {
    fn of(problem: &Problem) -> Self {
        let Problem { code, what, why, fix } = problem;
        Self { code: code.name(), what: what.clone(), why: why.clone(), fix: fix.clone() }
    }
}

#[derive(Serialize)]
struct Offered {
    name: String,
    class: &'static str,
    from: String,
}

/// Checks a manifest and says what a run of it would use.
pub fn check(context: &Context, file: &Path, format: Format) -> Result<Exit, Problem> {
    let manifest = loopd_assemble::manifest(file)?;
    let limits = manifest.spec.limits.to_kernel();
    let catalogue = context.catalogue()?;
    // A wrong manifest is said as such; what only this machine lacks is part of the answer.
    let obstacles = loopd_assemble::obstacles(file, &catalogue)?;
    let obstacles: Vec<Problem> = obstacles.into_iter().map(Problem::from).collect();
    let (server, key) = match &manifest.spec.model.provider {
        Provider::OpenAi { base_url, api_key_env, .. }
        | Provider::Anthropic { base_url, api_key_env, .. }
        | Provider::Gemini { base_url, api_key_env, .. } => {
            let key = api_key_env.clone().or_else(|| manifest.spec.model.api_key_file.clone());
            (base_url.clone(), key)
        }
        Provider::Demo { script } => (Some(script.clone()), None),
    };
    let facts = models::facts(&manifest.spec.model, &catalogue).unwrap_or_default();
    let checked = Checked {
        file: file.display().to_string(),
        name: manifest.metadata.name.clone(),
        version: manifest.metadata.version.clone(),
        model: manifest.spec.model.key(),
        server,
        key,
        price: facts.price(),
        price_from: facts.price_source(),
        context_window: facts.window(),
        context_window_from: facts.context_window.as_ref().map(|known| known.source.to_string()),
        fallbacks: manifest.models().into_iter().skip(1).map(|(name, _)| name).collect(),
        tools: tools(&manifest),
        limits,
        output_schema: manifest.spec.output.is_some(),
        remarks: [models::remarks(&manifest, &facts), tools::remarks(&manifest)].concat(),
        problem: obstacles.first().map(ToString::to_string),
        problems: obstacles.iter().map(Obstacle::of).collect(),
    };
    match format {
        Format::Json | Format::Jsonl => output::json(format, &checked)?,
        Format::Name => output::line(&checked.name)?,
        Format::Table => people(context, &checked)?,
    }
    Ok(obstacles.first().map_or(Exit::Completed, |problem| problem.code.exit()))
}

/// Every tool that the model is offered.
fn tools(manifest: &Manifest) -> Vec<Offered> {
    let helpers = manifest.spec.agents.iter().map(|helper| Offered {
        name: helper.name.clone(),
        class: "a run of its own",
        from: format!("the agent in {}", helper.manifest),
    });
    let built_in = manifest.built_in_tools().into_iter().map(|name| Offered {
        name: name.into(),
        class: "read",
        from: "built in".into(),
    });
    manifest.spec.tools.iter().flat_map(offered).chain(helpers).chain(built_in).collect()
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
    if checked.model != "demo" || checked.price.is_some() {
        lines.push(format!("{}{}", label("price"), price(checked)));
    }
    let window = checked.context_window.zip(checked.context_window_from.as_ref());
    let window = window.map(|(window, from)| format!("{} tokens, from {}", words::count(window), safe(from)));
    lines.extend(window.map(|window| format!("{}{window}", label("window"))));
    lines.extend(checked.fallbacks.iter().map(|model| format!("{}{}", label("then"), safe(model))));
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
    lines.extend(checked.remarks.iter().map(|remark| format!("{}{}", label("note"), paint.wait(safe(remark)))));
    if checked.problems.is_empty() {
        lines.push(format!("{}{}", label("state"), paint.good("ready to run")));
    }
    for problem in &checked.problems {
        let text = format!("cannot run here: {} ({})", problem.what, problem.code);
        lines.push(format!("{}{}", label("state"), paint.bad(text)));
        lines.extend(problem.fix.as_ref().map(|fix| format!("{}{fix}", label("do"))));
    }
    output::line(&lines.join("\n"))?;
    Ok(())
}

/// What the model costs, and who says so.
fn price(checked: &Checked) -> String {
    let Some((price, from)) = checked.price.zip(checked.price_from.as_ref()) else {
        return "unknown, so no money is counted; spec.model.price declares it".into();
    };
    let (input, output) = (words::rate(price.input), words::rate(price.output));
    format!("${input} in, ${output} out per million tokens, from {}", excerpt::line(from, 100))
}

/// Prints the JSON Schema of manifests.
pub fn schema() -> Result<Exit, Problem> {
    output::bytes(json_schema().as_bytes())?;
    Ok(Exit::Completed)
}
