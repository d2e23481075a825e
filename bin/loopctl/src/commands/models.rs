//! `models` and `models show`: what is known of models, and from where. Nothing is asked of anybody.

use crate::cli::{ModelShowArgs, ModelsArgs, ModelsCommand};
use crate::commands::list::{plain_table, text};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::problem::{Code, Problem};
use crate::words;
use comfy_table::{Cell, CellAlignment};
use loopd_fixture::excerpt;
use loopd_kernel::units::Price;
use loopd_providers::Catalogue;
use loopd_providers::catalogue::{Capability, Known, Listing, ModelFacts, Source, TABLE};
use serde::Serialize;

/// Names that are suggested in place of an unknown one.
const NEAREST: usize = 5;

/// What nobody knows.
const UNKNOWN: &str = "?";

/// One model, for programs. What is `null` is unknown.
#[derive(Serialize)]
struct Shown<'a> {
    provider: &'a str,
    name: &'a str,
    context_window: Option<u64>,
    max_output_tokens: Option<u64>,
    micro_usd_per_million: Option<Price>,
    /// Prompts of ordinary length cost less than this.
    long_prompts_cost_more: Option<bool>,
    capabilities: Option<&'a [Capability]>,
    sources: Sources<'a>,
}

#[derive(Serialize)]
struct Sources<'a> {
    price: Option<&'a Source>,
    context_window: Option<&'a Source>,
    max_output_tokens: Option<&'a Source>,
    capabilities: Option<&'a Source>,
}

impl<'a> Shown<'a> {
    fn of(line: &'a Listing) -> Self {
        let facts = &line.facts;
        Self {
            provider: &line.provider,
            name: &line.name,
            context_window: value(&facts.context_window),
            max_output_tokens: value(&facts.max_output_tokens),
            micro_usd_per_million: facts.price(),
            long_prompts_cost_more: facts.price.as_ref().map(|known| known.value.long_prompts_cost_more),
            capabilities: facts.capabilities.as_ref().map(|known| known.value.as_slice()),
            sources: Sources {
                price: source(&facts.price),
                context_window: source(&facts.context_window),
                max_output_tokens: source(&facts.max_output_tokens),
                capabilities: source(&facts.capabilities),
            },
        }
    }
}

const fn source<T>(known: &Option<Known<T>>) -> Option<&Source> {
    match known {
        Some(known) => Some(&known.source),
        None => None,
    }
}

fn value<T: Copy>(known: &Option<Known<T>>) -> Option<T> {
    known.as_ref().map(|known| known.value)
}

/// The provider and the name, as a manifest's model is called in a Run.
fn id(line: &Listing) -> String {
    format!("{}/{}", line.provider, line.name)
}

/// Lists or shows models.
pub fn models(context: &Context, args: &ModelsArgs) -> Result<Exit, Problem> {
    let catalogue = context.catalogue()?;
    match &args.command {
        None => list(context, &catalogue, args),
        Some(ModelsCommand::Show(args)) => show(context, &catalogue, args),
    }
}

fn list(context: &Context, catalogue: &Catalogue, args: &ModelsArgs) -> Result<Exit, Problem> {
    let listed = of_provider(catalogue, args.provider.as_deref())?;
    let filter = args.filter.as_deref().unwrap_or_default().to_lowercase();
    let fits = |line: &&Listing| id(line).to_lowercase().contains(&filter);
    let found: Vec<&Listing> = listed.iter().filter(fits).collect();
    match args.format.format {
        format @ (Format::Json | Format::Jsonl) => {
            let shown: Vec<Shown<'_>> = found.iter().map(|line| Shown::of(line)).collect();
            output::json_list(format, &shown)?;
        }
        Format::Name => output::line(&found.iter().map(|line| safe(&id(line))).collect::<Vec<_>>().join("\n"))?,
        Format::Table if found.is_empty() => {
            let near = suggestions(&listed, &filter).map(|near| format!("; the nearest are {near}"));
            output::note(&format!("no model has `{}` in its name{}", safe(&filter), near.unwrap_or_default()));
        }
        Format::Table => {
            output::line(&table(&found))?;
            output::note(&context.paint_err.dim(legend(&found)));
        }
    }
    Ok(Exit::Completed)
}

