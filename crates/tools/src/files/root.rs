//! The root and the way from it to a file, one component at a time.

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, FileType, OpenOptions};
use loopd_runtime::ToolError;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// Components of a path; deeper trees are built to exhaust somebody.
const MAX_COMPONENTS: usize = 64;

/// Bytes of a path.
const MAX_PATH: usize = 4096;

/// Why a root cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// There is nothing of this name.
    #[error("the folder {} does not exist", root.display())]
    NotFound {
        /// The root as it was given.
        root: PathBuf,
    },
    /// It is a file or something else.
    #[error("{} is not a folder", root.display())]
    NotAFolder {
        /// The root as it was given.
        root: PathBuf,
    },
    /// It may not be opened.
    #[error("the folder {} may not be opened", root.display())]
    Denied {
        /// The root as it was given.
        root: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Anything else.
    #[error("the folder {} cannot be opened", root.display())]
    Io {
        /// The root as it was given.
        root: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

/// An open folder that is all the tools can see.
#[derive(Debug)]
pub(crate) struct Root {
    dir: Dir,
}

/// A checked path below the root: its components, joined by `/` for people. Empty is the root itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Below(Vec<String>);

impl Root {
    pub(crate) fn open(root: &Path) -> Result<Self, RootError> {
        let named = || root.to_path_buf();
        match Dir::open_ambient_dir(root, ambient_authority()) {
            Ok(dir) => Ok(Self { dir }),
            Err(source) => Err(match source.kind() {
                ErrorKind::NotFound => RootError::NotFound { root: named() },
                ErrorKind::NotADirectory => RootError::NotAFolder { root: named() },
                ErrorKind::PermissionDenied => RootError::Denied { root: named(), source },
                _ => RootError::Io { root: named(), source },
            }),
        }
    }

    /// Opens a folder below the root.
    pub(crate) fn folder(&self, path: &Below) -> Result<Dir, ToolError> {
        self.walk(&path.0, path)
    }

    /// Opens a regular file below the root.
    pub(crate) fn file(&self, path: &Below) -> Result<File, ToolError> {
        let (dir, name) = self.parents(path)?;
        open_file(&dir, name, path)
    }

    /// Opens the folder that `path` lies in, and makes what is missing on the way. Returns the name within it, too.
    pub(crate) fn make_parents<'a>(&self, path: &'a Below) -> Result<(Dir, &'a str), ToolError> {
        let (name, parents) = path.split().ok_or_else(|| is_a_folder(path))?;
        let mut dir = self.walk(&[], path)?;
        for parent in parents {
            dir = match dir.open_dir_nofollow(parent) {
                Ok(next) => next,
                Err(error) if error.kind() == ErrorKind::NotFound => make_folder(&dir, parent, path)?,
                Err(error) => return Err(why_no_folder(&dir, parent, path, &error)),
            };
        }
        Ok((dir, name))
    }

    /// Opens the folder that `path` lies in. Returns the name within it, too.
    pub(crate) fn parents<'a>(&self, path: &'a Below) -> Result<(Dir, &'a str), ToolError> {
        let (name, parents) = path.split().ok_or_else(|| is_a_folder(path))?;
        Ok((self.walk(parents, path)?, name))
    }

    /// Walks down `names`, the beginning of `path`, without following a link.
    fn walk(&self, names: &[String], path: &Below) -> Result<Dir, ToolError> {
        let mut dir = self.dir.try_clone().map_err(|error| failed(path, &error))?;
        for name in names {
            dir = match dir.open_dir_nofollow(name) {
                Ok(next) => next,
                Err(error) => return Err(why_no_folder(&dir, name, path, &error)),
            };
        }
        Ok(dir)
    }
}

/// Makes the folder `name` of `dir`, and sees to it that it stays. Somebody else may have made it meanwhile.
fn make_folder(dir: &Dir, name: &str, path: &Below) -> Result<Dir, ToolError> {
    match dir.create_dir(name) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(not_written(path, &error)),
        Ok(()) | Err(_) => {}
    }
    let made = dir.open_dir_nofollow(name).map_err(|error| why_no_folder(dir, name, path, &error))?;
    keep(dir).map_err(|error| not_written(path, &error))?;
    Ok(made)
}

/// Flushes the names of a folder to the disk.
pub(crate) fn keep(dir: &Dir) -> io::Result<()> {
    dir.open(".")?.sync_all()
}

/// Opens the regular file `name` of `dir`.
pub(crate) fn open_file(dir: &Dir, name: &str, path: &Below) -> Result<File, ToolError> {
    open_regular(dir, name, path, false)
}

