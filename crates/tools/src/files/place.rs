//! Putting a file in its place: whole or not at all.
//!
//! The content is written beside the place under a name that holds the effect key, flushed, and renamed. As long as
//! that name is there, its attempt has not landed; a later attempt takes it away first, so that an earlier one that
//! wakes up has nothing left to rename.

use super::root::{Below, Root, failed, keep, not_written, open_file, open_writable};
use super::tool::Attempt;
use cap_std::fs::{Dir, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use loopd_kernel::EffectKey;
use loopd_runtime::ToolError;
use rustix::fs::{Mode, RenameFlags, fchmod, renameat_with};
use rustix::io::Errno;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// One renaming at a time: an edit looks at what it replaced, and must not see another edit half done.
static RENAMING: Mutex<()> = Mutex::new(());

/// Tells the files of one process apart.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Digits of the effect key in a file's name.
const KEY_DIGITS: usize = 16;

/// Where a file is or will be.
pub(super) struct Place<'a> {
    dir: Dir,
    name: &'a str,
    path: &'a Below,
    key: EffectKey,
}

/// A moment in an edit, for tests that step in there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Moment {
    /// The file was compared and is about to be replaced.
    Compared,
    /// It was replaced, and was not what had been read.
    Displaced,
}

impl<'a> Place<'a> {
    /// The place of a file, whose folder has to be there.
    pub(super) fn find(root: &Root, path: &'a Below, attempt: &Attempt) -> Result<Self, ToolError> {
        let (dir, name) = root.parents(path)?;
        Ok(Self { dir, name, path, key: attempt.key })
    }

    /// The same; folders that are missing are made.
    pub(super) fn make(root: &Root, path: &'a Below, attempt: &Attempt) -> Result<Self, ToolError> {
        let (dir, name) = root.make_parents(path)?;
        Ok(Self { dir, name, path, key: attempt.key })
    }

    /// The regular file that is there and may be written, if anything is there.
    pub(super) fn present(&self) -> Result<Option<Metadata>, ToolError> {
        match open_writable(&self.dir, self.name, self.path) {
            Ok(file) => file.metadata().map(Some).map_err(|error| failed(self.path, &error)),
            Err(error) if error.failure.code == "file.not_found" => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The content of the file with its metadata, when it may be written and is no longer than `limit`.
    pub(super) fn read_writable(&self, limit: u64) -> Result<(Vec<u8>, Metadata), ToolError> {
        let file = open_writable(&self.dir, self.name, self.path)?;
        let about = file.metadata().map_err(|error| failed(self.path, &error))?;
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| failed(self.path, &error))?;
        if bytes.len() as u64 > limit {
            let message = format!("{} is longer than {limit} bytes", self.path);
            return Err(ToolError::did_not_happen("file.too_large", message));
        }
        Ok((bytes, about))
    }

    /// Whether the file is there with exactly this content.
    pub(super) fn holds(&self, content: &[u8]) -> Result<bool, ToolError> {
        match self.content_of(self.name, content.len()) {
            Ok(found) => Ok(found == content),
            Err(error) if error.failure.code == "file.not_found" => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The bytes of a file of the folder, and one more than `length` if there are more.
    fn content_of(&self, name: &str, length: usize) -> Result<Vec<u8>, ToolError> {
        let file = open_file(&self.dir, name, self.path)?;
        let mut bytes = Vec::new();
        file.take(length as u64 + 1).read_to_end(&mut bytes).map_err(|error| failed(self.path, &error))?;
        Ok(bytes)
    }

    /// What attempts of this Call have left beside the place: none of them has landed.
    pub(super) fn unfinished(&self) -> Result<Vec<String>, ToolError> {
        let prefix = self.prefix();
        let mut found = Vec::new();
        for entry in self.dir.entries().map_err(|error| failed(self.path, &error))? {
            let entry = entry.map_err(|error| failed(self.path, &error))?;
            found.extend(entry.file_name().into_string().ok().filter(|name| name.starts_with(&prefix)));
        }
        Ok(found)
    }

    fn prefix(&self) -> String {
        let digits: String = self.key.0.to_string().chars().take(KEY_DIGITS).collect();
        format!(".loopd-{digits}-")
    }

    /// Writes the content beside the place and flushes it, with the permissions of `like`.
    pub(super) fn stage(&self, content: &[u8], like: Option<&Metadata>) -> Result<Staged<'_>, ToolError> {
        for left in self.unfinished()? {
            self.dir.remove_file(&left).map_err(|error| not_written(self.path, &error))?;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{}-{number}.tmp", self.prefix(), std::process::id());
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if like.is_some() {
            // Nobody else reads it before it has the permissions of what it replaces.
            options.mode(0o600);
        }
        let mut file = self.dir.open_with(&name, &options).map_err(|error| not_written(self.path, &error))?;
        let staged = Staged { place: self, name, remove: true };
        let permissions = like.map(|like| Mode::from_raw_mode(like.mode() & 0o777));
        file.write_all(content)
            .and_then(|()| permissions.map_or(Ok(()), |mode| fchmod(&file, mode).map_err(io::Error::from)))
            .and_then(|()| file.sync_all())
            .map_err(|error| not_written(self.path, &error))?;
        Ok(staged)
    }
}

/// A file beside its place. Dropped, it is removed.
pub(super) struct Staged<'a> {
    place: &'a Place<'a>,
    name: String,
    /// False while the name stands for what somebody else wrote.
    remove: bool,
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if self.remove {
            let _ = self.place.dir.remove_file(&self.name);
        }
    }
}

impl Staged<'_> {
    /// Replaces whatever file is there.
    pub(super) fn replace(self) -> Result<(), ToolError> {
        let _one = RENAMING.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = &self.place.dir;
        dir.rename(&self.name, dir, self.place.name).map_err(|error| not_written(self.place.path, &error))?;
        self.kept()
    }