/// Everything that is known, of one provider if it is named.
fn of_provider(catalogue: &Catalogue, provider: Option<&str>) -> Result<Vec<Listing>, Problem> {
    let listed = catalogue.list(provider);
    match provider {
        Some(provider) if listed.is_empty() => {
            Err(Problem::new(Code::ModelUnknown, format!("there is no provider `{}`", safe(provider)))
                .fix(format!("one of: {}", Catalogue::providers().join(", "))))
        }
        Some(_) | None => Ok(listed),
    }
}

fn table(found: &[&Listing]) -> String {
    // What has a length of its own stands last, so that the columns keep their places on a narrow terminal.
    let mut table = plain_table(["WINDOW", "REPLY", "IN", "CACHED", "OUT", "FROM", "MODEL"]);
    for line in found {
        let facts = &line.facts;
        let price = facts.price();
        let number = |text: Option<String>| {
            Cell::new(text.unwrap_or_else(|| UNKNOWN.into())).set_alignment(CellAlignment::Right)
        };
        table.add_row([
            number(value(&facts.context_window).map(tokens)),
            number(value(&facts.max_output_tokens).map(tokens)),
            number(price.map(|price| words::rate(price.input))),
            number(price.map(|price| words::rate(price.cache_read))),
            number(price.map(|price| words::rate(price.output))),
            Cell::new(if sources(facts).all(|source| *source == Source::Table) { "list" } else { "file" }),
            Cell::new(safe(&id(line))),
        ]);
    }
    text(&table)
}

fn sources(facts: &ModelFacts) -> impl Iterator<Item = &Source> {
    let sources = [source(&facts.price), source(&facts.context_window), source(&facts.max_output_tokens)];
    sources.into_iter().chain([source(&facts.capabilities)]).flatten()
}

/// What the columns mean, and where the facts are from.
fn legend(found: &[&Listing]) -> String {
    let file = found.iter().flat_map(|line| sources(&line.facts)).find(|source| **source != Source::Table);
    let file = file.map(|source| format!(", file: {source}")).unwrap_or_default();
    format!("dollars per million tokens; {UNKNOWN} is unknown; list: {TABLE}{file}")
}

/// A number of tokens in few letters, rounded down: `400k`, `1.04M`.
fn tokens(number: u64) -> String {
    let (unit, name) = match number {
        0..1_000 => return number.to_string(),
        1_000..1_000_000 => (1_000, "k"),
        _ => (1_000_000, "M"),
    };
    let part = number % unit * 100 / unit;
    let text = format!("{}.{part:02}", number / unit);
    // Thousands need no fraction.
    let text = if unit == 1_000 { text.split('.').next().unwrap_or_default() } else { &text };
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    format!("{text}{name}")
}

fn show(context: &Context, catalogue: &Catalogue, args: &ModelShowArgs) -> Result<Exit, Problem> {
    let found = named(catalogue, &args.name, args.provider.as_deref());
    if found.is_empty() {
        return Err(unknown(catalogue, args)?);
    }
    match args.format.format {
        format @ (Format::Json | Format::Jsonl) => {
            output::json_list(format, &found.iter().map(Shown::of).collect::<Vec<_>>())?;
        }
        Format::Name => found.iter().try_for_each(|line| output::line(&safe(&id(line))))?,
        Format::Table => {
            let parts: Vec<String> = found.iter().map(|line| people(context, line)).collect();
            output::line(&parts.join("\n\n"))?;
        }
    }
    Ok(Exit::Completed)
}

