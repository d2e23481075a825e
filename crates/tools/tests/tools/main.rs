//! Tests of the built-in tools, through the port by which the runtime calls them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contain;
mod edit;
mod escape;
mod http;
mod list;
mod native;
mod read;
mod search;
mod shell;
mod write;

use loopd_kernel::{CallId, Digest, EffectKey, RunId};
use loopd_runtime::{CallContext, Tool, ToolError};
use loopd_tools::{FileTool, file_tools};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The surroundings of a call that nobody cancels.
fn context() -> CallContext {
    CallContext {
        run: RunId([1; 16]),
        call: CallId(1),
        key: EffectKey(Digest::default()),
        attempt: 1,
        timeout: Duration::from_secs(30),
        cancel: CancellationToken::new(),
        deltas: None,
    }
}

/// The surroundings of another call.
fn context_of(number: u64) -> CallContext {
    CallContext { key: EffectKey(Digest::of("test", &[&number.to_be_bytes()])), ..context() }
}

/// What the tool answers: its output, or `! code: message`.
async fn call(tool: &dyn Tool, args: &str) -> String {
    said(tool.call(args, &context()).await)
}

fn said(result: Result<String, ToolError>) -> String {
    result.unwrap_or_else(|error| format!("! {}: {}", error.failure.code, error.failure.message))
}

/// Waits until something is so, which it has to become by itself.
async fn until(what: impl Fn() -> bool) {
    let waiting = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("it never came to that");
}

/// A folder with files, and a folder beside it that must never be seen.
struct Folder {
    dir: TempDir,
}

impl Folder {
    fn with(files: &[(&str, &[u8])]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("docs")).unwrap();
        let folder = Self { dir };
        for (path, content) in files {
            let path = folder.root().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        folder
    }

    fn root(&self) -> std::path::PathBuf {
        self.dir.path().join("docs")
    }

    fn outside(&self) -> &Path {
        self.dir.path()
    }

    fn tool(&self, tool: FileTool) -> Arc<dyn Tool> {
        file_tools(&self.root(), &[tool]).unwrap().remove(0)
    }

    /// Every file below the root with its content, and with what else is there.
    fn seen(&self) -> String {
        fn walk(folder: &Path, root: &Path, out: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(root).unwrap().display().to_string();
                if path.is_symlink() {
                    out.push(format!("{name} -> {}", std::fs::read_link(&path).unwrap().display()));
                } else if path.is_dir() {
                    out.push(format!("{name}/"));
                    walk(&path, root, out);
                } else {
                    out.push(format!("{name}: {:?}", String::from_utf8_lossy(&std::fs::read(&path).unwrap())));
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.root(), &self.root(), &mut out);
        out.sort();
        out.iter().map(|line| format!("{line}\n")).collect()
    }

    async fn ask(&self, tool: FileTool, args: &str) -> String {
        call(self.tool(tool).as_ref(), args).await
    }
}
