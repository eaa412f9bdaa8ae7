"""The answer store: keys, one answer a request, several processes, damaged files, full disks."""

import hashlib
import json
import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from helpers.answers import Reply, Request, Store, StoreError, archive, keys
from helpers.answers.store import ANSWERED, FAILED, UNUSABLE

PROMPT = [{"role": "system", "content": "Judge."}, {"role": "user", "content": "BaTiO₃"}]


def key(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def reply(name: str, state: int = ANSWERED, **fields) -> Reply:
    return Reply(key(name), state, "judge", **{"text": f"answer to {name}", "raw": "{}"} | fields)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "answers.sqlite") as store:
        yield store


def texts(store, *names):
    return [answer and answer.text for answer in store.get_many([key(name) for name in names])]


@pytest.mark.parametrize(
    "other",
    [
        Request("other", PROMPT, {"temperature": 0.0}, 0),
        Request("m", PROMPT[::-1], {"temperature": 0.0}, 0),
        Request("m", [PROMPT[0], {"role": "user", "content": "BaTiO3"}], {"temperature": 0.0}, 0),
        Request("m", [PROMPT[0], {"role": "assistant", "content": "BaTiO₃"}], {"temperature": 0.0}, 0),
        Request("m", [*PROMPT, {"role": "user", "content": ""}], {"temperature": 0.0}, 0),
        Request("m", PROMPT, {"temperature": 0.1}, 0),
        Request("m", PROMPT, {}, 0),
        Request("m", PROMPT, {"temperature": 0.0, "max_tokens": 10}, 0),
        Request("m", PROMPT, {"temperature": 0.0}, 1),
    ],
)
def test_changing_any_field_of_a_request_changes_its_key(other):
    ours, theirs = keys([Request("m", PROMPT, {"temperature": 0.0}, 0), other])
    assert ours != theirs


def test_a_key_depends_on_content_and_not_on_objects_or_order_of_fields():
    copy = [{"content": message["content"], "role": message["role"]} for message in PROMPT]
    first, second = keys([Request("m", PROMPT, {"a": 1, "b": 2}), Request("m", copy, {"b": 2, "a": 1})])
    assert first == second
    assert keys([Request("m", PROMPT)], {"m": "rules 1"}) != keys([Request("m", PROMPT)], {"m": "rules 2"})


def test_text_cannot_move_from_one_field_to_the_next():
    first = Request("m", [{"role": "user", "content": "ab"}, {"role": "user", "content": "c"}])
    second = Request("m", [{"role": "user", "content": "a"}, {"role": "user", "content": "bc"}])
    assert len(set(keys([first, second]))) == 2


def test_keys_of_passing_objects_do_not_collide():
    made = keys(Request("m", [{"role": "user", "content": str(number)}], {"n": number}) for number in range(1000))
    assert len(set(made)) == 1000


def test_a_key_is_the_hash_of_length_prefixed_fields():
    prompt = "1 7 4 1 4 4 4:" + "2" + "content" + "text" + "é" + "role" + "text" + "user"  # one message of two fields
    tail = "1 0 19 1:" + "m" + "" + '{"temperature":0.0}' + "0"  # model, identity, sampling, repeat
    digest = hashlib.sha256((prompt + tail).encode()).digest()
    assert keys([Request("m", [{"role": "user", "content": "é"}], {"temperature": 0.0})]) == [digest]


def test_an_answer_is_found_by_its_key_and_a_missing_one_is_none(store):
    store.put([reply("a"), reply("b")])
    assert texts(store, "b", "?", "a") == ["answer to b", None, "answer to a"]
    assert store.get_many([]) == []


def test_a_reply_of_no_use_gives_way_to_a_later_one_and_that_to_an_answer(store):
    store.put([reply("a", UNUSABLE, text="first"), reply("a", UNUSABLE, text="second")])
    assert store.known([key("a")]) == (set(), {key("a"): 2})
    assert texts(store, "a") == ["second"]
    store.put([reply("a", text="third"), reply("a", UNUSABLE, text="late")])
    assert store.known([key("a")]) == ({key("a")}, {})
    assert texts(store, "a") == ["third"]


def test_a_failure_is_on_record_and_never_an_answer(store):
    store.put([reply("a", FAILED, error="bad_request: no", raw='{"error": "no"}')])
    assert texts(store, "a") == [None]
    assert store.known([key("a")]) == (set(), {})
    assert list(store.query("SELECT error, raw FROM replies")) == [("bad_request: no", '{"error": "no"}')]


def test_the_first_of_two_answers_stays_and_the_second_is_counted(store):
    store.put([reply("a", text="first", cost=1.0), reply("a", text="second", cost=1.0)])
    assert texts(store, "a") == ["first"]
    assert archive.stats(store)[["answers", "surplus", "cost"]].iloc[0].tolist() == [1, 1, 2.0]


def test_looking_up_few_keys_and_scanning_for_many_find_the_same(store):
    names = [str(number) for number in range(2000)]
    store.put([reply(name, UNUSABLE if name.endswith("7") else ANSWERED) for name in names])
    everything = store.get_many([key(name) for name in names])
    assert [answer.text for answer in everything] == [f"answer to {name}" for name in names]
    assert store.get_many([key("3"), key("17")]) == [everything[3], everything[17]]
    assert store.known([key("3"), key("17")]) == ({key("3")}, {key("17"): 1})


