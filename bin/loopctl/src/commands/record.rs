//! `record`: a Run into a file.

use crate::cli::RecordArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::files;
use crate::find;
use crate::output;
use crate::problem::{Code, Problem};
use crate::words;
use loopd_fixture::{WriteError, Writer};
use loopd_kernel::Seq;
use loopd_store::{RunRow, RunStatus, Store};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Entries that one read brings.
const PAGE: usize = 512;

/// Writes a Run into a `.loopfix` file; refuses while a secret is in it.
pub async fn record(context: &Context, args: RecordArgs) -> Result<Exit, Problem> {
    let to_stdout = args.output == Path::new("-");
    if !to_stdout && !args.force && args.output.exists() {
        return Err(Problem::new(Code::File, format!("{} is there already", args.output.display()))
            .fix("choose another name, or --force to replace it"));
    }
    let store = context.place.client()?;
    let row = find::run(&*store, &args.run).await?;
    if to_stdout {
        // Nothing goes out before everything was looked at.
        let mut bytes = Vec::new();
        copy(&*store, &row, &mut bytes).await?;
        output::bytes(&bytes)?;
        return Ok(Exit::Completed);
    }
    let size = whole_or_not_at_all(&*store, &row, &args.output).await?;
    let what = format!("{}, {}", words::plural(row.head.0, "entry", "entries"), words::bytes(size));
    output::note(&format!("{} written: {what}", args.output.display()));
    if row.status != RunStatus::Ended {
        output::note("the run has not ended: the file holds it up to here");
    }
    Ok(Exit::Completed)
}

/// Writes beside the file first, so that a refusal or a full disk leaves no half of one.
async fn whole_or_not_at_all(store: &dyn Store, row: &RunRow, path: &Path) -> Result<usize, Problem> {
    let wrong = |error: std::io::Error| Problem::new(Code::Io, format!("{}: {}", path.display(), words::os(&error)));
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let part = Path::new(&name);
    let mut file = BufWriter::new(File::create(part).map_err(wrong)?);
    let copied = copy(store, row, &mut file).await;
    let kept = copied.and_then(|size| {
        let flushed = file.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|file| file.sync_all());
        flushed.and_then(|()| std::fs::rename(part, path)).map(|()| size).map_err(wrong)
    });
    kept.inspect_err(|_| drop(std::fs::remove_file(part)))
}

/// Copies the Run with memory for one page, and returns how many bytes that were.
async fn copy(store: &dyn Store, row: &RunRow, out: &mut (dyn Write + Send)) -> Result<usize, Problem> {
    let definition = store.blob(row.definition).await?.unwrap_or_default();
    let secrets = files::secrets_of(&definition);
    let first = store.entries(row.run, Seq(0), 1).await?;
    let first = first.first().ok_or_else(|| refused(&WriteError::Empty))?;
    let (mut buffer, mut size) = (Vec::new(), 0);
    let mut writer = Writer::begin(first, row.head, &secrets, &mut buffer).map_err(|error| refused(&error))?;
    let mut at = Seq(0);
    while at < row.head {
        let page = store.entries(row.run, at, PAGE).await?;
        let Some(last) = page.last() else { break };
        at = last.seq;
        for entry in page.iter().take_while(|entry| entry.seq <= row.head) {
            writer.entry(entry, &mut buffer).map_err(|error| refused(&error))?;
        }
        size += flush(&mut buffer, out)?;
    }
    for name in writer.missing_blobs() {
        let missing = || refused(&WriteError::BlobMissing { digest: name });
        let bytes = store.blob(name).await?.ok_or_else(missing)?;
        writer.blob(name, &bytes, &mut buffer).map_err(|error| refused(&error))?;
        size += flush(&mut buffer, out)?;
    }
    writer.finish(&mut buffer).map_err(|error| refused(&error))?;
    size += flush(&mut buffer, out)?;
    Ok(size)
}

fn flush(buffer: &mut Vec<u8>, out: &mut dyn Write) -> Result<usize, Problem> {
    out.write_all(buffer)?;
    let size = buffer.len();
    buffer.clear();
    Ok(size)
}

fn refused(error: &WriteError) -> Problem {
    match error {
        WriteError::Secret(finding) => Problem::new(Code::Secret, format!("not recorded: {finding}"))
            .why("a recording is shared; a secret in it is a leak. The run itself is as it was")
            .fix("keep secrets out of questions, files and tool results, change this one, and run again"),
        other => Problem::new(Code::Journal, format!("not recorded: {other}"))
            .fix("`loopctl verify` says more about the run"),
    }
}
