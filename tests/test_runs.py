import json
import os
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers import runs
from helpers.params import Params, load
from helpers.runs import STAGES, open_run


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMBLINE_OUTPUTS", str(tmp_path))
    return runs.open_run(Params(), STAGES[0])


def test_a_table_comes_back_as_it_was_written(run):
    table = pd.DataFrame({"track": "recipe", "sample_id": ["None", "9007199254740993"], "anchor_score": [None, 3.5]})
    run.write("anchors", table.assign(n_scores=[0, 20], spread=None))
    back = run.read("anchors")
    assert back["sample_id"].tolist() == ["None", "9007199254740993"]
    assert back["anchor_score"].isna().tolist() == [True, False]
    kept = pq.read_schema(run.path / "data" / "anchors.parquet")
    assert [str(kept.field(name).type) for name in ("sample_id", "spread")] == ["string", "double"]


def test_a_table_in_parts_is_one_table(run):
    parts = (pa.table({"x": pa.array([n], pa.large_string())}) for n in ["a", "b"])
    run.write("parts", parts)
    assert run.read("parts")["x"].tolist() == ["a", "b"]
    assert pq.read_schema(run.path / "data" / "parts.parquet").field("x").type == pa.string()


def test_writing_that_fails_leaves_the_last_complete_table(run):
    run.write("parts", pa.table({"x": [1]}))

    def torn():
        yield pa.table({"x": [2]})
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        run.write("parts", torn())
    assert run.read("parts")["x"].tolist() == [1]
    assert [path.name for path in (run.path / "data").iterdir()] == ["parts.parquet"]


def test_a_table_in_buckets_is_a_folder_that_reads_like_the_file(run):
    with run.writing("anchors", buckets=2) as add:
        for sample in ("b", "a", "c"):
            add(
                pd.DataFrame(
                    {"track": "recipe", "sample_id": [sample], "anchor_score": 3.0, "n_scores": 1, "spread": 0.0}
                )
            )
    path = run.path / "data" / "anchors.parquet"
    assert [part.name for part in sorted(path.iterdir())] == ["00000.parquet", "00001.parquet", "00002.parquet"]
    assert run.read("anchors")["sample_id"].tolist() == pd.read_parquet(path)["sample_id"].tolist() == ["b", "a", "c"]
    two = replace(run, params=run.params.model_copy(update={"buckets": 2}))
    assert two.read("anchors", ["sample_id"], part=-1).squeeze() == "c"
    assert run.read("anchors", ["n_scores"], where=[("sample_id", "in", ["a", "c"])])["n_scores"].tolist() == [1, 1]
    assert {name for name in run.writes if name.startswith("data/anchors")} == {
        f"data/anchors.parquet/0000{n}.parquet" for n in range(3)
    }


def test_a_table_of_other_buckets_than_the_run_has_is_refused(run):
    for buckets in (1, 3):
        with run.writing("parts", buckets=buckets) as add:
            for x in range(buckets + 1 if buckets > 1 else 1):
                add(pa.table({"x": [x]}))
        for asked in (1, 2, 3):
            other = replace(run, params=run.params.model_copy(update={"buckets": asked}))
            if asked == buckets:
                assert other.read("parts", part=-1)["x"].tolist() == [3 if buckets > 1 else 0]
            else:
                with pytest.raises(ValueError, match=f"not written with buckets={asked}"):
                    other.read("parts", part=0)


def test_no_row_is_among_none(run):
    run.write("parts", pa.table({"x": ["a"], "n": [1]}))
    assert run.read("parts", where=[("x", "in", [])]).empty
    assert run.read("parts", where=[("n", "in", [])]).columns.tolist() == ["x", "n"]


def test_what_another_process_is_writing_is_left_alone(run):
    folder = run.path / "data"
    folder.mkdir(exist_ok=True)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for process in (os.getppid(), ended.pid):
        (folder / f".items.parquet.{process}").touch()
        (folder / f".judgements.parquet.new.{process}").mkdir()
    open_run(run.params.model_copy(update={"run_id": run.path.name}), "01_sampling")
    assert sorted(path.name for path in folder.iterdir()) == [
        f".items.parquet.{os.getppid()}",
        f".judgements.parquet.new.{os.getppid()}",
    ]


