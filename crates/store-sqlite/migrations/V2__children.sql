-- Schema 2. An older build refuses it (`user_version`): it would take items and leave them listed as waiting, look at no
-- cap in bytes, claim Runs of a version that it cannot drive, and list a child without its parent.

ALTER TABLE run ADD COLUMN parent BLOB;    -- the identity of the Run that started it, which may live elsewhere
CREATE INDEX run_parent ON run (parent) WHERE parent IS NOT NULL;

-- What a waiting item counts for; 0 once it was taken. Items from before count for the length of their JSON, which is
-- at least that of their texts.
ALTER TABLE inbox ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
UPDATE inbox SET size = 64 + length(CAST(body AS BLOB)) WHERE body IS NOT NULL;
-- It holds all that adding and claiming ask about what waits, so that neither reads a body. `size` says what waits,
-- though `body` would too: a column that the index lacks would send both to the table.
DROP INDEX inbox_waiting;
CREATE INDEX inbox_waiting ON inbox (run, id, size, moves) WHERE size > 0;
-- A client of schema 1 that had the file open all along knows of no size: without this its items would never be seen.
CREATE TRIGGER inbox_size AFTER INSERT ON inbox WHEN NEW.size = 0 AND NEW.body IS NOT NULL
BEGIN UPDATE inbox SET size = 64 + length(CAST(body AS BLOB)) WHERE id = NEW.id; END;

PRAGMA user_version = 2;
