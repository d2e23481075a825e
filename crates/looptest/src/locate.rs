//! Where a test's files are.

use std::path::{Path, PathBuf};

/// The file that a test names: as it stands, else in the package of the test, else beside its source.
///
/// cargo and nextest run a test in the root of its package and set `CARGO_MANIFEST_DIR`; other runners may start
/// it elsewhere.
pub(crate) fn find(path: &Path, caller: &str) -> Result<PathBuf, String> {
    let mut tried = vec![path.to_path_buf()];
    tried.extend(std::env::var_os("CARGO_MANIFEST_DIR").map(|root| Path::new(&root).join(path)));
    // The compiler's name of the source file is relative to the workspace, which may be any folder above.
    let sources = Path::new(caller).ancestors().skip(1).map(|folder| folder.join(path));
    tried.extend(sources.filter(|candidate| candidate.is_absolute()));
    if let Some(found) = tried.iter().find(|candidate| candidate.is_file()) {
        return Ok(found.clone());
    }
    let tried: Vec<String> = tried.iter().map(|candidate| candidate.display().to_string()).collect();
    Err(format!("there is no {}; looked for {}", path.display(), tried.join(", ")))
}

/// The place of a file that may not exist yet: the package of the test.
pub(crate) fn place(path: &Path) -> PathBuf {
    match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(root) if path.is_relative() => Path::new(&root).join(path),
        _ => path.to_path_buf(),
    }
}