def test_a_file_and_a_folder_of_a_table_take_each_others_place(run):
    for buckets in (1, 2, 1):
        with run.writing("parts", buckets=buckets) as add:
            add(pa.table({"x": [buckets]}))
        assert run.read("parts")["x"].tolist() == [buckets]
        assert (run.path / "data" / "parts.parquet").is_dir() == (buckets > 1)
        assert [path.name for path in (run.path / "data").iterdir()] == ["parts.parquet"]


def test_a_bucket_that_fails_leaves_the_last_complete_table(run):
    run.write("parts", pa.table({"x": [1]}))

    def torn():
        with run.writing("parts", buckets=2) as add:
            for x in (2, 0):
                add(pa.table({"x": [1 // x]}))

    with pytest.raises(ZeroDivisionError):
        torn()
    assert run.read("parts")["x"].tolist() == [1]
    assert [path.name for path in (run.path / "data").iterdir()] == ["parts.parquet"]


def test_a_table_that_is_not_there_or_not_whole_is_named(run):
    with pytest.raises(FileNotFoundError, match=r"pairs\.parquet is not there yet.*plumbline run"):
        run.read("pairs")
    (run.path / "data" / "pairs.parquet").write_bytes(b"PAR1 cut off")
    with pytest.raises(ValueError, match=r"pairs\.parquet is not a complete Parquet file"):
        run.read("pairs")


def test_numbers_of_the_stages_stand_side_by_side_and_a_missing_one_is_null(run):
    run.numbers(n=1, share=float("nan"))
    run.finish()
    other = runs.Run(run.path, STAGES[1], run.params)
    other.numbers(n=2)
    other.finish()
    summary = json.loads((run.path / "tables" / "summary.json").read_text())
    assert summary == {STAGES[0]: {"n": 1, "share": None}, STAGES[1]: {"n": 2}}
    assert r"\newcommand" in (run.path / "tables" / "numbers.tex").read_text()


def test_opening_a_stage_again_takes_back_what_it_said_and_the_manifest(run):
    run.finish(rows=3)
    runs.Run(run.path, STAGES[2], run.params).finish()
    (run.path / "manifest.json").write_text("{}")
    again = runs.open_run(Params(), STAGES[0])
    assert not (again.path / "manifest.json").exists()
    assert not list((again.path / "stages").iterdir())


@pytest.mark.parametrize("damage", ["", "[]", '{"stage": "02_jud', "{}", "\x00"])
def test_a_damaged_record_counts_as_none(run, damage):
    run.finish()
    (run.path / "stages" / f"{STAGES[0]}.json").write_text(damage)
    assert runs.read_record(run.path, STAGES[0]) == {}


def test_a_stage_records_the_parameters_it_was_given_and_the_hash_of_what_it_wrote(run):
    given = runs.Run(run.path, STAGES[0], load(overrides={"seed": 7}))
    given.write("anchors", pd.DataFrame(columns=["track", "sample_id", "anchor_score", "n_scores", "spread"]))
    given.finish(rows=0)
    record = json.loads((run.path / "stages" / f"{STAGES[0]}.json").read_text())
    assert record["params"] == {"seed": 7}
    assert record["outputs"] == {"data/anchors.parquet": runs.sha256(run.path / "data" / "anchors.parquet")}


def test_an_unknown_stage_is_an_error():
    with pytest.raises(ValueError, match="'06_training' is not a stage"):
        runs.open_run(Params(), "06_training")


def test_an_input_is_looked_for_here_and_in_the_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert runs.find_input("params/demo.yaml") == runs.project_root() / "params" / "demo.yaml"
    (tmp_path / "mine.csv").write_text("x\n")
    assert runs.find_input("mine.csv") == tmp_path / "mine.csv"
    with pytest.raises(FileNotFoundError, match=r"'gone\.csv' is not there; looked in"):
        runs.find_input("gone.csv")
