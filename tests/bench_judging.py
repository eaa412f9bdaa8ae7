"""Time judging beside its floors: asking, a fully stored run, and reading all verdicts again.

Run `python tests/bench_judging.py`. The server is a process of its own that answers after 20 ms with 1.5 kB. Asking is
compared with a bare aiohttp loop behind a semaphore that parses the score and stores nothing; a stored run with keys,
one scan and scores written out by hand, both in CPU time. Only ratios count. Both sides run in turns, each time in a
fresh process, and the best of four is taken, since other work on the machine can only slow a side down.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp

from tests.server import verdict

ROUNDS, REQUESTS, LONG, STORED, JUDGES = 4, 10_000, 100_000, 136_000, 4
SYSTEM, USER = "You judge recipes. " * 10, "Weigh, mix, calcine at 900 C for 12 h. " * 70
SAMPLING = {"temperature": 0.0, "max_tokens": 4096}
USABLE = {"ok", "repaired", "refused", "out_of_range"}


def prompts(count: int) -> list[list[dict[str, str]]]:
    return [
        [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"{number} {USER}"}]
        for number in range(count)
    ]


def score_of(text: str) -> float:
    """Read the last fenced block as JSON, and nothing else."""
    begin = text.rfind("```json") + 7
    return float(json.loads(text[begin : text.find("```", begin)])["overall_score"])


async def bare(url: str, width: int, count: int) -> None:
    """What the fastest general client costs: no store, no budget, no retry."""
    places, scores = asyncio.Semaphore(width), []

    async def one(messages: list[dict[str, str]]) -> None:
        body = {"model": "m", "messages": messages, **SAMPLING}
        async with places, client.post(f"{url}/chat/completions", json=body) as response:
            reply = await response.json()
        scores.append(score_of(reply["choices"][0]["message"]["content"]))

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
        await asyncio.gather(*map(one, prompts(count)))
    assert len(scores) == count


async def ours(url: str, width: int, count: int, repeats: int = 1) -> float:
    """The same with everything: store, budget, retries, verdicts; returns the peak memory at a tenth of the way."""
    from helpers import judges, verdicts
    from helpers.answers import Answer, Request, Store

    peaks: list[float] = []

    def usable(answer: Answer) -> bool:
        peaks.append(peak_mb() if len(peaks) == count * repeats // 10 else 0.0)
        return verdicts.parse(answer.text, finish_reason=answer.finish_reason, refusal=answer.refusal).status in USABLE

    fields: dict[str, Any] = {"max_concurrency": width, "price_prompt": 1.0, "price_completion": 1.0}
    models = {"m": judges.Model(name="m", base_url=url, model="m", **fields)}
    requests = [Request("m", prompt, SAMPLING, repeat) for prompt in prompts(count) for repeat in range(repeats)]
    budget = judges.Budget(money=1e9)
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "answers.sqlite") as store:
        options = {"models": models, "store": store, "usable": usable, "budget": budget, "concurrency": width}
        outcome = await judges.ask(requests, **options)
    assert outcome.tallies["m"].answered == count * repeats
    return max(peaks)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def stored_floor(path: str) -> dict[str, float]:
    """Keys with the state of a prompt shared by its judges, one scan into a dictionary, scores by hand."""
    texts = [f"{SYSTEM}\0{number} {USER}".encode() for number in range(STORED // JUDGES)]
    tails = [json.dumps([judge, SAMPLING]).encode() for judge in range(JUDGES)]
    begin = time.process_time()
    digests = []
    for text in texts:
        state = hashlib.sha256(len(text).to_bytes(8, "little") + text)
        for tail in tails:
            one = state.copy()
            one.update(len(tail).to_bytes(8, "little") + tail)
            digests.append(one.digest())
    found = dict(sqlite3.connect(path).execute("SELECT key, text FROM replies"))
    read = time.process_time()
    scores = [score_of(text) for text in found.values()]
    done = time.process_time()
    assert len(set(digests)) == len(scores) == STORED
    return {"seconds": done - begin, "parse": done - read}


def stored_ours(path: str) -> dict[str, float]:
    """A whole run that finds everything in the store: `ask`, the answers, the verdicts."""
    from helpers import judges, verdicts
    from helpers.answers import Request, Store

    models = stored_models()
    requests = [Request(name, prompt, SAMPLING) for prompt in prompts(STORED // JUDGES) for name in models]
    with Store(path) as store:
        begin = time.process_time()
        outcome = asyncio.run(judges.ask(requests, models=models, store=store))
        answers = store.get_many(outcome.keys)
        read = time.process_time()
        scores = [
            verdicts.parse(answer.text, finish_reason=answer.finish_reason, refusal=answer.refusal).overall_score
            for answer in answers
            if answer
        ]
        done = time.process_time()
    assert sum(tally.sent for tally in outcome.tallies.values()) == 0
    assert len(scores) == STORED
    assert None not in scores
    return {"seconds": done - begin, "parse": done - read}


def stored_models() -> dict[str, Any]:
    from helpers import judges

    address = "http://127.0.0.1:9/v1"  # nobody listens there
    return {name: judges.Model(name=name, base_url=address, model=name) for name in "abcd"}


def fill(path: str) -> dict[str, float]:
    from helpers import judges
    from helpers.answers import Reply, Request, Store

    models = stored_models()
    keys = judges.keys(
        (Request(name, prompt, SAMPLING) for prompt in prompts(STORED // JUDGES) for name in models), models
    )
    fields: dict[str, Any] = {"finish_reason": "stop", "prompt_tokens": 900, "completion_tokens": 120}
    with Store(path) as store:
        for start in range(0, STORED, 1_000):
            numbers = range(start, start + 1_000)
            store.put(Reply(keys[n], 1, "m", text=verdict(n), raw=verdict(n) + "x" * 500, **fields) for n in numbers)
    return {}


def asking(client: str, url: str, width: str, count: str) -> dict[str, float]:
    if client == "ours":  # what it imports counts as memory, and not as time
        import helpers.judges
        import helpers.verdicts  # noqa: F401
    work = bare if client == "bare" else ours
    before, begin = time.process_time(), time.perf_counter()
    asyncio.run(work(url, int(width), int(count)))
    took, cpu = time.perf_counter() - begin, time.process_time() - before
    return {"rate": int(count) / took, "cpu_ms": 1_000 * cpu / int(count), "peak_mb": peak_mb()}


def lasting(url: str) -> dict[str, float]:
    return {"early_mb": asyncio.run(ours(url, 64, 1_000, LONG // 1_000)), "late_mb": peak_mb()}


def child(*arguments: str) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench_judging", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def best(runs: list[dict[str, float]], name: str) -> float:
    return (max if name == "rate" else min)(run[name] for run in runs)


def compare_asking(url: str) -> None:
    for width in ("64", "256"):
        runs: dict[str, list[dict[str, float]]] = {"bare": [], "ours": []}
        for _ in range(ROUNDS):
            for client in runs:
                runs[client].append(child("ask", client, url, width, str(REQUESTS)))
        names = ("rate", "cpu_ms", "peak_mb")
        rate, cpu, peak = (best(runs["ours"], name) / best(runs["bare"], name) for name in names)
        print(
            f"{width:>3} in flight: {best(runs['ours'], 'rate'):,.0f} a second, {rate:.2f} of bare (goal 0.75); "
            f"CPU {cpu:.2f} (goal 1.5); memory {peak:.2f} (goal 2)"
        )
    peaks = child("long", url)
    early, late = peaks["early_mb"], peaks["late_mb"]
    print(f"peak memory {early:.0f} MB at a tenth of {LONG:,} requests, {late:.0f} MB at the end")


def compare_stored(path: str) -> None:
    child("fill", path)
    floor, run = [], []
    for _ in range(ROUNDS):
        floor.append(child("floor", path))
        run.append(child("stored", path))
    print(
        f"{STORED:,} stored: {best(run, 'seconds'):.2f} s, {best(run, 'seconds') / best(floor, 'seconds'):.2f} of the "
        f"floor (goal 2); reading verdicts again {best(run, 'parse') / best(floor, 'parse'):.2f} (goal 1.5)"
    )


def main() -> None:
    command = [sys.executable, str(Path(__file__).with_name("server.py")), "0.02"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        compare_asking(f"http://127.0.0.1:{int(server.stdout.readline())}/v1")
    finally:
        server.kill()
        server.wait()
    with tempfile.TemporaryDirectory() as folder:
        compare_stored(str(Path(folder) / "answers.sqlite"))


if __name__ == "__main__":
    task = {"ask": asking, "long": lasting, "fill": fill, "floor": stored_floor, "stored": stored_ours}
    if len(sys.argv) > 1:
        print(json.dumps(task[sys.argv[1]](*sys.argv[2:])))
    else:
        main()
