//! Tests of the built-in tools, through the port by which the runtime calls them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod escape;
mod list;
mod native;
mod read;
mod search;

use loopd_kernel::{CallId, Digest, EffectKey, RunId};
use loopd_runtime::{CallContext, Tool};
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

/// What the tool answers: its output, or `! code: message`.
async fn call(tool: &dyn Tool, args: &str) -> String {
    match tool.call(args, &context()).await {
        Ok(output) => output,
        Err(error) => format!("! {}: {}", error.failure.code, error.failure.message),
    }
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

    async fn ask(&self, tool: FileTool, args: &str) -> String {
        call(self.tool(tool).as_ref(), args).await
    }
}
