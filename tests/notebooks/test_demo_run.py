"""The notebooks as programs: the run file that ships, from the command, twice, in processes with other hash seeds."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import papermill
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from papermill.exceptions import PapermillExecutionError

from helpers.runs import STAGES, sha256

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def plumbline(outputs, *arguments, hash_seed="0", cwd=ROOT):
    environment = os.environ | {"PLUMBLINE_OUTPUTS": str(outputs), "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "helpers", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd, check=False)


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    outputs = tmp_path_factory.mktemp("outputs")
    done = plumbline(outputs, "run", ROOT / "params" / "demo.yaml", hash_seed="1")
    assert done.returncode == 0, done.stdout + done.stderr
    return outputs / "demo", done.stdout


def files(folder, *parts):
    return {path.relative_to(folder): sha256(path) for part in parts for path in sorted((folder / part).rglob("*.*"))}


def test_a_repeated_run_gives_the_same_bytes_from_another_folder_and_hash_seed(demo, tmp_path):
    done = plumbline(tmp_path / "again", "run", ROOT / "params" / "demo.yaml", hash_seed="2", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    parts = ("data", "tables", "dataset", "figures")
    assert files(tmp_path / "again" / "demo", *parts) == files(demo[0], *parts)


def test_the_manifest_accounts_for_every_file_and_every_row(demo):
    folder, _ = demo
    manifest = json.loads((folder / "manifest.json").read_text())
    found = files(folder, "data", "tables", "dataset", "figures")
    assert {Path(name): about["sha256"] for name, about in manifest["outputs"].items()} == found
    for name, about in manifest["outputs"].items():
        if name.endswith(".parquet"):
            assert about["rows"] == pq.read_metadata(folder / name).num_rows
    assert set(manifest["stages"]) == set(STAGES)
    judged = manifest["stages"]["02_judging"]["counts"]
    assert sum(judged["statuses"].values()) == pq.read_metadata(folder / "data" / "judgements.parquet").num_rows
    flow = manifest["stages"]["04_pairing"]["counts"]["attrition"]
    for condition in flow.values():
        assert condition["candidates"] == sum(value for name, value in condition.items() if name != "candidates")


def test_every_text_of_a_pair_was_judged_and_every_delta_is_large_enough(demo):
    pairs = pq.read_table(demo[0] / "data" / "pairs.parquet").to_pandas()
    assert (pairs["score_delta"] >= 0.5).all()
    assert (pairs["score_chosen"] - pairs["score_rejected"]).abs().sub(pairs["score_delta"]).abs().max() < 1e-9
    assert set(pairs["track"]) == {"recipe", "instruction"}
    assert (pairs["chosen"] != pairs["rejected"]).all()
    sides = pairs.groupby(["track", "sample_id"])["split"].nunique()
    assert sides.max() == 1


def test_the_dataset_opens_with_its_splits(demo, tmp_path):
    opened = load_dataset(str(demo[0] / "dataset"), cache_dir=str(tmp_path))
    assert set(opened) == {"train", "validation"}
    roles = [message["role"] for message in opened["train"][0]["prompt"]]
    assert roles == ["system", "user"]
    assert [message["role"] for message in opened["train"][0]["chosen"]] == ["assistant"]


def test_the_report_is_one_page_that_asks_for_nothing(demo):
    page = (demo[0] / "report.html").read_text()
    assert len(page.encode()) < 5_000_000
    assert "http-equiv" in page
    for stage in STAGES:
        assert f"{int(stage[:2])}. {stage[3:].capitalize()}" in page
    assert "rule" in page  # the kind of the judges is said
    assert "<script" not in page


def test_a_second_run_has_nothing_to_do(demo):
    folder, _ = demo
    before = files(folder, "data", "tables", "dataset", "figures", "notebooks")
    done = plumbline(folder.parent, "run", ROOT / "params" / "demo.yaml")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("up to date") == len(STAGES)
    assert files(folder, "data", "tables", "dataset", "figures", "notebooks") == before


def test_a_changed_rule_runs_only_what_rests_on_it_and_asks_nobody(demo, tmp_path):
    shutil.copytree(demo[0].parent, tmp_path, dirs_exist_ok=True)
    done = plumbline(tmp_path, "run", "-p", "run_id=demo", "-p", "min_delta=1.0", "--until", "04_pairing")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("up to date") == 3
    assert min(pq.read_table(tmp_path / "demo" / "data" / "pairs.parquet")["score_delta"].to_pylist()) >= 1.0
    assert not (tmp_path / "demo" / "manifest.json").exists()


def rows(path, **options):
    table = pq.read_table(path, **options).to_pandas()
    keys = [name for name in ("item_id", "judge", "repeat", "pair_key", "sample_id") if name in table]
    return table.sort_values(keys).reset_index(drop=True).astype(str)


def test_in_buckets_a_run_gives_the_same_rows_numbers_and_pairs(demo, tmp_path):
    shutil.copy(demo[0].parent / "answers.sqlite", tmp_path)
    done = plumbline(tmp_path, "run", "-p", "run_id=demo", "-p", "buckets=3", ROOT / "params" / "demo.yaml")
    assert done.returncode == 0, done.stderr
    for path in (demo[0] / "data").iterdir():
        assert rows(tmp_path / "demo" / "data" / path.name).equals(rows(path)), path
    for name in ("items", "judgements", "pairs"):
        assert len(list((tmp_path / "demo" / "data" / f"{name}.parquet").iterdir())) == 4
    assert files(tmp_path / "demo", "tables") == files(demo[0], "tables")
    for split in ("train", "validation"):
        parts = sorted((tmp_path / "demo" / "dataset" / "recipes").glob(f"{split}-*.parquet"))
        assert len(parts) > 1
        columns = ["pair_key", "Material_Name", "score_delta"]
        bucketed = pa.concat_tables([pq.read_table(part, columns=columns) for part in parts])
        whole = pq.read_table(demo[0] / "dataset" / "recipes" / f"{split}-00000-of-00001.parquet", columns=columns)
        assert bucketed.sort_by("pair_key").equals(whole.sort_by("pair_key"))


def alone(stage, outputs, monkeypatch, folder, **parameters):
    monkeypatch.setenv("PLUMBLINE_OUTPUTS", str(outputs))
    monkeypatch.chdir(folder)
    notebook = ROOT / "notebooks" / f"{stage}.ipynb"
    papermill.execute_notebook(notebook, folder / "out.ipynb", parameters, progress_bar=False, kernel_name="python3")


def test_a_notebook_alone_runs_under_papermill_from_any_directory(demo, tmp_path, monkeypatch):
    shutil.copytree(demo[0].parent, tmp_path / "outputs")
    alone("03_anchoring", tmp_path / "outputs", monkeypatch, tmp_path, min_scores=21)
    anchors = pq.read_table(
        tmp_path / "outputs" / "demo" / "data" / "anchors.parquet", filters=[("track", "=", "recipe")]
    )
    assert anchors["anchor_score"].null_count == len(anchors)
    assert set(anchors["n_scores"].to_pylist()) == {20}


def test_a_notebook_alone_makes_what_earlier_ones_should_have_written(tmp_path, monkeypatch):
    alone("02_judging", tmp_path / "outputs", monkeypatch, tmp_path, conditions=["llm_to_name_100pct"], n_recipes=2)
    rows = pq.read_table(tmp_path / "outputs" / "demo" / "data" / "items.parquet", filters=[("track", "=", "recipe")])
    assert len(rows) == 4


def test_a_notebook_alone_refuses_a_misspelt_name_before_it_does_anything(tmp_path, monkeypatch):
    with pytest.raises(PapermillExecutionError, match="'sede' is not a parameter; did you mean 'seed'"):
        alone("01_sampling", tmp_path / "outputs", monkeypatch, tmp_path, sede=3)
    assert not (tmp_path / "outputs").exists()


def test_a_bad_parameter_stops_the_command_in_one_readable_line(tmp_path):
    done = plumbline(tmp_path, "run", "-p", "min_delta=.nan")
    assert done.returncode == 1
    assert done.stderr.strip() == "plumbline: 'min_delta' is '.nan': input should be a valid number"
    assert not list(tmp_path.iterdir())


def test_a_run_without_pairs_of_recipes_still_ends_with_its_counts(tmp_path):
    few = ("-p", "n_recipes=2", "-p", "n_per_subset=1", "-p", "conditions=original", "-p", "bootstrap_samples=20")
    done = plumbline(tmp_path, "run", *few, "-p", "min_delta=0.0")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "demo" / "tables" / "summary.json").read_text())["04_pairing"]["pairs"] == 0


def test_a_notebook_made_again_alone_leaves_nothing_that_rests_on_the_old_one(tmp_path, monkeypatch):
    few = {"n_recipes": 2, "n_per_subset": 1, "conditions": ["llm_to_name_100pct"]}
    alone("01_sampling", tmp_path / "outputs", monkeypatch, tmp_path, **few)
    alone("03_anchoring", tmp_path / "outputs", monkeypatch, tmp_path)
    alone("01_sampling", tmp_path / "outputs", monkeypatch, tmp_path, seed=7, **few | {"n_recipes": 1})
    alone("03_anchoring", tmp_path / "outputs", monkeypatch, tmp_path)
    data = tmp_path / "outputs" / "demo" / "data"
    judged = set(pq.read_table(data / "judgements.parquet", columns=["item_id"])["item_id"].to_pylist())
    assert judged == set(pq.read_table(data / "items.parquet", columns=["item_id"])["item_id"].to_pylist())
