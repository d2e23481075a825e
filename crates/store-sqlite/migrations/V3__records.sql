-- Schema 3. An older build refuses it (`user_version`): what a step changes may now come with Records and Feed items in
-- the same Batch, and a build that knows of none would go on with the Run and never tell those who watch it.

CREATE TABLE record (
  id          INTEGER PRIMARY KEY,    -- the narrow key that `record_words` points to
  tbl         INTEGER NOT NULL,       -- the number of the table
  rid         BLOB    NOT NULL,
  scope       BLOB    NOT NULL,
  place       INTEGER NOT NULL,       -- less 2^63, so that the order is that of numbers without a sign
  key         TEXT,
  due         INTEGER,
  rev         INTEGER NOT NULL,
  words       INTEGER NOT NULL,       -- 1 when `record_words` has a row for it
  body        BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX record_identity ON record (tbl, rid);
CREATE INDEX record_list ON record (tbl, scope, place, rid);
-- The key comes before the scope: what is unique is the same, and a Touch finds a key in every scope.
CREATE UNIQUE INDEX record_key ON record (tbl, key, scope) WHERE key IS NOT NULL;
CREATE INDEX record_due ON record (tbl, due, rid) WHERE due IS NOT NULL;

-- The words of Records, and for each Record one token that names its table and scope, so that a search reads nothing of
-- other scopes. We split texts into words ourselves, and this tokenizer changes none of them: it takes every byte beyond
-- ASCII for a part of a word. The text is not kept; nobody reads it here.
CREATE VIRTUAL TABLE record_words USING fts5 (
  words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);

-- The last number that was given for a place. It outlives the Records.
CREATE TABLE record_number (
  tbl         INTEGER NOT NULL,
  scope       BLOB    NOT NULL,
  last        INTEGER NOT NULL,
  PRIMARY KEY (tbl, scope)
) STRICT, WITHOUT ROWID;

CREATE TABLE feed (
  id          INTEGER PRIMARY KEY,
  kind        INTEGER NOT NULL,
  fid         BLOB    NOT NULL,
  head        INTEGER NOT NULL        -- the last position that was given; it outlives the items
) STRICT;
CREATE UNIQUE INDEX feed_identity ON feed (kind, fid);

-- Like `entry`: in the order of commits, so that many Feeds share the page that a commit writes.
CREATE TABLE feed_item (
  id          INTEGER PRIMARY KEY,
  feed        INTEGER NOT NULL REFERENCES feed (id),
  position    INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  place       INTEGER,                -- of the Record that it tells of, like `rev`; less 2^63
  rev         INTEGER,
  body        BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX feed_position ON feed_item (feed, position);

CREATE TABLE counter (
  name        TEXT    NOT NULL PRIMARY KEY,
  value       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 3;
