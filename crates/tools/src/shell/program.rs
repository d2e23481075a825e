//! Which program is meant, and where it is.

use super::ShellConfig;
use loopd_runtime::ToolError;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Characters of a wrong name that an error shows.
const SHOWN: usize = 100;

/// True for a name without `/` and for an absolute path.
pub(super) fn is_listable(program: &str) -> bool {
    let odd = program.is_empty() || program.contains('\0') || [".", ".."].contains(&program);
    !odd && (!program.contains('/') || program.starts_with('/'))
}

/// The file of a program that is on the list under exactly this name.
pub(super) fn find(name: &str, config: &ShellConfig) -> Result<PathBuf, ToolError> {
    if !config.programs.iter().any(|listed| listed == name) {
        let shown: String = name.chars().take(SHOWN).collect();
        let list = config.programs.join(", ");
        let message = format!("`{shown}` may not be run; the programs are {list}");
        return Err(ToolError::did_not_happen("shell.not_allowed", message));
    }
    let found = if name.starts_with('/') {
        Some(PathBuf::from(name)).filter(|path| is_executable(path))
    } else {
        let folders = config.env.get("PATH").map(std::env::split_paths).into_iter().flatten();
        // A relative folder would be one that the model can write to.
        folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(name)).find(|path| is_executable(path))
    };
    found.ok_or_else(|| {
        ToolError::did_not_happen("shell.not_found", format!("the program `{name}` is not on this machine"))
    })
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
