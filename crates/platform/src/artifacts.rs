//! Files in Conversations.

use crate::messages::hide;
use crate::rows::{Tries, body, put, record, request_key};
use crate::{Caller, Error, Platform};
use loopd_kernel::Digest;
use loopd_protocol::{Artifact, ArtifactId, ConversationId};
use loopd_store::{Batch, Place, Record, RecordId, StoreError, Table, Write};

impl Platform {
    /// Attaches a file, and says whether it was there already. Messages and calls then name it. The key makes it one
    /// Artifact, however often it is sent; an empty key attaches it each time.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::Invalid`] for a name that is a path, [`Error::NotFound`], [`Error::Forbidden`], and
    /// [`Error::Conflict`] `key_taken` when the key attached something else.
    pub async fn attach(
        &self,
        by: &Caller,
        conversation: ConversationId,
        key: &str,
        (name, media_type): (&str, &str),
        bytes: Vec<u8>,
    ) -> Result<(Artifact, bool), Error> {
        let limit = self.config.artifact_bytes;
        if bytes.len() > limit {
            return Err(Error::TooLarge { what: "the file", bytes: bytes.len(), limit });
        }
        let wrong =
            |c: char| c.is_control() || matches!(c, '/' | '\\' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if name.is_empty() || name.chars().count() > 200 || name.contains(wrong) || matches!(name, "." | "..") {
            return Err(Error::invalid("name", "a file's name without a path, 1 to 200 characters"));
        }
        let plain = |c: char| c.is_ascii_graphic() || c == ' ';
        if media_type.len() > 200 || !media_type.contains('/') || !media_type.chars().all(plain) {
            return Err(Error::invalid("media_type", "a media type, for example text/plain"));
        }
        let digest = Digest::sha256(&[&bytes]);
        let id = ArtifactId(self.new_id());
        let key = request_key(&by.actor, key);
        let mut tries = Tries::default();
        loop {
            let found = self.writable(by, conversation).await?;
            let before = match &key {
                Some(key) => self.by_key(Table::Artifact, found.scope(), key).await?,
                None => self.get(Table::Artifact, RecordId(id.0)).await?,
            };
            if let Some(row) = before {
                let there: Artifact = body(&row)?;
                if (there.name.as_str(), there.media_type.as_str(), &there.digest)
                    != (name, media_type, &digest.to_string())
                {
                    let detail = "the key has attached something else in this conversation";
                    return Err(Error::conflict("key_taken", detail));
                }
                let already = there.id != id;
                return Ok((there, already));
            }
            let artifact = Artifact {
                id,
                conversation,
                name: name.to_owned(),
                media_type: media_type.to_owned(),
                bytes: bytes.len() as u64,
                digest: digest.to_string(),
                by: by.actor.clone(),
                created_at: self.now(),
            };
            let row = record(Table::Artifact, RecordId(id.0), found.scope(), &artifact);
            let row = Record { key: key.clone(), ..row };
            let blob = Write::PutBlob { digest, bytes: bytes.as_slice().into() };
            let expect = vec![found.unchanged()];
            self.attempt(&mut tries, Batch { expect, writes: vec![blob, put(row, Place::Next)] }).await?;
        }
    }

    /// A file and its bytes.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn artifact(&self, by: &Caller, id: ArtifactId) -> Result<(Artifact, Vec<u8>), Error> {
        let row = self.get(Table::Artifact, RecordId(id.0)).await?.ok_or_else(|| Error::not_found("artifact", id))?;
        let artifact: Artifact = body(&row)?;
        let found = self.readable(by, artifact.conversation).await;
        found.map_err(|error| hide(error, "artifact", id))?;
        let digest = serde_json::Value::String(artifact.digest.clone());
        let digest: Digest = serde_json::from_value(digest).map_err(|_| corrupt(id))?;
        let bytes = self.store.blob(digest).await?.ok_or_else(|| corrupt(id))?;
        if Digest::sha256(&[&bytes]) != digest {
            return Err(corrupt(id));
        }
        Ok((artifact, bytes))
    }
}

fn corrupt(id: ArtifactId) -> Error {
    StoreError::Corrupt(format!("{id}: its bytes are not those that were attached")).into()
}
