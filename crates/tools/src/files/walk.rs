//! Going through a folder and what is below it, in the order of names.

use super::root::{Below, Root, failed};
use super::tool::Stop;
use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, FileType};
use loopd_runtime::ToolError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Levels below the folder that is walked.
pub(super) const MAX_DEPTH: u32 = 32;

/// Entries of one folder that are looked at; of more, those that come first by name.
pub(super) const MAX_ENTRIES: usize = 10_000;

/// What was left out of an answer, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    /// Links, pipes, devices and sockets.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub links_and_special: u64,
    /// Files and folders whose name begins with a dot.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hidden: u64,
    /// Files that are not UTF-8 text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_text: u64,
    /// Files that are too large.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub too_large: u64,
    /// Files and folders that may not be opened, or vanished.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreadable: u64,
    /// Folders that lie too deep.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub too_deep: u64,
    /// Names that are not UTF-8.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bad_names: u64,
    /// Entries of folders with too many of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub too_many: u64,
}

pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Skipped {
    /// True when nothing was left out.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// The entries of a folder by name, and how many more there are. Memory is bounded however many there are.
pub(super) fn entries(dir: &Dir, path: &Below, stop: &Stop) -> Result<(BTreeMap<OsString, FileType>, u64), ToolError> {
    let (mut found, mut more) = (BTreeMap::new(), 0);
    for entry in dir.entries().map_err(|error| failed(path, &error))? {
        stop.check()?;
        let entry = entry.map_err(|error| failed(path, &error))?;
        let Ok(kind) = entry.file_type() else { continue };
        found.insert(entry.file_name(), kind);
        if found.len() > MAX_ENTRIES {
            found.pop_last();
            more += 1;
        }
    }
    Ok((found, more))
}

/// Something that a walk comes by.
pub(super) struct Visited<'a> {
    pub(super) parent: &'a Dir,
    pub(super) name: &'a str,
    pub(super) path: Below,
    pub(super) kind: FileType,
}

/// How a walk is done.
pub(super) struct Walk<'a, F> {
    pub(super) stop: &'a Stop,
    /// Levels that are entered below the first folder.
    pub(super) depth: u32,
    /// Whether names that begin with a dot are visited; such folders are not entered in any case.
    pub(super) hidden: bool,
    pub(super) skipped: Skipped,
    pub(super) visit: F,
}

impl<F: FnMut(&Visited<'_>, &mut Skipped) -> Result<(), ToolError>> Walk<'_, F> {
    /// Visits everything below the folder `path`: each folder's entries in order of their names, and what is in a
    /// folder right after it.
    pub(super) fn run(&mut self, root: &Root, path: &Below) -> Result<(), ToolError> {
        let dir = root.folder(path)?;
        self.folder(&dir, path, self.depth)
    }

    fn folder(&mut self, dir: &Dir, path: &Below, depth: u32) -> Result<(), ToolError> {
        let (found, more) = entries(dir, path, self.stop)?;
        self.skipped.too_many += more;
        for (name, kind) in found {
            self.stop.check()?;
            let Some(name) = name.to_str() else {
                self.skipped.bad_names += 1;
                continue;
            };
            if !self.hidden && name.starts_with('.') {
                self.skipped.hidden += 1;
                continue;
            }
            let path = path.join(name);
            (self.visit)(&Visited { parent: dir, name, path: path.clone(), kind }, &mut self.skipped)?;
            // What is hidden has to be asked for by name.
            if kind.is_dir() && !name.starts_with('.') {
                match (depth, dir.open_dir_nofollow(name)) {
                    (0, _) => self.skipped.too_deep += u64::from(self.depth == MAX_DEPTH),
                    (_, Ok(next)) => self.folder(&next, &path, depth - 1)?,
                    (_, Err(_)) => self.skipped.unreadable += 1,
                }
            }
        }
        Ok(())
    }
}
