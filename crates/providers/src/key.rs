//! Keys of providers: read from where the configuration says, shown nowhere.

use std::fmt;
use std::path::{Path, PathBuf};

/// A key. Its `Debug` form does not show it, and it has no other.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// Why there is no key. It says where one was looked for, never what was found.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The environment variable does not exist or is empty.
    #[error("no API key: set the environment variable {0}")]
    Variable(String),
    /// The file cannot be read.
    #[error("no API key: {} cannot be read", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is empty.
    #[error("no API key: {} is empty", .0.display())]
    EmptyFile(PathBuf),
}

impl ApiKey {
    /// A key. White space around it is an accident of files and shells.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The key in the environment variable `name`, read through `lookup`.
    ///
    /// # Errors
    /// [`KeyError::Variable`].
    pub fn from_variable(name: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, KeyError> {
        let key = lookup(name).map(|text| Self::new(&text));
        key.filter(|key| !key.0.is_empty()).ok_or_else(|| KeyError::Variable(name.to_owned()))
    }

    /// The key in the file at `path`.
    ///
    /// # Errors
    /// [`KeyError::File`] and [`KeyError::EmptyFile`].
    pub fn from_file(path: &Path) -> Result<Self, KeyError> {
        let text = std::fs::read_to_string(path).map_err(|source| KeyError::File { path: path.to_owned(), source })?;
        let key = Self::new(&text);
        if key.0.is_empty() { Err(KeyError::EmptyFile(path.to_owned())) } else { Ok(key) }
    }

    /// The key itself, for the header of a request.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey([secret])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_and_never_shown() {
        let lookup = |name: &str| match name {
            "KEY" => Some(" sk-1\n".to_owned()),
            "EMPTY" => Some(" ".to_owned()),
            _ => None,
        };
        let key = ApiKey::from_variable("KEY", &lookup).expect("a key");
        assert_eq!((key.reveal(), format!("{key:?}")), ("sk-1", "ApiKey([secret])".to_owned()));
        for name in ["EMPTY", "MISSING"] {
            let error = ApiKey::from_variable(name, &lookup).expect_err("no key");
            assert_eq!(error.to_string(), format!("no API key: set the environment variable {name}"));
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        std::fs::write(&path, "sk-2\n").expect("written");
        assert_eq!(ApiKey::from_file(&path).expect("a key").reveal(), "sk-2");
        std::fs::write(&path, "\n").expect("written");
        assert!(matches!(ApiKey::from_file(&path), Err(KeyError::EmptyFile(_))));
        assert!(matches!(ApiKey::from_file(&folder.path().join("none")), Err(KeyError::File { .. })));
    }
}
