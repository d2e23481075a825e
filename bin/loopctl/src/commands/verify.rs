//! `verify` and `store verify`: is everything what was committed?

use crate::cli::VerifyArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::files;
use crate::find;
use crate::journal;
use crate::output::{self, Format};
use crate::problem::{Code, Problem};
use crate::words;
use loopd_fixture::excerpt;
use loopd_kernel::replay::{Replayer, Strictness};
use loopd_store::{RunFilter, RunRow, Store};
use serde::Serialize;
use std::path::Path;

/// Rows that one look brings.
const PAGE: usize = 256;

/// What was found about one Run or file.
#[derive(Serialize)]
struct Finding {
    what: String,
    verified: bool,
    entries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Verifies files and Runs.
pub async fn verify(context: &Context, args: VerifyArgs) -> Result<Exit, Problem> {
    if args.all {
        return store(context, args.format.format).await;
    }
    let mut findings = Vec::new();
    for text in &args.what {
        findings.push(if files::is_file(text) {
            file(Path::new(text))?
        } else {
            let store = context.place.client()?;
            let row = find::run(&*store, text).await?;
            run(&*store, &row).await
        });
    }
    tell(context, &findings, args.format.format)
}

/// Verifies every Run of the store.
pub async fn store(context: &Context, format: Format) -> Result<Exit, Problem> {
    let store = context.place.client()?;
    let mut findings = Vec::new();
    let mut before = None;
    loop {
        let page = store.runs(RunFilter { limit: PAGE, before, ..RunFilter::default() }).await?;
        for row in &page.items {
            findings.push(run(&*store, row).await);
        }
        match page.next {
            Some(next) => before = Some(next),
            None => break,
        }
    }
    tell(context, &findings, format)
}

/// An Entry that cannot be read is a finding like any other: the next Run is still looked at.
async fn run(store: &dyn Store, row: &RunRow) -> Finding {
    let what = row.run.to_string();
    // Nothing of the Entries is kept: a Run of any length needs the memory of one page.
    let mut replayer = Replayer::new(row.run, None, Strictness::Strict);
    let mut broken = None;
    let read = journal::entries(store, row, &mut |entry| {
        broken = replayer.take(entry).err().map(|error| error.to_string());
        broken.is_none()
    })
    .await;
    match read {
        Ok(()) => {
            let (last, hash) = replayer.verifier().head();
            let problem = broken.or_else(|| {
                let end = replayer.verifier().finish(row.head, &row.hash);
                end.err().map(|error| error.to_string())
            });
            Finding { what, verified: problem.is_none(), entries: last.0, head: Some(hash.text()), problem }
        }
        Err(problem) => Finding { what, verified: false, entries: 0, head: None, problem: Some(problem.what) },
    }
}

fn file(path: &Path) -> Result<Finding, Problem> {
    let bytes = files::read(path)?;
    let what = path.display().to_string();
    Ok(match loopd_fixture::read(&bytes) {
        Ok(fixture) => {
            let reading = files::reading(&fixture);
            Finding {
                what,
                verified: reading.chain.verified,
                entries: reading.chain.entries,
                head: Some(reading.chain.head.text()),
                problem: reading.broken,
            }
        }
        Err(error) => Finding {
            what,
            verified: false,
            entries: error.seq.map_or(0, |seq| seq.0),
            head: None,
            problem: Some(error.to_string()),
        },
    })
}

fn tell(context: &Context, findings: &[Finding], format: Format) -> Result<Exit, Problem> {
    match format {
        Format::Json | Format::Jsonl => output::json_list(format, findings)?,
        Format::Name => {
            for finding in findings.iter().filter(|finding| !finding.verified) {
                output::line(&finding.what)?;
            }
        }
        Format::Table => {
            for finding in findings {
                output::line(&line(context, finding))?;
            }
            if findings.is_empty() {
                output::note("no runs");
            }
        }
    }
    let broken = findings.iter().filter(|finding| !finding.verified).count();
    if broken == 0 {
        return Ok(Exit::Completed);
    }
    let are = if broken == 1 { "is" } else { "are" };
    Err(Problem::new(Code::Verify, format!("{broken} of {} {are} not what was committed", findings.len()))
        .why("the bytes were changed after they were written: by a tool, by hand, or by a failing disk")
        .fix("take the file from version control, or the store from a backup"))
}

fn line(context: &Context, finding: &Finding) -> String {
    let paint = context.paint;
    match &finding.problem {
        None => {
            let entries = words::plural(finding.entries, "entry", "entries");
            let head = finding.head.as_deref().map(|head| head.chars().take(8).collect::<String>()).unwrap_or_default();
            format!("{} {}  {entries}, head {head}", paint.good("verified"), finding.what)
        }
        Some(problem) => format!("{} {}  {}", paint.bad("broken  "), finding.what, excerpt::line(problem, 400)),
    }
}