/// The same, and only when it may be written, too. Nothing is changed by that.
pub(crate) fn open_writable(dir: &Dir, name: &str, path: &Below) -> Result<File, ToolError> {
    open_regular(dir, name, path, true)
}

fn open_regular(dir: &Dir, name: &str, path: &Below, writable: bool) -> Result<File, ToolError> {
    // Asked before opening, because opening a device may already do something.
    let kind = dir.symlink_metadata(name).map_err(|error| failed(path, &error))?.file_type();
    regular(kind, path)?;
    let mut options = OpenOptions::new();
    // Non-blocking: a pipe put here meanwhile must not hold the thread.
    options.read(true).write(writable).follow(FollowSymlinks::No).nonblock(true);
    let why = if writable { not_written } else { failed };
    let file = dir.open_with(name, &options).map_err(|error| why(path, &error))?;
    // Asked again of what was opened: only this answer cannot be outrun.
    let kind = file.metadata().map_err(|error| failed(path, &error))?.file_type();
    regular(kind, path)?;
    Ok(file)
}

fn regular(kind: FileType, path: &Below) -> Result<(), ToolError> {
    if kind.is_file() {
        Ok(())
    } else if kind.is_dir() {
        Err(is_a_folder(path))
    } else if kind.is_symlink() {
        Err(is_a_link(path))
    } else {
        Err(error("file.special", format!("{path} is a pipe, a device or a socket, which is not read")))
    }
}

/// What stands in the way: asked afterwards, and only to say it.
fn why_no_folder(dir: &Dir, name: &str, path: &Below, source: &io::Error) -> ToolError {
    match dir.symlink_metadata(name) {
        Ok(found) if found.file_type().is_symlink() => is_a_link(path),
        Ok(found) if !found.file_type().is_dir() => {
            let what =
                if path.0.last().is_some_and(|last| last == name) { String::new() } else { format!("{name} in ") };
            error("file.not_a_folder", format!("{what}{path} is not a folder"))
        }
        Ok(_) => failed(path, source),
        Err(missing) => failed(path, &missing),
    }
}

fn error(code: &str, message: String) -> ToolError {
    ToolError::did_not_happen(code, message)
}

fn is_a_folder(path: &Below) -> ToolError {
    error("file.is_a_folder", format!("{path} is a folder; list it"))
}

fn is_a_link(path: &Below) -> ToolError {
    error("file.link", format!("{path} leads through a link, which is not followed"))
}

/// The error of the operating system as one that a model can act on.
pub(crate) fn failed(path: &Below, source: &io::Error) -> ToolError {
    match source.kind() {
        ErrorKind::NotFound => error("file.not_found", format!("{path} does not exist")),
        ErrorKind::NotADirectory => error("file.not_a_folder", format!("{path} is not a folder")),
        ErrorKind::PermissionDenied => error("file.denied", format!("{path} may not be read")),
        _ => error("file.io", format!("{path} cannot be read: {source}")),
    }
}

/// The same of what was to be written.
pub(crate) fn not_written(path: &Below, source: &io::Error) -> ToolError {
    match source.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            error("file.denied", format!("{path} may not be written"))
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            error("file.no_space", format!("{path} was not written: {source}"))
        }
        ErrorKind::NotFound | ErrorKind::NotADirectory => failed(path, source),
        _ => error("file.io", format!("{path} was not written: {source}")),
    }
}

impl Below {
    /// The name, and the folders on the way to it; `None` for the root itself.
    pub(crate) fn split(&self) -> Option<(&str, &[String])> {
        self.0.split_last().map(|(name, parents)| (name.as_str(), parents))
    }

    /// Checks a path that a model wrote.
    pub(crate) fn parse(text: &str) -> Result<Self, ToolError> {
        let invalid = |why: &str| Err(error("file.invalid_path", why.into()));
        if text.len() > MAX_PATH || text.contains('\0') {
            return invalid("a path has at most 4096 bytes and no NUL");
        }
        let mut names = Vec::new();
        for component in Path::new(text).components() {
            match component {
                Component::CurDir => {}
                Component::Normal(name) => match name.to_str() {
                    Some(name) => names.push(name.to_owned()),
                    None => return invalid("a path is UTF-8 text"),
                },
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    let message = "paths are relative to the folder of the tool, without `..`";
                    return Err(error("file.outside", message.into()));
                }
            }
        }
        if names.len() > MAX_COMPONENTS {
            return invalid("a path has at most 64 components");
        }
        Ok(Self(names))
    }

    /// The path of the entry `name` of this folder.
    pub(crate) fn join(&self, name: &str) -> Self {
        let mut names = self.0.clone();
        names.push(name.into());
        Self(names)
    }
}

impl fmt::Display for Below {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str(".") } else { f.write_str(&self.0.join("/")) }
    }
}
