"""What SIGKILL can lose: the requests in flight, and nothing else."""

import asyncio
import random
import sys
from collections import Counter

import pytest

from helpers import judges
from helpers.answers import Request, Store
from tests.server import Reply, Server, completion

ROWS, CONCURRENCY = 2_000, 32
CLIENT = """
import asyncio, sys
from helpers import judges
from helpers.answers import Store
from tests.test_kill import CONCURRENCY, model, requests
with Store(sys.argv[1]) as store:
    models = {"judge": model(sys.argv[2])}
    print(asyncio.run(judges.ask(requests(), models=models, store=store, concurrency=CONCURRENCY)).tallies)
"""


def requests() -> list[Request]:
    return [Request("judge", [{"role": "user", "content": f"q{number}"}]) for number in range(ROWS)]


def model(url: str) -> judges.Model:
    return judges.Model(name="judge", base_url=url, model="judge-1")


async def start(path, server):
    return await asyncio.create_subprocess_exec(sys.executable, "-c", CLIENT, str(path), server.url)


def slow_echo(body):
    return Reply(body=completion(f"answer to {body['messages'][0]['content']}"), delay=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_killed_three_times_a_run_ends_with_every_answer_once_and_pays_twice_only_for_what_was_in_flight(
    seed, tmp_path
):
    chance = random.Random(seed)
    path = tmp_path / "answers.sqlite"
    async with Server(slow_echo) as server:
        for _ in range(3):
            goal = len(server.bodies) + chance.randint(1, 600)
            client = await start(path, server)
            while len(server.bodies) < goal:
                await asyncio.sleep(chance.random() / 200)
            client.kill()
            await client.wait()
            await asyncio.sleep(0.1)
        client = await start(path, server)
        assert await client.wait() == 0
    sent = Counter(body["messages"][0]["content"] for body in server.bodies)
    assert sum(sent.values()) - ROWS <= 3 * CONCURRENCY
    assert len(sent) == ROWS
    with Store(path) as store:
        answers = store.get_many(judges.keys(requests(), {"judge": model(server.url)}))
        assert [answer.text for answer in answers] == [f"answer to q{number}" for number in range(ROWS)]
        assert list(store.query("SELECT state, count(*) FROM replies GROUP BY state")) == [(1, ROWS)]
        assert next(store.query("PRAGMA integrity_check"))[0] == "ok"


@pytest.mark.slow
async def test_two_runs_at_once_share_the_store_and_each_ends_with_every_answer(tmp_path):
    path = tmp_path / "answers.sqlite"
    async with Server(slow_echo) as server:
        clients = [await start(path, server) for _ in range(2)]
        assert [await client.wait() for client in clients] == [0, 0]
    with Store(path) as store:
        assert next(store.query("SELECT count(DISTINCT key), count(*) FROM replies WHERE state = 1")) == (ROWS, ROWS)
        assert next(store.query("SELECT count(*) FROM replies"))[0] == len(server.bodies)
