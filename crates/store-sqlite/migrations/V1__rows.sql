-- Schema 1. The oldest build that may open it is the one that reads schema 1 (`user_version`).
-- Numbers of 64 bits without a sign are stored as the same bits with one.

CREATE TABLE run (
  id          INTEGER PRIMARY KEY,    -- the narrow key that everything else points to, in order of creation
  run         BLOB    NOT NULL UNIQUE,
  tenant      TEXT    NOT NULL,
  admission   TEXT,
  loop_name   TEXT    NOT NULL,
  version     TEXT    NOT NULL,
  definition  BLOB    NOT NULL,
  origin      TEXT,
  status      INTEGER NOT NULL,       -- 0 running, 1 suspended, 2 parked, 3 ended
  head        INTEGER NOT NULL,
  hash        BLOB    NOT NULL,
  epoch       INTEGER NOT NULL,
  worker      INTEGER,
  wake_at     INTEGER,
  outcome     TEXT,
  iteration   INTEGER NOT NULL,
  tokens      INTEGER NOT NULL,
  spent       INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX run_admission ON run (tenant, admission) WHERE admission IS NOT NULL;
-- Both are partial and hold no column that a step changes, so that a step dirties one page of `run` and no index.
-- `status` leads them, though it is always the same there: without it SQLite reads the whole table instead.
CREATE INDEX run_running ON run (status, worker) WHERE status = 0;
CREATE INDEX run_wake ON run (status, wake_at, worker) WHERE status = 1 AND wake_at IS NOT NULL;

-- Appended in the order of commits, not clustered by Run: many Runs then share the page that a commit writes.
CREATE TABLE entry (
  id          INTEGER PRIMARY KEY,
  run         INTEGER NOT NULL REFERENCES run (id),
  seq         INTEGER NOT NULL,
  kind        INTEGER NOT NULL,       -- the format times 65536, plus the number of the kind
  at          INTEGER NOT NULL,
  record_len  INTEGER NOT NULL,
  hash        BLOB    NOT NULL,
  body        BLOB    NOT NULL        -- 16 bytes of salt, the record, the payload
) STRICT;
CREATE UNIQUE INDEX entry_seq ON entry (run, seq);

CREATE TABLE snapshot (
  run         INTEGER PRIMARY KEY REFERENCES run (id),
  seq         INTEGER NOT NULL,
  body        BLOB    NOT NULL
) STRICT;

CREATE TABLE blob (
  id          INTEGER PRIMARY KEY,
  digest      BLOB    NOT NULL UNIQUE,
  bytes       BLOB    NOT NULL
) STRICT;

-- A taken item keeps its row, because its key stays known; only the body goes.
CREATE TABLE inbox (
  id          INTEGER PRIMARY KEY,
  run         INTEGER NOT NULL REFERENCES run (id),
  key         TEXT    NOT NULL,
  at          INTEGER NOT NULL,
  moves       INTEGER NOT NULL,       -- 1 when it moves a parked Run
  body        TEXT
) STRICT;
CREATE UNIQUE INDEX inbox_key ON inbox (run, key);
CREATE INDEX inbox_waiting ON inbox (run) WHERE body IS NOT NULL;

CREATE TABLE question (
  run         INTEGER NOT NULL REFERENCES run (id),
  id          INTEGER NOT NULL,
  asked_at    INTEGER NOT NULL,
  body        TEXT    NOT NULL,
  PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE worker (
  id          INTEGER PRIMARY KEY,
  until       INTEGER NOT NULL
) STRICT;

PRAGMA user_version = 1;
