"""Buckets: copies stay together, and the bytes do not depend on who does the work."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from datasets import load_dataset

from helpers import anchoring, pairing
from helpers.export.card import Card
from helpers.pairing import scale, splits
from tests.bench_pairing import JUDGES, judgements

CARD = Card("Toy", "cc0-1.0", {"toy": "cc0-1.0"}, dict.fromkeys(JUDGES, "rules"))
BUILD = scale.Build(JUDGES, system="Be strict.")
BUCKETS = 6


@pytest.fixture(scope="module")
def table():
    return judgements(30).to_pandas()


@pytest.fixture(scope="module")
def buckets(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("buckets")
    table.to_parquet(folder / "judgements.parquet", index=False)
    ids = table["sample_id"].unique()
    numbers = dict(zip(ids, scale.bucket_numbers(ids, BUCKETS), strict=True))
    return scale.partition(folder / "judgements.parquet", folder / "parts", numbers, BUCKETS)


def digest(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_copies_of_a_recipe_share_a_bucket():
    one, copy, other = scale.bucket_numbers(["Heat at 500 °C.", "heat  at 500 °C.\n", "Heat at 501 °C."], 10**6)
    assert one == copy != other


def test_a_partition_holds_every_row_once(table, buckets):
    parts = [pd.read_parquet(path) for path in buckets]
    assert sum(map(len, parts)) == len(table)
    assert pd.concat(parts).drop_duplicates(["sample_id", "dataset_name", "judge"]).shape[0] == len(table)
    assert sum(part["sample_id"].nunique() for part in parts) == 30


def test_buckets_give_the_pairs_and_the_split_of_the_whole_table(table, buckets, tmp_path):
    scale.build_dataset(buckets, tmp_path / "dataset", BUILD, card=CARD, workers=1)
    data = load_dataset(str(tmp_path / "dataset"), cache_dir=str(tmp_path / "cache"))
    found = pd.concat([data[name].to_pandas().assign(split=name) for name in data])
    whole = pairing.make_pairs(table, anchoring.anchor_scores(table), judges=JUDGES)
    whole["split"] = pairing.split(whole)
    columns = ["pair_key", "split", "score_chosen", "anchor_score", "chosen_model"]
    order = {"by": "pair_key", "ignore_index": True}
    pd.testing.assert_frame_equal(found[columns].sort_values(**order), whole[columns].sort_values(**order))


@pytest.mark.slow
def test_a_split_by_row_is_one_draw_over_all_buckets(table, buckets, tmp_path):
    by_row = replace(BUILD, split_by="row")
    scale.build_dataset(buckets, tmp_path / "dataset", by_row, card=CARD, workers=1)
    whole = pairing.pair_rows(table, anchoring.anchor_scores(table), judges=JUDGES)
    expected = pairing.split(whole, by="row").set_axis(whole["pair_key"])
    for side in ("train", "validation"):
        found = pd.concat(pd.read_parquet(p) for p in (tmp_path / "dataset" / "recipes").glob(f"{side}-*.parquet"))
        assert sorted(found["pair_key"]) == sorted(expected.index[expected == side])


def test_recipes_nearly_the_same_stay_together_though_buckets_and_edits_divide_them():
    def judged(sample, lot, edit):
        recipe = " ".join(f"w{number}" for number in range(60))
        mild = recipe if edit is None else " ".join(f"{edit}{number}" for number in range(60))
        names = ["original", "llm_representational_perturbation_1pct"]
        rows = [
            (sample, name, judge, f"{text} lot {lot}", f"{judge} {name}")
            for name, text in zip(names, [recipe, mild], strict=True)
            for judge in JUDGES
        ]
        table = pd.DataFrame(rows, columns=["sample_id", "dataset_name", "judge", "user", "text"])
        return table.assign(overall_score=table["judge"].map(dict(zip(JUDGES, [4.0, 3.0, 2.0, 1.0], strict=True))))

    def sides(*tables):
        common = splits.shared_wording(tables)
        found = []
        for table in tables:
            pairs = pairing.pair_rows(table, anchoring.anchor_scores(table), judges=JUDGES)
            found.append(splits.sample_summary(pairs, table, common=common))
        return splits.draw_samples(pd.concat(found), validation_fraction=0.5, seed=1)

    others = [judged(f"o{n}", n, None).replace(r"w(\d+)", rf"o{n}x\1", regex=True) for n in range(8)]
    for seed in range(8):
        twins = judged(f"a{seed}", "A", "x"), judged(f"b{seed}", "B", "y")
        drawn = sides(pd.concat([twins[0], *others[:4]]), pd.concat([twins[1], *others[4:]]))
        assert drawn[f"a{seed}"] == drawn[f"b{seed}"]
        assert drawn.nunique() == 2


def test_several_processes_write_the_same_bytes_as_one(buckets, tmp_path):
    for workers in (1, 2):
        scale.build_dataset(buckets, tmp_path / str(workers), BUILD, card=CARD, workers=workers)
    assert digest(tmp_path / "1") == digest(tmp_path / "2")


def test_a_failing_bucket_leaves_the_last_complete_dataset(buckets, tmp_path):
    scale.build_dataset(buckets, tmp_path / "dataset", BUILD, card=CARD, workers=1)
    before = digest(tmp_path / "dataset")
    broken = tmp_path / "00000.parquet"
    broken.write_bytes(buckets[0].read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"00000\.parquet cannot be read as Parquet"):
        scale.build_dataset([broken, *buckets[1:]], tmp_path / "dataset", BUILD, card=CARD, workers=1)
    assert digest(tmp_path / "dataset") == before
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_a_sample_in_two_buckets_is_an_error(buckets, tmp_path):
    with pytest.raises(ValueError, match="is in two buckets"):
        scale.build_dataset([buckets[0], buckets[0]], tmp_path / "dataset", BUILD, card=CARD, workers=1)


def die(bucket: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_process_that_dies_is_reported(buckets):
    with pytest.raises(RuntimeError, match="make more buckets"):
        scale.each_bucket(die, buckets[:2], workers=2)


def test_unknown_engines_and_missing_schedulers_are_refused(buckets):
    with pytest.raises(ValueError, match="engine is 'spark'"):
        scale.each_bucket(len, buckets, engine="spark")
    with pytest.raises(ValueError, match="dask_scheduler"):
        scale.each_bucket(len, buckets, engine="dask")


@pytest.fixture
def cluster(tmp_path):
    """Start a scheduler and two workers as processes of their own; gives the address and the workers."""
    pytest.importorskip("distributed")
    paths = os.pathsep.join(map(str, (Path(__file__).parents[1], Path(__file__).parents[1] / "src")))
    start = partial(subprocess.Popen, env=os.environ | {"PYTHONPATH": paths}, cwd=tmp_path, stderr=subprocess.DEVNULL)
    dask = [sys.executable, "-m", "dask"]
    address = tmp_path / "scheduler.json"
    quiet = ["--no-dashboard", "--scheduler-file", str(address)]
    scheduler = start([*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", *quiet])
    deadline = time.monotonic() + 60
    while not address.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    options = ["--no-nanny", "--nthreads", "1", "--host", "127.0.0.1", "--no-dashboard"]
    workers = [start([*dask, "worker", "--scheduler-file", str(address), *options]) for _ in range(2)]
    yield pd.read_json(address, typ="series")["address"], workers
    for process in (*workers, scheduler):
        process.kill()
        process.wait()


def slow(bucket: Path, folder: Path) -> str:
    (folder / f"{bucket.stem}-{os.getpid()}").touch()
    time.sleep(1)
    return bucket.stem


@pytest.mark.cluster
@pytest.mark.slow
def test_a_cluster_writes_the_same_bytes_though_a_worker_is_killed(buckets, cluster, tmp_path):
    address, workers = cluster
    scale.build_dataset(buckets, tmp_path / "here", BUILD, card=CARD, workers=1)
    scale.build_dataset(buckets, tmp_path / "there", BUILD, card=CARD, engine="dask", scheduler=address)
    assert digest(tmp_path / "here") == digest(tmp_path / "there")

    started = tmp_path / "started"
    started.mkdir()
    killer = subprocess.Popen(
        [sys.executable, "-c", KILL_WHEN_BUSY, str(started), str(workers[0].pid)], stdout=subprocess.DEVNULL
    )
    names = scale.each_bucket(partial(slow, folder=started), buckets, engine="dask", scheduler=address)
    assert names == [bucket.stem for bucket in buckets]
    assert killer.wait() == 0
    assert workers[0].wait() == -signal.SIGKILL
    assert len(list(started.iterdir())) > BUCKETS  # what the killed worker had begun was begun again

    scale.build_dataset(buckets, tmp_path / "again", BUILD, card=CARD, engine="dask", scheduler=address)
    assert digest(tmp_path / "here") == digest(tmp_path / "again")


KILL_WHEN_BUSY = """
import os, pathlib, signal, sys, time
folder, pid = pathlib.Path(sys.argv[1]), sys.argv[2]
while not list(folder.glob(f"*-{pid}")):
    time.sleep(0.05)
os.kill(int(pid), signal.SIGKILL)
"""


@pytest.mark.cluster
@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_named(buckets, monkeypatch):
    pytest.importorskip("distributed")
    with pytest.raises(OSError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        scale.each_bucket(len, buckets, engine="dask", scheduler="tcp://127.0.0.1:1")