def test_replies_are_stored_all_or_none(store):
    with pytest.raises(StoreError):
        store.put([reply("a"), reply("b", text=None)])
    assert texts(store, "a", "b") == [None, None]


def test_accepting_a_reply_makes_it_the_answer(store):
    store.put([reply("a", UNUSABLE, text="4/5"), reply("a", UNUSABLE, text="4.0"), reply("b", UNUSABLE)])
    store.accept([key("a"), key("?")])
    assert store.known([key("a"), key("b")]) == ({key("a")}, {key("b"): 1})
    assert texts(store, "a") == ["4.0"]


@pytest.mark.parametrize("text", ["", "a\0b", "🧪 \u2028", "x" * 3_000_000])
def test_any_text_survives(store, text):
    store.put([reply("a", text=text, reasoning=text, raw=text)])
    assert texts(store, "a") == [text]


def test_answers_survive_closing_and_reopening(tmp_path):
    with Store(tmp_path / "deep" / "answers.sqlite") as store:
        store.put([reply("a")])
    with Store(tmp_path / "deep" / "answers.sqlite") as store:
        assert texts(store, "a") == ["answer to a"]


def write_text(path):
    path.write_text("these are my notes, and not a database\n" * 100)


def write_other_database(path):
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE mine (x)")
    database.commit()
    database.close()


@pytest.mark.parametrize("write", [write_text, write_other_database])
def test_a_foreign_file_is_refused_by_name_and_left_alone(tmp_path, write):
    path = tmp_path / "answers.sqlite"
    write(path)
    before = path.read_bytes()
    with pytest.raises(
        StoreError, match=r"answers\.sqlite.*not an answer store: move the file away with its -wal and -shm"
    ):
        Store(path)
    assert path.read_bytes() == before


def test_a_damaged_store_is_an_error_that_names_the_file_and_the_way_out(tmp_path):
    path = tmp_path / "answers.sqlite"
    with Store(path) as store:
        store.put([reply(str(number)) for number in range(5000)])
    data = bytearray(path.read_bytes())
    data[len(data) // 4 : len(data) // 2] = b"\xff" * (len(data) // 2 - len(data) // 4)
    path.write_bytes(data)
    with (
        pytest.raises(StoreError, match=r"answers\.sqlite.*damaged: move it away with its -wal and -shm"),
        Store(path) as store,
    ):
        store.get_many([key(str(number)) for number in range(5000)])


def test_a_file_that_was_moved_without_its_log_is_missed_and_the_log_is_left_alone(tmp_path):
    path, log, kept = tmp_path / "answers.sqlite", tmp_path / "answers.sqlite-wal", tmp_path / "kept.sqlite"
    open_one = Store(path)
    open_one.put([reply("a")])
    path.rename(kept)
    before = log.read_bytes()
    assert before
    for begin in (lambda: None, path.touch):
        begin()
        with pytest.raises(
            StoreError, match=r"answers\.sqlite: is missing or empty.* put answers\.sqlite back, or move"
        ):
            Store(path)
        assert log.read_bytes() == before
    kept.rename(path)
    with Store(path) as again:
        assert texts(again, "a") == ["answer to a"]
    open_one.close()


def test_a_checkpoint_leaves_every_answer_in_the_file_itself(tmp_path):
    path, copy = tmp_path / "answers.sqlite", tmp_path / "copy.sqlite"
    with Store(path) as store, Store(path) as other:
        store.put([reply("a")])
        store.checkpoint()
        shutil.copy(path, copy)
        with Store(copy) as alone:
            assert texts(alone, "a") == ["answer to a"]
        assert (tmp_path / "answers.sqlite-wal").stat().st_size == 0
        assert texts(other, "a") == ["answer to a"]


def test_a_checkpoint_neither_waits_nor_fails_beside_readers_and_writers(tmp_path):
    with Store(tmp_path / "answers.sqlite") as store, Store(tmp_path / "answers.sqlite") as other:
        store.put([reply("a"), reply("b")])
        for reader in (store, other):
            rows = reader.query("SELECT key FROM replies")
            next(rows)
            list(other.query("BEGIN IMMEDIATE"))
            store.checkpoint()
            list(other.query("COMMIT"))
            rows.close()
        store.put([reply("c")])
        assert texts(other, "a", "c") == ["answer to a", "answer to c"]


def test_closing_leaves_every_answer_in_the_file_although_another_has_it_open(tmp_path):
    path, copy = tmp_path / "answers.sqlite", tmp_path / "copy.sqlite"
    with Store(path):
        with Store(path) as store:
            store.put([reply("a")])
        store.close()  # twice does no harm
        shutil.copy(path, copy)
    with Store(copy) as alone:
        assert texts(alone, "a") == ["answer to a"]


def test_a_folder_in_the_place_of_the_file_is_an_error_that_says_so(tmp_path):
    with pytest.raises(StoreError, match="cannot be opened"):
        Store(tmp_path)


def test_a_full_disk_loses_nothing_that_was_stored(store):
    store.put([reply("a")])
    pages = next(store.query("PRAGMA page_count"))[0]
    list(store.query(f"PRAGMA max_page_count = {pages}"))
    with pytest.raises(StoreError, match="disk is full: free some space"):
        store.put([reply(str(number), text="x" * 10_000) for number in range(100)])
    list(store.query("PRAGMA max_page_count = 1000000"))
    store.put([reply("b")])
    assert texts(store, "a", "b", "5") == ["answer to a", "answer to b", None]


WRITER = """
import sys
from helpers.answers import Reply, Store
with Store(sys.argv[1]) as store:
    for number in range(0, 300, 3):
        three = range(number, number + 3)
        store.put(Reply(bytes([n % 256, n // 256]) * 16, 1, sys.argv[2], text=str(n)) for n in three)
"""


def test_several_processes_share_a_new_store_and_no_answer_is_there_twice(tmp_path):
    path = tmp_path / "answers.sqlite"

    def run(name):
        return subprocess.run([sys.executable, "-c", WRITER, path, name], capture_output=True, text=True, check=False)

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(run, "abcd"))
    assert [process.stderr for process in done] == [""] * 4
    with Store(path) as store:
        counts = dict(store.query("SELECT state, count(*) FROM replies GROUP BY state"))
        assert counts == {1: 300, 2: 900}
        assert next(store.query("PRAGMA integrity_check"))[0] == "ok"