    /// Takes the place only when nothing is there.
    pub(super) fn create(self) -> Result<(), ToolError> {
        let _one = RENAMING.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = &self.place.dir;
        let moved = match renameat_with(dir, &*self.name, dir, self.place.name, RenameFlags::NOREPLACE) {
            Err(error) if is_unsupported(error) => dir.hard_link(&self.name, dir, self.place.name),
            moved => moved.map_err(io::Error::from),
        };
        match moved {
            Ok(()) => self.kept(),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(exists(self.place.path)),
            Err(error) => Err(not_written(self.place.path, &error)),
        }
    }

    /// Replaces the file when its content is still `before`. `meanwhile` is told how far it is.
    pub(super) fn exchange(
        mut self,
        before: &[u8],
        after: &[u8],
        mut meanwhile: impl FnMut(Moment),
    ) -> Result<(), ToolError> {
        let _one = RENAMING.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.place.holds(before)? {
            return Err(changed(self.place.path));
        }
        meanwhile(Moment::Compared);
        self.remove = false;
        if let Err(error) = self.swap() {
            self.remove = true;
            return match error {
                // A file system without such a renaming leaves a moment between looking and replacing.
                error if is_unsupported(error) => self.replace_unlocked(),
                Errno::NOENT => Err(changed(self.place.path)),
                error => Err(not_written(self.place.path, &error.into())),
            };
        }
        // Under the own name there is now what was replaced.
        if self.place.content_of(&self.name, before.len()).map_err(|error| self.unseen(&error))? == before {
            self.remove = true;
            return self.kept();
        }
        meanwhile(Moment::Displaced);
        self.give_back(after)
    }

    fn swap(&self) -> rustix::io::Result<()> {
        let dir = &self.place.dir;
        renameat_with(dir, &*self.name, dir, self.place.name, RenameFlags::EXCHANGE)
    }

    fn replace_unlocked(self) -> Result<(), ToolError> {
        let dir = &self.place.dir;
        dir.rename(&self.name, dir, self.place.name).map_err(|error| not_written(self.place.path, &error))?;
        self.kept()
    }

    /// Puts back what was replaced by mistake. What took the place meanwhile stays beside it, unless it is ours.
    fn give_back(mut self, after: &[u8]) -> Result<(), ToolError> {
        self.swap().map_err(|error| self.unseen(&not_written(self.place.path, &error.into())))?;
        let ours = self.place.content_of(&self.name, after.len()).is_ok_and(|found| found == after);
        let _ = keep(&self.place.dir);
        if ours {
            self.remove = true;
            return Err(changed(self.place.path));
        }
        Err(self.conflict("somebody changed it twice meanwhile; the second version is"))
    }

    /// Something went wrong while the file of somebody else had the temporary name.
    fn unseen(&self, error: &ToolError) -> ToolError {
        self.conflict(&format!("{}; what was there before is", error.failure.message))
    }

    fn conflict(&self, what: &str) -> ToolError {
        ToolError::in_doubt("file.conflict", format!("{}: {what} in the file {} beside it", self.place.path, self.name))
    }

    /// It is in its place; now it has to stay there.
    fn kept(self) -> Result<(), ToolError> {
        let message = |error: io::Error| format!("{} was written, but not flushed: {error}", self.place.path);
        keep(&self.place.dir).map_err(|error| ToolError::in_doubt("file.not_flushed", message(error)))
    }
}

/// Not every file system, and no kernel of old, knows the flags.
fn is_unsupported(error: Errno) -> bool {
    [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP, Errno::OPNOTSUPP].contains(&error)
}

pub(super) fn exists(path: &Below) -> ToolError {
    ToolError::did_not_happen("file.exists", format!("{path} exists already; nothing was written"))
}

fn changed(path: &Below) -> ToolError {
    let message = format!("{path} was changed by somebody else meanwhile; nothing was written. Read it again");
    ToolError::did_not_happen("file.changed", message)
}
