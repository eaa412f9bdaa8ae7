"""Pairing and export beside their floors: `python -m tests.bench_pairing [--samples 2000] [--buckets 10] [--runs 3]`.

136,000 synthetic judgements (2,000 samples, 17 conditions, 4 judges; user texts of 2 kB, answers of 1.5 kB). Every
figure is a ratio to the least that the work can cost on this machine, measured in the same run, in seconds of
processor time and the best of some runs, so that other work on the machine shows as little as possible.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import combinations
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from helpers import anchoring, export, pairing
from helpers.export.card import Card
from helpers.pairing import scale
from helpers.perturbations import CONDITIONS

JUDGES = ["judge_a", "judge_b", "judge_c", "judge_d"]
SYSTEM = "You are a strict judge of recipes for making materials. " * 14
CARD = Card("Bench", "cc0-1.0", {"synthetic": "cc0-1.0"}, dict.fromkeys(JUDGES, "rules"))


def judgements(samples: int, seed: int = 0) -> pa.Table:
    """Make scored texts: judges of different severity, errors that cost 0 to 1.5 points, 1 % without a score."""
    rng = np.random.default_rng(seed)
    names = np.array(list(CONDITIONS))
    error = np.array([known.category == "error" for known in CONDITIONS.values()])
    shape = (samples, len(names), len(JUDGES))
    quality = rng.normal(3.4, 0.6, (samples, 1, 1)) - (rng.uniform(0, 1.5, shape[:2]) * error)[:, :, None]
    scores = quality + np.array([0.35, 0.10, -0.05, -0.40]) + rng.normal(0, 0.45, shape)
    scores = np.clip(np.round(scores * 2) / 2, 1, 5)
    scores[rng.random(shape) < 0.01] = np.nan
    letters = rng.choice(list("abcdefghijklmnop"), 4_000)
    words = [f"{letter}{number:x}" for number, letter in enumerate(letters)] + ["500 °C", "TiO₂"] * 50
    users, answers = [], []
    for sample in range(samples):
        recipe, *said_by_number = rng.integers(0, len(words), (1 + len(names) * len(JUDGES), 400)).tolist()
        for place, name in enumerate(names):
            version = [words[number] for number in recipe]
            for changed in rng.integers(0, 400, 1 + place).tolist():
                version[changed] = f"x{place}"
            users += [f"Target: M{sample}\n\n" + " ".join(version)] * len(JUDGES)
            for judge in range(len(JUDGES)):
                said = " ".join([words[number] for number in said_by_number.pop()[:285]])
                score = scores[sample, place, judge]
                answers.append(f'{JUDGES[judge]} on {name}: {said}\n```json\n{{"overall_score": {score}}}\n```')
    index = np.indices(shape).reshape(3, -1)
    return pa.table(
        {
            "sample_id": pa.array([f"{seed:03d}-{sample:05d}" for sample in range(samples)]).take(pa.array(index[0])),
            "dataset_name": pa.array(names).take(pa.array(index[1])),
            "judge": pa.array(JUDGES).take(pa.array(index[2])),
            "overall_score": pa.array(scores.ravel(), from_pandas=True),
            "user": users,
            "text": answers,
        }
    )


def make(samples: int, source: Path) -> None:
    """Write the judgements of one bucket."""
    pq.write_table(judgements(samples, int(source.stem)), source, compression="zstd", row_group_size=8_192)


def best(work: Callable[[], Any], runs: int) -> float:
    """Return the least time of some runs, in seconds."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def plain_cube(codes: np.ndarray, scores: np.ndarray, error: np.ndarray, graded: np.ndarray) -> np.ndarray:
    """Pair by the published rule with index arrays and nothing else: what any implementation has to do."""
    cube = np.full(tuple(codes.max(axis=0) + 1), np.nan)
    cube[tuple(codes.T)] = scores
    anchor = np.nanmedian(cube[:, graded].reshape(len(cube), -1), axis=1)[:, None, None]
    left, right = np.array(list(combinations(range(cube.shape[2]), 2))).T
    a, b = cube[:, :, left], cube[:, :, right]
    high, low, delta = np.maximum(a, b), np.minimum(a, b), np.abs(a - b)
    kept = ~np.isnan(cube).any(axis=2)[:, :, None] & (delta >= 0.5 - 1e-9)
    kept &= np.where(error[:, None], high >= anchor - 2.0 - 1e-9, high >= anchor - 1.5 - 1e-9)
    order = np.argsort(np.where(kept, -delta, np.inf), axis=2, kind="stable")[:, :, :5]
    sample, condition, place = np.nonzero(np.take_along_axis(kept, order, axis=2))
    pair = order[sample, condition, place]
    return np.stack([sample, condition, pair, delta[sample, condition, pair], low[sample, condition, pair]])


def scores_only(table: pd.DataFrame, runs: int) -> dict[str, float]:
    """Time anchors and pairs of scores, beside the plain cube on codes that are ready."""
    names = pd.Index(CONDITIONS)
    error = np.array([known.category == "error" for known in CONDITIONS.values()])
    graded = np.flatnonzero(names.isin(anchoring.GRADED))
    keys = (table["sample_id"], table["dataset_name"], table["judge"])
    codes = np.stack([pd.factorize(keys[0])[0], names.get_indexer(keys[1]), pd.factorize(keys[2])[0]], axis=1)
    scores = table["overall_score"].to_numpy()

    def ours() -> pd.DataFrame:
        return pairing.pair_rows(table, anchoring.anchor_scores(table), judges=JUDGES)

    assert len(ours()) == plain_cube(codes, scores, error, graded).shape[1]
    return {"floor": best(lambda: plain_cube(codes, scores, error, graded), runs), "ours": best(ours, runs)}


