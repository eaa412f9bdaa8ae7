"""Batch files out, results in: any order, any part, any shape."""

import json
import types
from pathlib import Path

import pytest

from helpers import judges
from helpers.answers import Request, Store
from helpers.judges import Model, batch
from helpers.judges.planning import plan
from tests.server import Reply, Server, completion

MODELS = {
    name: Model(
        name=name, base_url="http://127.0.0.1:9/v1", model=name.upper(), price_prompt=1.0, price_completion=10.0
    )
    for name in ("a", "b/c")
} | {"surface": Model(name="surface", kind="rules")}


def rows(count, model="a", **sampling):
    return [Request(model, [{"role": "user", "content": f"q{number}"}], sampling) for number in range(count)]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(judges, "rules", types.SimpleNamespace(fingerprint=lambda: "1"), raising=False)
    with Store(tmp_path / "answers.sqlite") as store:
        yield store


def lines(frame):
    return [json.loads(line) for file in frame["file"] for line in Path(file).read_text().splitlines()]


def result(line, text="4", status=200, **fields):
    response = {"status_code": status, "request_id": "r", "body": completion(text)}
    return json.dumps(
        {"id": "batch_req_1", "custom_id": line["custom_id"], "response": response, "error": None} | fields
    )


def texts(store, requests):
    return [answer and answer.text for answer in store.get_many(judges.keys(requests, MODELS))]


def test_a_request_line_has_the_agreed_shape(tmp_path, store):
    (line,) = lines(batch.write(rows(1, temperature=0.0, max_tokens=200), tmp_path / "out", models=MODELS, store=store))
    body = {"model": "A", "messages": [{"role": "user", "content": "q0"}], "temperature": 0.0, "max_tokens": 200}
    assert line == {"custom_id": line["custom_id"], "method": "POST", "url": "/v1/chat/completions", "body": body}
    assert len(line["custom_id"]) <= 64


def test_files_hold_one_model_and_keep_to_the_limits(tmp_path, store):
    requests = rows(10) + rows(3, "b/c") + rows(5, "surface") + rows(10)
    files = batch.write(requests, tmp_path / "out", models=MODELS, store=store, most_lines=4)
    assert files["requests"].tolist() == [4, 4, 2, 3]
    assert [file.rsplit("/", 1)[1] for file in files["file"]] == [
        "a-001.jsonl",
        "a-002.jsonl",
        "a-003.jsonl",
        "b_c-001.jsonl",
    ]
    assert [line["body"]["model"] for line in lines(files)] == ["A"] * 10 + ["B/C"] * 3
    small = batch.write(rows(10), tmp_path / "small", models=MODELS, store=store, most_bytes=500)
    assert small["requests"].sum() == 10
    assert (small["megabytes"] <= 0.0005).all()


def test_what_is_answered_is_not_written_again(tmp_path, store):
    first = batch.write(rows(4), tmp_path / "out", models=MODELS, store=store)
    (tmp_path / "results.jsonl").write_text("\n".join(result(line) for line in lines(first)[1:]))
    batch.read([tmp_path / "results.jsonl"], models=MODELS, store=store)
    store.accept(judges.keys(rows(4), MODELS))
    again = batch.write(rows(4), tmp_path / "again", models=MODELS, store=store)
    assert [line["custom_id"] for line in lines(again)] == [lines(first)[0]["custom_id"]]
    nothing = batch.write([], tmp_path / "nothing", models=MODELS, store=store)
    assert len(nothing) == 0


