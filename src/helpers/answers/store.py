"""The store of every answer ever received: one SQLite file for all runs, keyed by the content of the request.

Nothing here knows what an answer means. A reply is kept as it came, beside its text and its costs; parsing happens on
read, so that a better parser needs no new answer. What a server said instead of an answer is kept for the record, is
never handed out, and is asked again. An answer of 1.5 kB takes about 4 kB on disk.
"""

from __future__ import annotations

import gc
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Self

from helpers.answers.requests import Request, keys

__all__ = ["Answer", "Reply", "Request", "Store", "StoreError", "keys"]

ANSWERED, UNUSABLE, FAILED, SURPLUS = 1, 0, -1, 2
APPLICATION_ID = 0x504C554D  # "PLUM"
LOCK_SECONDS = 60.0
KEYS_PER_SELECT = 500
ROWS_A_BUNCH = 1_000
PAGES_A_CHECKPOINT = 4_000
TABLES = """
CREATE TABLE IF NOT EXISTS replies (
    id INTEGER PRIMARY KEY, key BLOB NOT NULL, state INTEGER NOT NULL, model TEXT NOT NULL, requested_model TEXT,
    cost REAL, attempts INTEGER NOT NULL, started REAL NOT NULL, seconds REAL NOT NULL, error TEXT, served_model TEXT,
    finish_reason TEXT, prompt_tokens INTEGER, completion_tokens INTEGER, text TEXT NOT NULL, reasoning TEXT,
    refusal TEXT, raw TEXT) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS answered ON replies (key) WHERE state = 1;
CREATE INDEX IF NOT EXISTS unanswered ON replies (key) WHERE state <= 0;
CREATE TABLE IF NOT EXISTS written (key BLOB PRIMARY KEY, model TEXT NOT NULL) STRICT, WITHOUT ROWID;
"""
ADVICE = {
    "SQLITE_FULL": "the disk is full: free some space and run again, every answer stored so far is kept",
    "SQLITE_NOTADB": (
        "this is not an answer store: move the file away with its -wal and -shm files, and a new store is begun"
    ),
    "SQLITE_CORRUPT": (
        "the file is damaged: move it away with its -wal and -shm files, "
        "and import your last `plumbline answers` export"
    ),
    "SQLITE_BUSY": "another program keeps the file locked: end that program and run again",
    "SQLITE_READONLY": "the file or its folder is read-only: change its permissions",
    "SQLITE_CANTOPEN": "the file cannot be opened: it must be a file in a folder that can be written to",
}


class StoreError(RuntimeError):
    """A store that cannot be read or written; names the file, the trouble and the way out."""


class Answer(NamedTuple):
    """A stored reply. `usable` says that a verdict, or whatever was asked for, could be read from it on arrival."""

    key: bytes
    usable: bool
    text: str
    reasoning: str | None = None
    refusal: str | None = None
    finish_reason: str | None = None
    requested_model: str | None = None
    served_model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None


class Reply(NamedTuple):
    """All that is stored of one exchange: an answer (`state` 1), a reply of no use (0) or a failure (-1).

    `started` is in seconds since 1970, `cost` in the currency of the models file or None where it is not known.
    """

    key: bytes
    state: int
    model: str
    requested_model: str | None = None
    cost: float | None = None
    attempts: int = 1
    started: float = 0.0
    seconds: float = 0.0
    error: str | None = None
    served_model: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    text: str = ""
    reasoning: str | None = None
    refusal: str | None = None
    raw: str | None = None


COLUMNS = ", ".join(Reply._fields)
# A second run may have answered the same request meanwhile: the first answer stays the answer, the other is recorded.
PUT = f"""INSERT INTO replies ({COLUMNS}) SELECT ?1,
    CASE WHEN ?2 = 1 AND EXISTS (SELECT 1 FROM replies WHERE key = ?1 AND state = 1) THEN {SURPLUS} ELSE ?2 END,
    {", ".join(f"?{n}" for n in range(3, len(Reply._fields) + 1))}"""
ADD = f"""INSERT INTO replies ({COLUMNS}) SELECT {", ".join(f"?{n}" for n in range(1, len(Reply._fields) + 1))}
    WHERE NOT EXISTS (SELECT 1 FROM replies WHERE key = ?1 AND state = 1)
    AND NOT EXISTS (SELECT 1 FROM replies WHERE key = ?1 AND state <= 0 AND state = ?2 AND text = ?14 AND raw IS ?17)"""
ANSWER = ", ".join(Answer._fields).replace("usable", "state = 1")
KEY = itemgetter(0)


_FOUND: list[tuple[int, int, int]] = []  # one for all, so that the last use to end restores what the first one found


@contextmanager
def uncollected(but_every: int = 0) -> Iterator[None]:
    """Look for garbage never, or every so many new objects, while many are made that are none: half the time."""
    _FOUND.append(gc.get_threshold())
    gc.set_threshold(but_every, *_FOUND[0][1:])
    try:
        yield
    finally:
        gc.set_threshold(*_FOUND.pop())


