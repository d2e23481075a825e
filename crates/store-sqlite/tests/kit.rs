//! The conformance kit on the SQLite store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use async_trait::async_trait;
use loopd_kernel::{RunId, Seq};
use loopd_store::StoreError;
use loopd_store::kit::{Features, Handle, Subject};
use loopd_store_sqlite::SqliteStore;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

struct File(TempDir);

impl File {
    fn fresh() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("loopd.db")
    }
}

#[async_trait]
impl Subject for File {
    fn features(&self) -> Features {
        Features { durable: true, clients: true, damage: true }
    }

    async fn open(&self) -> Result<Handle, StoreError> {
        Ok(Arc::new(SqliteStore::open_driver(self.path())?))
    }

    async fn client(&self) -> Result<Handle, StoreError> {
        Ok(Arc::new(SqliteStore::open_client(self.path())?))
    }

    async fn damage(&self, run: RunId, seq: Seq) -> Result<(), StoreError> {
        let conn = rusqlite::Connection::open(self.path()).unwrap();
        let of = "WHERE run = (SELECT id FROM run WHERE run = ?1) AND seq = ?2";
        let key = rusqlite::params![run.0, seq.0 as i64];
        let body = conn.query_row(&format!("SELECT body FROM entry {of}"), key, |row| row.get(0));
        let mut body: Vec<u8> = body.unwrap();
        *body.last_mut().unwrap() ^= 1;
        let changed =
            conn.execute(&format!("UPDATE entry SET body = ?3 {of}"), rusqlite::params![run.0, seq.0 as i64, body]);
        assert_eq!(changed.unwrap(), 1);
        Ok(())
    }
}

mod sqlite {
    loopd_store::conformance!(super::File::fresh());
}
