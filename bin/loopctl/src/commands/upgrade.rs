//! `upgrade`: what this build, or a changed manifest, would make of the open Runs. It reads, and changes nothing.

use crate::cli::UpgradeArgs;
use crate::commands::list::{painted, plain_table, text};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::paint::Tone;
use crate::problem::{Code, Problem};
use crate::words;
use comfy_table::Cell;
use loopd_assemble::{Agents, Manner};
use loopd_fixture::excerpt;
use loopd_kernel::{RunId, Seq};
use loopd_runtime::{CannotRun, Forecast, Program, Programs, forecast};
use loopd_store::RunRow;
use serde::Serialize;
use std::sync::Arc;

/// One open Run, for programs.
#[derive(Serialize)]
struct Finding {
    run: RunId,
    #[serde(rename = "loop")]
    loop_name: String,
    version: String,
    status: &'static str,
    /// `clean`, `decisions_differ`, `state_needs_migration` or `cannot_run`.
    finding: &'static str,
    goes_on: bool,
    /// Whether a change of definition would be recorded.
    adopts: bool,
    /// In one sentence.
    why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    differs: Option<Differs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    migration: Option<Migration>,
}

/// Where decisions differ first.
#[derive(Serialize)]
struct Differs {
    seq: Seq,
    what: &'static str,
    recorded: String,
    replayed: String,
}

/// From which version of State to which.
#[derive(Serialize)]
struct Migration {
    from: u32,
    to: u32,
    works: bool,
}

/// One Program in the place of whatever definition a Run has.
struct Instead(Arc<Program>);

impl Programs for Instead {
    fn find(&self, _: &RunRow, _: &[u8]) -> Result<Arc<Program>, CannotRun> {
        Ok(self.0.clone())
    }
}

/// Says what an upgrade would do, or how one happens.
pub async fn upgrade(context: &Context, args: &UpgradeArgs) -> Result<Exit, Problem> {
    if !args.check {
        return Err(Problem::new(Code::Usage, "there is nothing to do for an upgrade")
            .why("a run goes on with a new build by itself, the next time somebody resumes it; the switch is recorded")
            .fix(format!("look first:  {}", context.place.command("upgrade --check"))));
    }
    let catalogue = context.catalogue()?;
    let store = context.place.client()?;
    let mut findings = Vec::new();
    if args.agent.is_empty() {
        let found = forecast(&*store, &Agents::from_folder_of(None, catalogue.clone())?, None).await?;
        findings.extend(found.into_iter().map(|(row, forecast)| Finding::of(&row, forecast)));
    }
    for file in &args.agent {
        let agent = loopd_assemble::load(file, Manner::Task, &catalogue)?;
        let found = forecast(&*store, &Instead(agent.program), Some(&agent.name)).await?;
        findings.extend(found.into_iter().map(|(row, forecast)| Finding::of(&row, forecast)));
    }
    write(context, &findings, args.format.format)?;
    if !args.agent.is_empty() && args.format.format == Format::Table {
        output::note(&context.paint_err.dim("nothing takes over: a run keeps the manifest that it was started with"));
    }
    judge(context, &findings)
}

impl Finding {
    fn of(row: &RunRow, forecast: Forecast) -> Self {
        let goes_on = forecast.goes_on();
        let mut adopts = false;
        let (mut differs, mut migration) = (None, None);
        let (finding, why) = match forecast {
            Forecast::Clean { adopts: switches, decisions, foreign } => {
                adopts = switches;
                let agree = words::plural(decisions, "decision agrees", "decisions agree");
                let folded = (foreign > 0).then(|| format!(", {foreign} of other definitions were not run again"));
                ("clean", agree + &folded.unwrap_or_default())
            }
            Forecast::DecisionsDiffer { adopts: switches, divergence: at } => {
                adopts = switches;
                let why = format!("entry {}: not the same {}", at.seq, at.what);
                differs = Some(Differs { seq: at.seq, what: at.what, recorded: at.recorded, replayed: at.replayed });
                ("decisions_differ", why)
            }
            Forecast::NeedsMigration { from, to, failure } => {
                adopts = failure.is_none();
                migration = Some(Migration { from, to, works: failure.is_none() });
                let how = failure.map_or_else(|| "works".into(), |failure| format!("fails: {failure}"));
                ("state_needs_migration", format!("State {from} to {to}: the migration {how}"))
            }
            Forecast::CannotRun(why) => ("cannot_run", why),
        };
        Self {
            run: row.run,
            loop_name: row.loop_name.clone(),
            version: row.version.clone(),
            status: row.status.name(),
            finding,
            goes_on,
            adopts,
            why,
            differs,
            migration,
        }
    }

    const fn tone(&self) -> Tone {
        match (self.goes_on, self.differs.is_some()) {
            (true, false) => Tone::Good,
            (true, true) => Tone::Waits,
            (false, _) => Tone::Bad,
        }
    }
}

fn write(context: &Context, findings: &[Finding], format: Format) -> Result<(), Problem> {
    match format {
        Format::Json | Format::Jsonl => output::json_list(format, findings)?,
        Format::Name => {
            let noted = findings.iter().filter(|finding| !finding.goes_on || finding.differs.is_some());
            noted.map(|finding| finding.run.to_string()).try_for_each(|run| output::line(&run))?;
        }
        Format::Table if findings.is_empty() => output::note("no open runs"),
        Format::Table => {
            let mut table = plain_table(["RUN", "AGENT", "VERSION", "FINDING", "WHY"]);
            for finding in findings {
                let mut why = excerpt::line(&finding.why, 200);
                if finding.adopts {
                    why.push_str("; the switch will be recorded");
                }
                table.add_row([
                    Cell::new(words::short(finding.run)),
                    Cell::new(excerpt::line(&finding.loop_name, 30)),
                    Cell::new(excerpt::line(&finding.version, 20)),
                    painted(context.paint, finding.tone(), &finding.finding.replace('_', " ")),
                    Cell::new(why),
                ]);
            }
            output::line(&text(&table))?;
        }
    }
    Ok(())
}

/// Decisions that differ are worth a look before anything else is.
fn judge(context: &Context, findings: &[Finding]) -> Result<Exit, Problem> {
    let count = |which: &dyn Fn(&&Finding) -> bool| findings.iter().filter(which).count() as u64;
    let (differ, stay) = (count(&|one| one.differs.is_some()), count(&|one| !one.goes_on));
    if differ > 0 {
        let runs = words::plural(differ, "open run", "open runs");
        return Err(Problem::new(Code::Upgrade, format!("{runs} would have been decided otherwise"))
            .why("what is recorded stays; from the next decision on the new code decides")
            .fix(format!("see both sides:  {}", context.place.command("upgrade --check -o json"))));
    }
    if stay > 0 {
        let runs = words::plural(stay, "open run", "open runs");
        return Err(Problem::new(Code::CannotRun, format!("{runs} would not go on here"))
            .why("each one stays as it is, and the build that drives it now goes on with it")
            .fix("keep that build until they have ended, or cancel them"));
    }
    Ok(Exit::Completed)
}
