"""What is written can be opened, says what it holds, and never replaces a good dataset with half of one."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import List, Value, load_dataset

from helpers.export import PUBLISHED_COLUMNS, Track, push, write_dataset
from helpers.export.card import Card
from helpers.pairing.leaks import leak_report
from helpers.runs import replacing_folder

CARD = Card(
    title="Toy pairs",
    licence="cc-by-4.0",
    sources={"recipes.jsonl": "cc-by-4.0"},
    judges={"x": "rules", "y": "rules"},
    made=["Pairs by the published rule."],
    limits=["Two judges only."],
)


def pairs(n=10, **columns):
    rows = [
        {
            "prompt": f'judge "recipe" {i}\nat 500 °C',
            "chosen": f'poor\t\\ {i} {{"overall_score": 2}}',
            "rejected": f'good {i} {{"overall_score": 4}}',
            "score_chosen": 2.0,
            "score_rejected": 4.0,
            "score_delta": 2.0,
            "anchor_score": 3.5,
            "sample_id": str(i),
            "perturbation_type": "action_antonym",
            "perturbation_category": "error",
            "perturbation_rate": 1.0,
            "chosen_model": "x",
            "rejected_model": "y",
            "dataset_name": "action_antonym_100pct",
            "split": "train" if i < n - 2 else "validation",
        }
        for i in range(n)
    ]
    return pd.DataFrame(rows).assign(**columns)


def opened(folder, tmp_path, name=None):
    return load_dataset(str(folder), name, cache_dir=str(tmp_path / "cache"))


def test_messages_open_as_a_trainer_wants_them(tmp_path):
    files = write_dataset([Track("recipes", pairs(), "Be strict.")], tmp_path / "dataset", card=CARD)
    data = opened(tmp_path / "dataset", tmp_path)
    assert {split: len(data[split]) for split in data} == {"train": 8, "validation": 2}
    assert files["rows"].tolist() == [8, 2]
    first = data["train"][0]
    assert first["prompt"] == [
        {"role": "system", "content": "Be strict."},
        {"role": "user", "content": 'judge "recipe" 0\nat 500 °C'},
    ]
    assert first["chosen"] == [{"role": "assistant", "content": 'poor\t\\ 0 {"overall_score": 2}'}]
    assert data["train"].features["prompt"] == List({"role": Value("string"), "content": Value("string")})
    assert first["sample_id"] == "0"
    assert list(first)[:13] == list(PUBLISHED_COLUMNS)


def test_json_is_the_published_columns_and_types(tmp_path):
    write_dataset(
        [Track("recipes", pairs(), 'Be "strict".\x01')], tmp_path / "dataset", card=CARD, message_format="json"
    )
    data = opened(tmp_path / "dataset", tmp_path)["train"]
    text, number = Value("string"), Value("float64")
    types = [text] * 3 + [number] * 4 + [Value("int64"), text, text, number, text, text]
    assert list(data.features.items()) == list(zip(PUBLISHED_COLUMNS, types, strict=True))
    system, user = (
        {"role": "system", "content": 'Be "strict".\x01'},
        {"role": "user", "content": 'judge "recipe" 0\nat 500 °C'},
    )
    assert data[0]["prompt"] == json.dumps([system, user], ensure_ascii=False)
    assert json.loads(data[0]["chosen"])[0]["content"] == 'poor\t\\ 0 {"overall_score": 2}'


def test_control_characters_are_escaped_like_json_does(tmp_path):
    text = 'a\x00b\x1fc\x7f\u2028\b\f\r\n\t"\\'
    write_dataset([Track("recipes", pairs(chosen=text))], tmp_path / "dataset", card=CARD, message_format="json")
    written = pq.read_table(tmp_path / "dataset" / "recipes")["chosen"][0].as_py()
    assert written == json.dumps([{"role": "assistant", "content": text}], ensure_ascii=False)


@pytest.mark.parametrize("ids", [["a", *"123456789"], ["007", *"123456789"], ["9" * 19, *"123456789"]])
def test_ids_that_are_no_plain_whole_numbers_stay_text(ids, tmp_path):
    write_dataset([Track("recipes", pairs(sample_id=ids))], tmp_path / "dataset", card=CARD, message_format="json")
    assert pq.read_table(tmp_path / "dataset" / "recipes")["sample_id"].to_pylist() == ids
    assert "| sample_id | string |" in (tmp_path / "dataset" / "README.md").read_text()


def test_large_ids_survive_exactly(tmp_path):
    ids = [2**53 + 1 + n for n in range(10)]
    write_dataset([Track("recipes", pairs(sample_id=ids))], tmp_path / "dataset", card=CARD, message_format="json")
    assert pq.read_table(tmp_path / "dataset" / "recipes")["sample_id"].to_pylist() == ids


def test_text_is_written_as_string_and_all_null_columns_keep_their_type(tmp_path):
    table = pairs(domain=pd.array([None] * 10, dtype="str"), anchor_score=np.nan)
    write_dataset([Track("recipes", table)], tmp_path / "dataset", card=CARD)
    schema = pq.read_schema(tmp_path / "dataset" / "recipes" / "train-00000-of-00001.parquet")
    assert schema.field("domain").type == schema.field("dataset_name").type == pa.string()
    assert schema.field("anchor_score").type == pa.float64()
    assert schema.metadata is None


def test_row_groups_are_small_and_rows_keep_their_order(tmp_path):
    table = pd.concat([pairs(10)] * 1000, ignore_index=True).assign(split="train")
    table["sample_id"] = table.index.astype("str")
    write_dataset([Track("recipes", table)], tmp_path / "dataset", card=CARD)
    file = pq.ParquetFile(tmp_path / "dataset" / "recipes" / "train-00000-of-00001.parquet")
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [8192, 1808]
    assert file.read(["sample_id"])["sample_id"].to_pylist() == table["sample_id"].tolist()
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_positions_are_written_like_texts(tmp_path):
    table = pairs()
    texts = pd.DataFrame({"user": table["prompt"], "text": table["chosen"]})
    texts = pd.concat([texts, pd.DataFrame({"user": table["prompt"], "text": table["rejected"]})], ignore_index=True)
    rows = table.assign(prompt=range(10), chosen=range(10), rejected=range(10, 20))
    for message_format in ("json", "messages"):
        write_dataset([Track("recipes", table)], tmp_path / "texts", card=CARD, message_format=message_format)
        write_dataset(
            [Track("recipes", rows, texts=texts)], tmp_path / "rows", card=CARD, message_format=message_format
        )
        for file in ("train-00000-of-00001.parquet", "validation-00000-of-00001.parquet"):
            assert (tmp_path / "texts/recipes" / file).read_bytes() == (tmp_path / "rows/recipes" / file).read_bytes()


def test_the_second_track_is_a_configuration_of_its_own(tmp_path):
    instructions = pairs(4).drop(columns=["perturbation_type", "perturbation_category", "perturbation_rate"])
    tracks = [Track("recipes", pairs(), "Be strict."), Track("instructions", instructions)]
    write_dataset(tracks, tmp_path / "dataset", card=CARD)
    data = opened(tmp_path / "dataset", tmp_path, "instructions")
    assert data["train"][0]["prompt"] == [{"role": "user", "content": 'judge "recipe" 0\nat 500 °C'}]
    assert "perturbation_type" not in data["train"].column_names
    assert len(opened(tmp_path / "dataset", tmp_path)["train"]) == 8


def test_a_side_without_rows_is_not_announced(tmp_path):
    write_dataset([Track("recipes", pairs(split="train"))], tmp_path / "dataset", card=CARD)
    assert list(opened(tmp_path / "dataset", tmp_path)) == ["train"]


def test_answers_that_say_the_same_are_left_out_and_counted(tmp_path):
    table = pairs()
    table.loc[3, ["chosen", "rejected"]] = ["  at 25 \u212b", "at 25 \u00c5\n"]
    files = write_dataset([Track("recipes", table)], tmp_path / "dataset", card=CARD)
    assert files["rows"].sum() == 9
    assert files["left_out"].tolist() == [1, 1]
    assert "1 pairs of `recipes` were left out" in (tmp_path / "dataset" / "README.md").read_text()


def test_a_side_of_which_nothing_is_left_is_not_announced(tmp_path):
    table = pairs()
    table.loc[table["split"] == "validation", ["chosen", "rejected"]] = "the same"
    files = write_dataset([Track("recipes", table)], tmp_path / "dataset", card=CARD)
    assert files[["split", "rows", "left_out"]].to_numpy().tolist() == [["train", 8, 2]]


@pytest.mark.parametrize("column", ["prompt", "chosen", "rejected"])
@pytest.mark.parametrize("text", ["", " \n", None])
def test_an_empty_text_is_refused_by_name(column, text, tmp_path):
    table = pairs()
    table.loc[9, column] = text
    with pytest.raises(ValueError, match=f"{column} is empty in the pair .*'sample_id': '9'"):
        write_dataset([Track("recipes", table)], tmp_path / "dataset", card=CARD)
    assert list(tmp_path.iterdir()) == []


def test_no_pairs_and_unknown_formats_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no pair to write"):
        write_dataset([Track("recipes", pairs().head(0))], tmp_path / "dataset", card=CARD)
    with pytest.raises(ValueError, match="message_format is 'xml'"):
        write_dataset([Track("recipes", pairs())], tmp_path / "dataset", card=CARD, message_format="xml")


def head_of(folder):
    return yaml.safe_load((folder / "README.md").read_text().split("---\n")[1])


def test_the_card_says_what_the_files_say(tmp_path):
    folder = tmp_path / "dataset"
    for table in (pairs(1200, domain="oxides"), pairs(split="train")):
        files = write_dataset([Track("recipes", table)], folder, card=CARD)
        head, features = head_of(folder), opened(folder, tmp_path)["train"].features
        info = head["dataset_info"][0]
        assert {part["name"]: part["num_examples"] for part in info["splits"]} == dict(
            zip(files["split"], files["rows"], strict=True)
        )
        assert info["download_size"] == files["bytes"].sum()
        assert info["features"] == features._to_yaml_list()
        assert head["size_categories"] == ("1K<n<10K" if len(table) == 1200 else "n<1K")
        assert head["license"] == "cc-by-4.0"
    assert "domain" not in (folder / "README.md").read_text()


def test_the_card_says_how_the_data_were_made(tmp_path):
    figure = tmp_path / "deltas.png"
    figure.write_bytes(b"png")
    table = pairs()
    report = leak_report(table[table["split"] == "train"], table[table["split"] == "validation"])
    flow = pd.DataFrame({"dataset_name": ["a|b"], "candidates": [12]})
    card = Card(**vars(CARD) | {"figures": {figure: "Deltas."}, "leaks": {"recipes": report}, "flow": flow})
    write_dataset([Track("recipes", table)], tmp_path / "dataset", card=card)
    text = (tmp_path / "dataset" / "README.md").read_text()
    for part in (
        "No language model judged anything in this dataset.",
        "* Pairs by the published rule.",
        "* Two judges only.",
        "| recipes.jsonl | cc-by-4.0 |",
        "![Deltas.](figures/deltas.png)",
        "`recipes`: no leak was found.",
        r"| a\|b | 12 |",
        "| error | action_antonym | 10 | 10 | 2 | 2 |",
    ):
        assert part in text
    assert (tmp_path / "dataset" / "figures" / "deltas.png").read_bytes() == b"png"


def test_a_card_needs_a_licence_and_known_kinds_of_judges(tmp_path):
    for change, message in (({"licence": ""}, "needs a licence"), ({"judges": {"x": "oracle"}}, "oracle")):
        with pytest.raises(ValueError, match=message):
            write_dataset([Track("recipes", pairs())], tmp_path / "dataset", card=Card(**vars(CARD) | change))


def test_writing_twice_gives_the_same_bytes(tmp_path):
    contents = []
    for _ in range(2):
        write_dataset([Track("recipes", pairs())], tmp_path / "dataset", card=CARD)
        contents.append({path.name: path.read_bytes() for path in (tmp_path / "dataset").rglob("*") if path.is_file()})
    assert contents[0] == contents[1]


def test_a_full_disk_leaves_the_last_complete_dataset(tmp_path, monkeypatch):
    write_dataset([Track("recipes", pairs())], tmp_path / "dataset", card=CARD)
    before = (tmp_path / "dataset" / "README.md").read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(OSError, match=r"dataset was not written, the last complete one is untouched.*No space left"):
        write_dataset([Track("recipes", pairs(20))], tmp_path / "dataset", card=CARD)
    assert (tmp_path / "dataset" / "README.md").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]


KILLED = """
import os, signal, sys
from pathlib import Path
import helpers.export.files
from helpers import export
from tests.test_export import CARD, Track, pairs
def render(*_):
    os.kill(os.getpid(), signal.SIGKILL)