def build(source: Path, folder: Path, message_format: str) -> pd.DataFrame:
    """Do the whole work: read, pair, hash, split, write."""
    table = pq.read_table(source).to_pandas()
    pairs = pairing.pair_rows(table, anchoring.anchor_scores(table), judges=JUDGES)
    pairs["split"] = pairing.split(pairs, texts=table)
    track = export.Track("recipes", pairs, SYSTEM, table)
    return export.write_dataset([track], folder, card=CARD, message_format=message_format)


def floor(part: str, source: Path, folder: Path) -> Callable[[], Any]:
    """Prepare what cannot be saved: to read, hash each pair, escape each distinct text, or write the finished table."""
    if part == "read":
        return lambda: pq.read_table(source)
    if part == "write":
        finished = pa.concat_tables(pq.read_table(file) for file in sorted(folder.glob("recipes/*.parquet")))
        plain = {"compression": "zstd", "use_dictionary": False, "row_group_size": export.ROW_GROUP}
        return lambda: pq.write_table(finished, folder.parent / "floor.parquet", **plain)
    table = pq.read_table(source)
    if part == "escape":
        distinct = [*table["user"].unique().to_pylist(), *table["text"].to_pylist()]
        return lambda: [encode_basestring(text) for text in distinct]
    frame = table.to_pandas()
    pairs = pairing.pair_rows(frame, anchoring.anchor_scores(frame), judges=JUDGES)
    columns = zip(("user", "text", "text"), ("prompt", "chosen", "rejected"), strict=True)
    texts = [table[name].take(pa.array(pairs[place])).to_pylist() for name, place in columns]
    ready = ["".join(parts).encode() for parts in zip(*texts, strict=True)]
    return lambda: [hashlib.sha256(text).digest() for text in ready]


def published_size(folder: Path) -> int:
    """Return the size of the same rows shuffled, in one row group, snappy: how the published program writes them."""
    finished = pa.concat_tables(pq.read_table(file) for file in sorted(folder.glob("recipes/*.parquet")))
    shuffled = finished.take(pa.array(np.random.default_rng(0).permutation(len(finished))))
    pq.write_table(shuffled, folder.parent / "published.parquet", compression="snappy", row_group_size=len(finished))
    return (folder.parent / "published.parquet").stat().st_size


def apart(*arguments: object) -> tuple[float, float]:
    """Run this file in a fresh process; return its seconds (imports and preparation left out) and its peak in MB."""
    command = [sys.executable, "-m", "tests.bench_pairing", *map(str, arguments)]
    seconds, peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-2:]
    return float(seconds), float(peak)


def report(label: str, value: float, floor: float, goal: float) -> None:
    """Print a figure beside its floor and its goal."""
    print(f"{label:<58} {value:9.3f}   floor {floor:9.3f}   ratio {value / floor:5.2f}   goal {goal:.2f}")


def main(samples: int, buckets: int, runs: int) -> None:
    """Make the judgements, measure everything, print it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = [folder / f"{number:05d}.parquet" for number in range(max(buckets, 1))]
        with ProcessPoolExecutor() as pool:
            list(pool.map(partial(make, samples), sources))
        found = scores_only(pq.read_table(sources[0]).drop_columns(["user", "text"]).to_pandas(), 5 * runs)
        report("anchors and pairs of scores, s", found["ours"], found["floor"], 5)
        for message_format in ("json", "messages"):
            dataset = folder / message_format
            tries = [apart("--build", sources[0], dataset, message_format) for _ in range(runs)]
            seconds, peak = min(time for time, _ in tries), max(peak for _, peak in tries)
            if message_format == "json":
                parts = ("read", "hash", "escape", "write")
                least = {
                    name: min(apart("--floor", name, sources[0], dataset)[0] for _ in range(runs)) for name in parts
                }
                print("floors, s: " + ", ".join(f"{name} {value:.2f}" for name, value in least.items()))
            report(f"full build, {message_format}, s", seconds, sum(least.values()), 1.5)
            report(f"full build, {message_format}, peak MB beside 1,600", peak, 1_600, 1)
            size = sum(file.stat().st_size for file in dataset.glob("recipes/*.parquet"))
            report(
                f"files, {message_format}, MB beside shuffled snappy", size / 1e6, published_size(dataset) / 1e6, 0.3
            )
        if buckets > 1:
            small, large = (apart("--buckets-of", folder, count) for count in (1, buckets))
            report(f"{buckets} buckets, s beside {buckets} times one", large[0], small[0] * buckets, 1.15)
            report(f"{buckets} buckets, peak MB beside one", large[1], small[1], 1.15)


def child(arguments: list[str]) -> None:
    """Do one piece of work and print its seconds and peak memory."""
    work: Callable[[], Any]
    if arguments[0] == "--build":
        work = partial(build, Path(arguments[1]), Path(arguments[2]), arguments[3])
    elif arguments[0] == "--floor":
        work = floor(arguments[1], Path(arguments[2]), Path(arguments[3]))
    else:
        folder, options = Path(arguments[1]), scale.Build(JUDGES, system=SYSTEM)
        parts = sorted(folder.glob("0*.parquet"))[: int(arguments[2])]
        work = partial(scale.build_dataset, parts, folder / "buckets", options, card=CARD, workers=1)
    start = time.process_time()
    work()
    seconds = time.process_time() - start
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    print(seconds, int(peak[1]) / 1024)


if __name__ == "__main__":
    if sys.argv[1:2] in (["--build"], ["--floor"], ["--buckets-of"]):
        child(sys.argv[1:])
    else:
        parser = argparse.ArgumentParser(description=__doc__)
        for option, default in (("--samples", 2_000), ("--buckets", 1), ("--runs", 3)):
            parser.add_argument(option, type=int, default=default)
        main(**vars(parser.parse_args()))