def test_an_export_imports_into_an_equal_store_and_twice_changes_nothing(tmp_path, store):
    raw = '{"id": "r1",  "extra": [1.50]}'
    store.put(
        [
            reply("a", raw=raw, prompt_tokens=9, cost=0.5, reasoning="why"),
            reply("b", UNUSABLE, raw=None),
            reply("c", FAILED, error="timeout: 60 s"),
        ]
    )
    assert archive.export_jsonl(store, tmp_path / "answers.jsonl") == 2
    with Store(tmp_path / "other.sqlite") as other:
        assert archive.import_jsonl(other, tmp_path / "answers.jsonl") == 2
        assert archive.import_jsonl(other, tmp_path / "answers.jsonl") == 0
        assert other.get_many([key("a"), key("b"), key("c")]) == [*store.get_many([key("a"), key("b")]), None]
        archive.export_jsonl(other, tmp_path / "again.jsonl")
        assert next(other.query("SELECT raw FROM replies WHERE state = 1"))[0] == raw
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "answers.jsonl").read_bytes()


def test_an_import_does_not_touch_answers_that_are_there(tmp_path, store):
    with Store(tmp_path / "other.sqlite") as other:
        other.put([reply("a", text="theirs"), reply("b", text="theirs")])
        archive.export_jsonl(other, tmp_path / "theirs.jsonl")
    store.put([reply("a", text="ours")])
    assert archive.import_jsonl(store, tmp_path / "theirs.jsonl") == 1
    assert texts(store, "a", "b") == ["ours", "theirs"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda fields: "{",
        lambda fields: "[]",
        lambda fields: json.dumps(fields | {"key": "abc"}),
        lambda fields: json.dumps(fields | {"key": "ab" * 31}),
        lambda fields: json.dumps(fields | {"key": None}),
        lambda fields: json.dumps(fields | {"state": 2}),
        lambda fields: json.dumps(fields | {"state": "1"}),
        lambda fields: json.dumps(fields | {"text": None}),
        lambda fields: json.dumps(fields | {"prompt_tokens": "9"}),
        lambda fields: json.dumps(fields | {"surprise": 1}),
        lambda fields: json.dumps({name: value for name, value in fields.items() if name != "model"}),
    ],
)
def test_a_bad_line_of_an_import_is_named_and_nothing_is_imported(tmp_path, store, spoil):
    store.put([reply("a"), reply("b")])
    archive.export_jsonl(store, tmp_path / "good.jsonl")
    first, second = (tmp_path / "good.jsonl").read_text().splitlines()
    (tmp_path / "bad.jsonl").write_text(f"{first}\n{spoil(json.loads(second))}\n")
    with Store(tmp_path / "other.sqlite") as other:
        with pytest.raises(StoreError, match=r"bad\.jsonl, line 2: is not a line of an answers export"):
            archive.import_jsonl(other, tmp_path / "bad.jsonl")
        assert texts(other, "a") == [None]


def test_stats_count_by_model(store):
    store.put(
        [
            reply("a", prompt_tokens=10, completion_tokens=5, cost=0.25, seconds=2.0),
            reply("b", UNUSABLE, prompt_tokens=10, completion_tokens=5, cost=0.25, seconds=4.0),
            reply("c", FAILED, error="timeout: 60 s"),
            Reply(key("d"), ANSWERED, "other", text="x"),
        ]
    )
    row = archive.stats(store).set_index("model").loc["judge"]
    assert row[["answers", "unusable", "failures", "prompt_tokens", "cost", "seconds"]].tolist() == [
        1,
        1,
        1,
        20,
        0.5,
        3.0,
    ]