def rename(self, target):
    os.rename(self, target)
    if Path(target).name == ".dataset.old":
        os.kill(os.getpid(), signal.SIGKILL)
    return Path(target)
if sys.argv[2] == "writing":
    export.files.render = render
else:
    Path.rename = rename
export.write_dataset([Track("recipes", pairs(20))], sys.argv[1], card=CARD)
"""


@pytest.mark.parametrize("moment", ["writing", "renaming"])
def test_a_kill_at_any_moment_leaves_a_complete_dataset(moment, tmp_path):
    folder = tmp_path / "dataset"
    write_dataset([Track("recipes", pairs())], folder, card=CARD)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(folder), moment], check=False)
    assert killed.returncode == -9
    with replacing_folder(folder):
        assert pq.read_table(folder / "recipes").num_rows == 10  # the next run finds the last complete one
    write_dataset([Track("recipes", pairs(20))], folder, card=CARD)
    assert pq.read_table(folder / "recipes").num_rows == 20
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]


def test_push_says_what_would_go_and_uploads_only_when_told(tmp_path, monkeypatch):
    write_dataset([Track("recipes", pairs())], tmp_path / "dataset", card=CARD)
    calls = []

    class Api:
        def create_repo(self, repo_id, **options):
            calls.append(("create", repo_id, options["private"]))

        def upload_folder(self, **options):
            calls.append(("upload", options["repo_id"], options["folder_path"]))

    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    found = push(tmp_path / "dataset", "me/pairs")
    assert found["file"].tolist() == [
        "README.md",
        "recipes/train-00000-of-00001.parquet",
        "recipes/validation-00000-of-00001.parquet",
    ]
    assert calls == []
    push(tmp_path / "dataset", "me/pairs", dry_run=False)
    assert calls == [("create", "me/pairs", True), ("upload", "me/pairs", tmp_path / "dataset")]
    with pytest.raises(ValueError, match=re.escape("has no README.md")):
        push(tmp_path, "me/pairs")
