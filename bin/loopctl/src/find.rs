//! Finding the Run that a person means.

use crate::problem::{Code, Problem};
use crate::words;
use loopd_kernel::question::OpenQuestion;
use loopd_kernel::{Projection, QuestionId, RunId};
use loopd_runtime::LoadError;
use loopd_store::{QuestionRow, RunFilter, RunRow, Store};

/// Rows that one look brings.
const PAGE: usize = 1000;

/// Open Questions that are looked at.
pub const QUESTIONS: usize = 1000;

/// Hexadecimal digits of an id, without its prefix.
const DIGITS: usize = 32;

/// The Run with this id, the one Run whose id begins like this, or the newest (`last`).
///
/// # Errors
/// [`Problem`] when there is none, or more than one.
pub async fn run(store: &dyn Store, text: &str) -> Result<RunRow, Problem> {
    let unknown = |what: String| Problem::new(Code::RunUnknown, what).fix("list them with `loopctl run list`");
    if text == "last" {
        let newest = store.runs(RunFilter { limit: 1, ..RunFilter::default() }).await?;
        return newest.items.into_iter().next().ok_or_else(|| unknown("there are no runs in this store yet".into()));
    }
    let digits = text.strip_prefix("run_").unwrap_or(text).to_ascii_lowercase();
    if digits.is_empty() || digits.len() > DIGITS || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Problem::new(Code::RunUnknown, format!("`{text}` is no run"))
            .why("a run is named by its id, by the beginning of its id, or by `last`")
            .fix("list them with `loopctl run list`"));
    }
    if digits.len() == DIGITS
        && let Ok(run) = format!("run_{digits}").parse::<RunId>()
    {
        return store.run(run).await?.ok_or_else(|| unknown(format!("there is no run {run}")));
    }
    let mut found = beginning_with(store, &digits).await?;
    match (found.pop(), found.is_empty()) {
        (Some(row), true) => Ok(row),
        (Some(row), false) => {
            let others = found.iter().rev().map(|other| other.run).chain([row.run]).take(8);
            let others: Vec<String> = others.map(|run| run.to_string()).collect();
            Err(Problem::new(Code::RunAmbiguous, format!("several runs begin with `{text}`"))
                .fix(format!("write more of it:\n{}", others.join("\n"))))
        }
        (None, _) => Err(unknown(format!("no run begins with `{text}`"))),
    }
}

async fn beginning_with(store: &dyn Store, digits: &str) -> Result<Vec<RunRow>, Problem> {
    let mut found = Vec::new();
    let mut before = None;
    loop {
        let page = store.runs(RunFilter { limit: PAGE, before, ..RunFilter::default() }).await?;
        let hex = |run: &RunId| run.to_string().trim_start_matches("run_").to_owned();
        found.extend(page.items.into_iter().filter(|row| hex(&row.run).starts_with(digits)));
        match page.next {
            Some(next) => before = Some(next),
            None => return Ok(found),
        }
    }
}

/// What the Run's Journal means, verified on the way.
///
/// # Errors
/// [`Problem`], naming the Run and the Entry.
pub async fn projection(store: &dyn Store, row: &RunRow) -> Result<Projection, Problem> {
    let loaded = loopd_runtime::load(store, row).await.map_err(|error| journal(row.run, error))?;
    Ok(loaded.projection)
}

/// A Journal that does not load.
pub fn journal(run: RunId, error: LoadError) -> Problem {
    match error {
        LoadError::Store(error) => error.into(),
        other @ (LoadError::Fold(_) | LoadError::Chain(_) | LoadError::Truncated { .. }) => {
            Problem::new(Code::Journal, format!("{run}: {other}"))
                .why("its journal is not what was committed; it is left as it is")
                .fix("restore the store from a backup; `loopctl store verify` names every run that is affected")
        }
    }
}

/// The open Questions of a Run and of all Runs below it, each with its Run.
///
/// # Errors
/// [`Problem`] when a Journal does not load.
pub async fn family_questions(store: &dyn Store, run: RunId) -> Result<Vec<(RunId, OpenQuestion)>, Problem> {
    let (mut found, mut left) = (Vec::new(), vec![run]);
    while let Some(run) = left.pop() {
        let Some(row) = store.run(run).await? else { continue };
        let projection = projection(store, &row).await?;
        found.extend(projection.questions.iter().map(|question| (run, question.clone())));
        left.extend(projection.children().map(|(_, child)| child.run));
    }
    Ok(found)
}

/// The open Question that `RUN/qN` means, or the only one of `RUN`.
///
/// # Errors
/// [`Problem`] when there is none, or more than one.
pub async fn question(store: &dyn Store, text: &str) -> Result<QuestionRow, Problem> {
    let (run_text, question) = match text.rsplit_once('/') {
        Some((run, question)) => (run, Some(question)),
        None => (text, None),
    };
    let row = run(store, run_text).await?;
    let mut open = store.questions(Some(row.run), QUESTIONS).await?;
    let short = words::short(row.run);
    let list = "list them with `loopctl ask list`";
    let Some(question) = question else {
        return match (open.pop(), open.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(_), false) => Err(Problem::new(Code::QuestionUnknown, format!("{short} asks several questions"))
                .fix(format!(
                    "name one, for example {short}/{}",
                    open.first().map_or(QuestionId(1), |q| q.question.id)
                ))),
            (None, _) => Err(Problem::new(Code::QuestionUnknown, format!("{short} asks nothing now")).fix(list)),
        };
    };
    let id: QuestionId = question.parse().map_err(|_| {
        Problem::new(Code::QuestionUnknown, format!("`{question}` is no question"))
            .fix(format!("write it like {short}/q1; {list}"))
    })?;
    open.into_iter().find(|open| open.question.id == id).ok_or_else(|| {
        Problem::new(Code::QuestionUnknown, format!("{short} does not ask {id} now"))
            .why("it was answered, it expired, or the run has moved on")
            .fix(list)
    })
}
