"""Tables larger than memory, in buckets: a recipe and its copies share a bucket, so each is paired by itself.

A function runs bucket by bucket on this machine's cores or on a Dask cluster that sees the same files; memory is that
of the largest bucket for each process, and the bytes that come out are the same either way.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from helpers import anchoring, export, pairing
from helpers.export.card import Card
from helpers.pairing import splits
from helpers.pairing.texts import Words
from helpers.runs import replacing, replacing_folder

__all__ = ["Build", "bucket_numbers", "build_dataset", "each_bucket", "partition", "read_bucket"]

T = TypeVar("T")
Bucket = TypeVar("Bucket")


@dataclass(frozen=True)
class Build:
    """How pairs are made of judgements and written: the panel, the rules, the split, the format.

    Without `anchors` every bucket makes its own, of the same judgements.
    """

    judges: Sequence[str]
    rules: pairing.PairingRules = pairing.PUBLISHED
    system: str = ""
    split_by: str = "sample"
    validation_fraction: float = 0.1
    seed: int = 42
    message_format: str = "messages"
    anchors: pd.DataFrame | None = None


def bucket_numbers(recipes: Iterable[str], buckets: int) -> npt.NDArray[np.int64]:
    """Return each recipe's bucket, from the SHA-256 of its text in lower case and with white space evened out.

    >>> bucket_numbers(["Heat at 500 °C.", "heat  at 500 °C."], 1_000_000).tolist()
    [401690, 401690]
    """
    texts = (" ".join(recipe.casefold().split()) for recipe in recipes)
    words = (int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") for text in texts)
    return np.fromiter((word % buckets for word in words), np.int64)


def partition(source: Path, folder: Path, bucket_of: Mapping[str, int], buckets: int) -> list[Path]:
    """Divide a Parquet table with a column sample_id into folder/00000.parquet and so on, a batch at a time."""
    numbers = pd.Series(bucket_of)
    paths = [folder / f"{number:05d}.parquet" for number in range(buckets)]
    with pq.ParquetFile(source) as file, ExitStack() as stack:
        files = [stack.enter_context(replacing(path)) for path in paths]
        writers = [stack.enter_context(pq.ParquetWriter(path, file.schema_arrow, compression="zstd")) for path in files]
        for batch in file.iter_batches(export.ROW_GROUP):
            number = numbers.loc[batch["sample_id"].to_pandas().astype("str")].to_numpy()
            for bucket in np.unique(number):
                writers[bucket].write_batch(batch.filter(pa.array(number == bucket)))
    return paths


def each_bucket(
    work: Callable[[Bucket], T],
    buckets: Sequence[Bucket],
    *,
    engine: str = "local",
    scheduler: str = "",
    workers: int = 0,
) -> list[T]:
    """Return `work(bucket)` for every bucket, in order; `work` is importable and repeats itself without harm.

    By "local" it runs in `workers` processes (0: as many as there are cores; a script that calls this keeps its own
    work under `if __name__ == "__main__"`), by "dask" on the cluster whose scheduler is at `scheduler`, such as
    "tcp://10.0.0.1:8786"; what a lost worker had is done again by another one.
    """
    if engine == "dask":
        return _on_cluster(work, buckets, scheduler)
    if engine != "local":
        raise ValueError(f"engine is {engine!r}; it is 'local' or 'dask'")
    processes = min(workers or os.cpu_count() or 1, len(buckets))
    if processes < 2:
        return [_frugally(work, bucket) for bucket in buckets]
    try:
        with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
            return list(pool.map(partial(_frugally, work), buckets))
    except BrokenProcessPool as error:
        raise RuntimeError("a process died at its bucket, perhaps for lack of memory; make more buckets") from error


def _frugally(work: Callable[[Bucket], T], bucket: Bucket) -> T:
    """Do the work, and hand the memory that a bucket took back before the next one comes."""
    result = work(bucket)
    pa.default_memory_pool().release_unused()
    return result


def _on_cluster(work: Callable[[Bucket], T], buckets: Sequence[Bucket], scheduler: str) -> list[T]:
    from distributed import Client, KilledWorker

    if not scheduler:
        raise ValueError("engine 'dask' needs dask_scheduler, such as 'tcp://10.0.0.1:8786'")
    try:
        client = Client(scheduler, timeout="10s")
    except OSError as error:
        raise OSError(f"no Dask scheduler answers at {scheduler}: {error}") from error
    with client:
        try:
            return list(client.gather(client.map(work, list(buckets), pure=False)))
        except KilledWorker as error:
            raise RuntimeError(f"workers died at a bucket, perhaps for lack of memory; make more: {error}") from error


def read_bucket(path: Path) -> pd.DataFrame:
    """Return the judgements of a bucket that is a Parquet file; raises ValueError when it is not complete."""
    try:
        judgements: pd.DataFrame = pq.read_table(path).to_pandas()
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read as Parquet, or is not complete: {error}") from error
    return judgements


def build_dataset(
    buckets: Sequence[Bucket],
    folder: Path,
    build: Build,
    *,
    card: Card | Callable[[Path], Card],
    read: Callable[[Bucket], pd.DataFrame] = read_bucket,  # type: ignore[assignment]
    more: Sequence[export.Track] = (),
    engine: str = "local",
    scheduler: str = "",
    workers: int = 0,
) -> pd.DataFrame:
    """Pair, split and export buckets of judgements into a dataset folder; returns what `export.write_dataset` returns.

    `read` gives a bucket's judgements, with the columns of `pairing.make_pairs`; columns of `export.FACTS` go along.
    `more` are tracks that need no buckets. `card` may be a function of the folder that holds the files. Samples are
    divided over all buckets at once.
    """
    run = partial(each_bucket, buckets=list(enumerate(buckets)), engine=engine, scheduler=scheduler, workers=workers)
    with replacing_folder(folder.resolve()) as beside:
        work = beside / ".pairs"
        work.mkdir()
        common = splits.shared_wording(map(read, buckets))
        summaries = run(partial(_pair, read=read, build=build, work=work, common=common))
        sides, ids = _sides(pd.concat(summaries), sorted(work.iterdir()), build)
        summaries.clear()  # those of many samples are large, and the export has no use for them
        left_out = run(partial(_export, read=read, build=build, work=work, sides=sides, ids=ids))
        shutil.rmtree(work)
        others = {track.name: export.write_track(track, beside, build.message_format) for track in more}
        counts = {"recipes": sum(left_out)} | others
        return export.finish(beside, card(beside) if callable(card) else card, counts)


def _pair(
    numbered: tuple[int, Bucket], read: Callable[[Bucket], pd.DataFrame], build: Build, work: Path, common: Words
) -> pd.DataFrame:
    number, bucket = numbered
    judgements = read(bucket)
    anchors = build.anchors
    if anchors is None:
        anchors = anchoring.anchor_scores(judgements, min_scores=build.rules.min_scores)
    pairs = pairing.pair_rows(judgements, anchors, judges=build.judges, rules=build.rules)
    with replacing(work / f"{number:05d}.parquet") as beside:
        pairs.to_parquet(beside, index=False)
    return splits.sample_summary(pairs, judgements, common=common)


def _sides(summary: pd.DataFrame, parts: Sequence[Path], build: Build) -> tuple[pd.Series, pa.DataType]:
    """Return the side of every sample or, by row, of every pair, under its key; and the type of the samples' ids."""
    if summary.index.has_duplicates:
        twin = summary.index[summary.index.duplicated()][0]
        raise ValueError(f"sample {twin!r} is in two buckets; divide the table by sample (`partition`)")
    ids = pa.int64() if export.whole_numbers(summary.index) else pa.string()
    share: dict[str, Any] = {"validation_fraction": build.validation_fraction, "seed": build.seed}
    if build.split_by == "sample":
        return splits.draw_samples(summary, **share), ids
    names = ["pair_key", "perturbation_category"]
    pairs = pd.concat([pd.read_parquet(part, columns=names) for part in parts], ignore_index=True)
    return splits.split(pairs, by=build.split_by, **share).set_axis(pd.Index(pairs["pair_key"])), ids


def _export(
    numbered: tuple[int, Bucket],
    read: Callable[[Bucket], pd.DataFrame],
    build: Build,
    work: Path,
    sides: pd.Series,
    ids: pa.DataType,
) -> int:
    number, bucket = numbered
    pairs = pd.read_parquet(work / f"{number:05d}.parquet")
    pairs["split"] = pairs[sides.index.name].astype("str").map(sides)
    judgements = read(bucket)
    facts = judgements[["sample_id", *(name for name in export.FACTS if name in judgements)]].drop_duplicates(
        "sample_id"
    )
    pairs = pairs.merge(facts, on="sample_id", how="left", validate="many_to_one")
    track = export.Track("recipes", pairs, build.system, judgements)
    return export.write_track(track, work.parent, build.message_format, number, ids)
