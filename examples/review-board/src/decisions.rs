//! The board's own business: decisions as files.

use loopd_protocol::MessageId;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What was decided. All of it is what the platform keeps, so that it is the same each time it is put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The Message with the proposal: its id names the file.
    pub proposal: MessageId,
    /// `accept` or `reject`.
    pub decided: String,
    /// Who decided.
    pub by: String,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// What was proposed and argued.
    pub text: String,
}

impl Decision {
    fn page(&self) -> String {
        let Self { proposal, decided, by, at_ms, text } = self;
        format!("# {proposal}: {decided}\n\nDecided by {by} at {at_ms} (milliseconds since 1970).\n\n{text}")
    }
}

/// A folder of decisions, one file each.
///
/// # Guarantees
/// Under the name of a decision there is all of it or nothing, also after a power cut: it is written beside, synced, and
/// then renamed. Its name and content follow from the proposal alone, so that recording it again, after a crash or by two
/// processes at once, leaves the same one file.
#[derive(Debug, Clone)]
pub struct Decisions {
    folder: PathBuf,
}

impl Decisions {
    /// The decisions in this folder, which is made with the first one.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Records a decision, and returns its file's name.
    ///
    /// # Errors
    /// What the operating system says; then there is nothing under that name, or what was there before.
    pub async fn record(&self, decision: &Decision) -> io::Result<String> {
        let (folder, id, page) = (self.folder.clone(), decision.proposal.to_string(), decision.page());
        let name = format!("{id}.md");
        let file = name.clone();
        // Syncing takes its time, and other Conversations go on meanwhile.
        let written = tokio::task::spawn_blocking(move || write(&folder, &file, page.as_bytes()));
        written.await.map_err(io::Error::other)??;
        Ok(name)
    }
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let file = folder.join(name);
    if fs::read(&file).is_ok_and(|there| there == bytes) {
        // A process that died may not have come to this.
        return sync(folder);
    }
    // Two processes do not write into each other's.
    let beside = folder.join(format!(".{name}.{}", std::process::id()));
    let mut part = File::create(&beside)?;
    part.write_all(bytes).and_then(|()| part.sync_all())?;
    fs::rename(&beside, &file)?;
    sync(folder)?;
    sweep(folder, name)
}

/// A name is durable once its folder is.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes what processes that died have left beside it.
fn sweep(folder: &Path, name: &str) -> io::Result<()> {
    let left = format!(".{name}.");
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&left) {
            match fs::remove_file(entry.path()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(decided: &str) -> Decision {
        Decision {
            proposal: MessageId([7; 16]),
            decided: decided.to_owned(),
            by: "person/ann".to_owned(),
            at_ms: 5,
            text: "## Proposal\n\n> x\n".to_owned(),
        }
    }

    fn files(folder: &Path) -> Vec<(String, String)> {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        let read =
            |entry: fs::DirEntry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap());
        entries.map(read).collect()
    }

    #[tokio::test]
    async fn recorded_again_it_is_the_same_file_and_leftovers_go() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("deep/decisions");
        let decisions = Decisions::new(&folder);
        let name = decisions.record(&decision("accept")).await.unwrap();
        let first = files(&folder);
        assert_eq!(first, [(name.clone(), decision("accept").page())]);
        assert_eq!(decisions.record(&decision("accept")).await.unwrap(), name);
        assert_eq!(files(&folder), first);
        // A process that died while it wrote.
        fs::write(folder.join(format!(".{name}.1")), "ha").unwrap();
        fs::write(folder.join(&name), "half of").unwrap();
        decisions.record(&decision("accept")).await.unwrap();
        assert_eq!(files(&folder), first);
    }

    #[tokio::test]
    async fn a_folder_that_is_none_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "mine").unwrap();
        assert!(Decisions::new(&file).record(&decision("accept")).await.is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    }
}