class Store:
    """The file of answers. Several processes may use it at once; each opens its own `Store`, in one thread.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "answers.sqlite") as store:
    ...     store.put([Reply(b"k" * 32, 1, "judge", text="4.5")])
    ...     [answer and answer.text for answer in store.get_many([b"k" * 32, b"?" * 32])]
    ['4.5', None]
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._check_whole()
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=LOCK_SECONDS, isolation_level=None)
            # In one statement, since another process may be making the tables right now.
            both = "SELECT application_id, (SELECT count(*) FROM sqlite_master) FROM pragma_application_id"
            owner, tables = self._db.execute(both).fetchone()
            if owner != APPLICATION_ID and (owner or tables):
                raise StoreError(f"{self.path}: {ADVICE['SQLITE_NOTADB']}")
            self._db.execute("PRAGMA page_size = 8192")
            self._write_ahead()
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(f"PRAGMA wal_autocheckpoint = {PAGES_A_CHECKPOINT}")
        with self._transaction():
            for statement in filter(str.strip, TABLES.split(";")):
                self._db.execute(statement)
            if owner != APPLICATION_ID:
                self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    def _check_whole(self) -> None:
        log = Path(f"{self.path}-wal")
        # In this order: a process that is just beginning the file writes to the log last.
        if _size(log) and not _size(self.path):
            raise StoreError(
                f"{self.path}: is missing or empty, and {log.name} beside it may hold its latest answers: "
                f"put {self.path.name} back, or move {log.name} away too and a new store is begun"
            )

    def _write_ahead(self) -> None:
        # The one statement that does not wait for another process that is just beginning the same file.
        patience = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > patience:
                    raise
                time.sleep(0.01)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, with everything in it that was put."""
        self.checkpoint()
        self._db.close()

    def checkpoint(self) -> None:
        """Move what was put from the -wal file into the file itself, as far as other readers allow, without waiting."""
        # What cannot be moved now is safe where it is, and SQLite will move it.
        with suppress(sqlite3.Error):
            self._db.execute("PRAGMA busy_timeout = 0")
            try:
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                self._db.execute(f"PRAGMA busy_timeout = {LOCK_SECONDS * 1_000:.0f}")

    def put(self, replies: Iterable[Reply]) -> None:
        """Store replies in one transaction: all of them are on the file when this returns, or none and an error."""
        with self._transaction():
            self._db.executemany(PUT, replies)

    def add(self, replies: Iterable[Reply]) -> int:
        """Store, in one transaction, the replies that are not there yet, and return how many they were."""
        with self._transaction():
            return self._db.executemany(ADD, replies).rowcount

    def accept(self, keys: Iterable[bytes]) -> None:
        """Make the last reply of each key its answer, because a verdict could now be read from it."""
        latest = "SELECT max(id) FROM replies WHERE key = ? AND state <= 0 AND state = 0"
        with self._transaction():
            self._db.executemany(f"UPDATE OR IGNORE replies SET state = 1 WHERE id = ({latest})", ((k,) for k in keys))

    def known(self, keys: Sequence[bytes]) -> tuple[set[bytes], dict[bytes, int]]:
        """Return the keys that have an answer, and for the others how many replies of no use they got."""
        answered = {key for rows in self._select("key", ANSWERED, keys) for (key,) in rows}
        asked = Counter(key for rows in self._select("key", UNUSABLE, keys) for (key,) in rows if key not in answered)
        return answered, asked

    def get_many(self, keys: Sequence[bytes]) -> list[Answer | None]:
        """Return what is stored for each key: its answer, else its last reply of no use, else None."""
        wanted = set(keys)
        found: dict[bytes, Answer] = {}
        with uncollected():
            for state in (UNUSABLE, ANSWERED):  # an answer takes the place of a reply of no use
                for rows in self._select(ANSWER, state, keys):
                    rows = [row for row in rows if row[0] in wanted]
                    found.update(zip(map(KEY, rows), map(Answer._make, rows), strict=True))
            return [found.get(key) for key in keys]

    def mark(self, names: Mapping[bytes, str]) -> None:
        """Note which model the requests in a batch file are for."""
        with self._transaction():
            self._db.executemany("INSERT OR IGNORE INTO written VALUES (?, ?)", names.items())

    def query(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Read rows with a query of your own; the table `replies` has the columns of `Reply`, and `id`."""
        for rows in self._bunches(sql, values):
            yield from rows

    def _select(self, columns: str, state: int, keys: Sequence[bytes]) -> Iterator[list[tuple[Any, ...]]]:
        # One scan is as fast as a look-up of an eighth of the rows; below that the keys are looked up in bunches.
        # SQLite uses an index of some rows only for a query that says which they are.
        index, where = ("answered", "state = 1") if state == ANSWERED else ("unanswered", "state <= 0 AND state = 0")
        ((rows,),) = self.query("SELECT ifnull(max(id), 0) FROM replies")
        if len(keys) * 8 > rows:
            source = "NOT INDEXED" if state == ANSWERED and columns != "key" else f"INDEXED BY {index}"
            yield from self._bunches(f"SELECT {columns} FROM replies {source} WHERE {where}", ())
            return
        for start in range(0, len(keys), KEYS_PER_SELECT):
            asked = keys[start : start + KEYS_PER_SELECT]
            among = f"{where} AND key IN ({', '.join('?' * len(asked))})"
            yield from self._bunches(
                f"SELECT {columns} FROM replies INDEXED BY {index} WHERE {among} ORDER BY id", asked
            )

    def _bunches(self, sql: str, values: Sequence[Any]) -> Iterator[list[tuple[Any, ...]]]:
        with self._explained():
            cursor = self._db.execute(sql, values)
            while rows := cursor.fetchmany(ROWS_A_BUNCH):
                yield rows

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._explained():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            name = getattr(error, "sqlite_errorname", "")
            advice = next((text for code, text in ADVICE.items() if name.startswith(code)), "see the message")
            raise StoreError(f"{self.path}: {error} ({advice})") from None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it is not there, or what is wrong with it is told on opening it
        return 0