/// The models that a name means: one at each place that has it, or at the one place that it begins with.
fn named(catalogue: &Catalogue, name: &str, provider: Option<&str>) -> Vec<Listing> {
    let servers = catalogue.servers();
    let places = Catalogue::providers().into_iter().map(|place| (place, false));
    let places: Vec<(&str, bool)> = places.chain(servers.into_iter().map(|place| (place, true))).collect();
    let look = |(place, is_server): (&str, bool), name: &str| {
        let facts = if is_server { catalogue.lookup_at(place, name) } else { catalogue.lookup(place, name) };
        facts.map(|facts| Listing { provider: place.into(), name: name.into(), facts })
    };
    if let Some(provider) = provider {
        let place = places.iter().find(|(place, _)| *place == provider);
        return place.and_then(|place| look(*place, name)).into_iter().collect();
    }
    for place in &places {
        if let Some(bare) = name.strip_prefix(place.0).and_then(|rest| rest.strip_prefix('/')) {
            return look(*place, bare).into_iter().collect();
        }
    }
    places.into_iter().filter_map(|place| look(place, name)).collect()
}

fn unknown(catalogue: &Catalogue, args: &ModelShowArgs) -> Result<Problem, Problem> {
    let listed = of_provider(catalogue, args.provider.as_deref())?;
    let name = args.name.as_str();
    // At the place that was named, before others.
    let (provider, bare) = name.split_once('/').unwrap_or(("", name));
    let same: Vec<Listing> = listed.iter().filter(|line| line.provider == provider).cloned().collect();
    let near = if same.is_empty() { suggestions(&listed, name) } else { suggestions(&same, bare) };
    let problem = Problem::new(Code::ModelUnknown, format!("nothing is known of a model `{}`", safe(name)));
    Ok(problem.fix(match near {
        Some(near) => format!("the nearest names are {near}"),
        None => "`loopctl models` lists what is known; --models FILE adds to it".into(),
    }))
}

fn suggestions(listed: &[Listing], name: &str) -> Option<String> {
    let near = Catalogue::nearest(listed, name, NEAREST);
    (!near.is_empty()).then(|| near.into_iter().map(|line| safe(&id(line))).collect::<Vec<_>>().join(", "))
}

fn people(context: &Context, line: &Listing) -> String {
    let paint = context.paint;
    let facts = &line.facts;
    let row = |label: &str, value: String, source: Option<&Source>| {
        let from = source.map(|source| paint.dim(format!("  {source}"))).unwrap_or_default();
        format!("  {}{value}{from}", paint.dim(format!("{label:<12}")))
    };
    let mut lines = vec![paint.bold(safe(&id(line)))];
    match &facts.price {
        None => lines.push(row("price", "unknown".into(), None)),
        Some(known) => {
            let price = known.value.price;
            let classes = [
                ("input", price.input),
                ("cache read", price.cache_read),
                ("cache write", price.cache_write),
                ("output", price.output),
                ("reasoning", price.reasoning),
            ];
            for (at, (class, micros)) in classes.into_iter().enumerate() {
                let value = format!("{:<9} per million tokens", format!("${}", words::rate(micros)));
                lines.push(row(class, value, (at == 0).then_some(&known.source)));
            }
            if known.value.long_prompts_cost_more {
                lines.push(row("", "of long prompts; shorter ones cost less".into(), None));
            }
        }
    }
    let count = |known: &Option<Known<u64>>| {
        known.as_ref().map_or_else(|| "unknown".into(), |known| format!("{} tokens", words::count(known.value)))
    };
    lines.push(row("window", count(&facts.context_window), source(&facts.context_window)));
    lines.push(row("reply", count(&facts.max_output_tokens), source(&facts.max_output_tokens)));
    let can = facts
        .capabilities
        .as_ref()
        .map(|known| known.value.iter().map(|capability| capability.name()).collect::<Vec<_>>().join(", "));
    let can = can.map(|can| if can.is_empty() { "text only".into() } else { can });
    lines.push(row("can", can.unwrap_or_else(|| "unknown".into()), source(&facts.capabilities)));
    lines.join("\n")
}

/// Names come out of files.
fn safe(text: &str) -> String {
    excerpt::line(text, 200)
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn tokens_are_said_in_few_letters_and_never_too_many() {
        for (number, text) in
            [(7, "7"), (999, "999"), (8_192, "8k"), (400_000, "400k"), (1_000_000, "1M"), (1_048_576, "1.04M")]
        {
            assert_eq!(tokens(number), text);
        }
    }
}