async def test_results_in_any_order_part_and_shape_are_joined_and_the_run_goes_on(tmp_path, store):
    requests = rows(10)
    asked = lines(batch.write(requests, tmp_path / "out", models=MODELS, store=store))
    failed_in_body = {"response": {"status_code": 400, "body": {"error": {"message": "too long", "code": 400}}}}
    failed_beside = {
        "response": {"status_code": 400, "request_id": "vllm-1", "body": None},
        "error": "maximum context length",
    }
    expired = {"response": None, "error": {"code": "batch_expired", "message": "not in time"}}
    empty = {"response": {"status_code": 0, "request_id": "", "body": {}}, "error": None}
    stranger = {"custom_id": "ab" * 32}
    torn = result(asked[7])[:-40]
    (tmp_path / "results.jsonl").write_text(
        "\n".join([
            result(asked[5], "5"),
            result(asked[2], "2"),
            result(asked[2], "2"),
            result(asked[0], **failed_in_body),
            result(asked[1], **failed_beside),
            "",
            result(asked[9], **stranger),
            result(asked[9], custom_id=7),
            "[]",
            torn,
        ])
    )  # fmt: skip
    (tmp_path / "errors.jsonl").write_text("\n".join([result(asked[3], **expired), result(asked[4], **empty)]))
    files = [tmp_path / "errors.jsonl", tmp_path / "results.jsonl"]
    counts = batch.read(files, models=MODELS, store=store)
    assert counts == {"answers": 2, "known": 1, "failed": 4, "unknown": 1, "unreadable": 3}
    assert texts(store, requests) == [None, None, "2", None, None, "5", None, None, None, None]
    assert batch.read(files, models=MODELS, store=store) == counts | {"answers": 0, "known": 3}
    assert next(store.query("SELECT count(*) FROM replies"))[0] == 2 + 4
    reasons = [error for (error,) in store.query("SELECT error FROM replies WHERE state = -1 ORDER BY error")]
    assert reasons[:2] == ["bad_request: too long", "context_too_long: maximum context length"]

    (tmp_path / "rest.jsonl").write_text(result(asked[7], "7"))
    assert batch.read([tmp_path / "rest.jsonl"], models=MODELS, store=store)["answers"] == 1
    async with Server(lambda body: Reply(body=completion(body["messages"][0]["content"]))) as server:
        models = {"a": MODELS["a"].model_copy(update={"base_url": server.url})}
        outcome = await judges.ask(requests, models=models, store=store)
    assert (len(server.bodies), outcome.tallies["a"].from_store) == (7, 3)
    assert texts(store, requests) == ["q0", "q1", "2", "q3", "q4", "5", "q6", "7", "q8", "q9"]


def test_tokens_cost_and_names_come_along(tmp_path, store):
    asked = lines(batch.write(rows(1), tmp_path / "out", models=MODELS, store=store))
    (tmp_path / "results.jsonl").write_text(result(asked[0]))
    batch.read([tmp_path / "results.jsonl"], models=MODELS, store=store)
    (answer,) = store.get_many(judges.keys(rows(1), MODELS))
    assert (answer.requested_model, answer.served_model, answer.prompt_tokens) == ("A", "judge-1", 900)
    assert answer.cost == pytest.approx((900 * 1 + 120 * 10) / 1e6)


def test_the_plan_counts_what_is_stored_and_what_the_rest_may_cost(tmp_path, store):
    requests = rows(4, max_tokens=100) + rows(2, "surface")
    asked = lines(batch.write(requests, tmp_path / "out", models=MODELS, store=store))
    (tmp_path / "results.jsonl").write_text(result(asked[0]))
    batch.read([tmp_path / "results.jsonl"], models=MODELS, store=store)
    store.accept(judges.keys(requests, MODELS))
    models = MODELS | {"a": MODELS["a"].model_copy(update={"requests_per_minute": 6, "context": 90})}
    frame = plan([*requests, *requests], models=models, store=store).set_index("model")
    row = frame.loc["a"]
    assert row[["requests", "in_store", "to_ask", "completion_tokens", "too_long"]].tolist() == [4, 1, 3, 300, 3]
    assert row["counted_by"] == "a quarter of the characters"
    assert (row["cost_low"], row["cost_high"]) == (0.0, pytest.approx(300 * 10 / 1e6))
    assert row["minutes"] == pytest.approx(3 / 6)
    assert frame.loc["surface", ["to_ask", "cost_high", "minutes"]].tolist() == [2, 0.0, 0.0]
