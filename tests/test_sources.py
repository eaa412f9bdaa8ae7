import json
import re
from collections import Counter

import datasets
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers import principles, sources
from helpers.sources import SourceError

RECIPE = {
    "sample_id": "r1",
    "contribution": "Make ZnO.",
    "recipe": "## Materials\n- ZnCl2",
    "Material_Name": "ZnO",
    "process": "sol-gel",
    "domain": "oxides",
}
TRUTHFUL = "Type,Question,Best Answer,Correct Answers,Incorrect Answers\nA,Is ice hot?,No,No; It is cold,Yes\n"
FALSE = """question,answer,label
Why is ice hot?,"['Ice isn\\'t hot.', ""Ice is cold, it's frozen water.""]",1
Why is ice cold?,It is frozen water.,0
"""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def write(tmp_path, name, content):
    if not isinstance(content, str):
        content = "".join(json.dumps(row) + "\n" for row in content)
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    return name


# The files that come with the package


def test_builtin_recipes_are_many_varied_and_well_formed():
    frame = sources.recipes("builtin").frame
    assert len(frame) >= 44
    assert frame["process"].nunique() >= 9
    assert frame["process"].head(40).nunique() >= 9
    assert frame["sample_id"].is_unique
    assert frame["recipe"].str.len().between(700, 2500).all()
    for recipe in frame["recipe"]:
        headings = re.findall(r"^#+ .*$", recipe, re.MULTILINE)
        assert headings == ["## Materials", "## Equipment", "## Procedure", "## Characterization"]
        steps = re.findall(r"^(\d+)\. ", recipe, re.MULTILINE)
        assert steps == [str(n) for n in range(1, len(steps) + 1)]
    assert (frame[["contribution", "Material_Name", "domain"]] != "").all(axis=None)


def test_builtin_instructions_fill_every_subset_and_answer_the_questions():
    frame = sources.instructions("builtin", subsets=principles.subsets()).frame
    counts = frame["dataset_name"].value_counts()
    assert set(counts.index) == set(principles.subsets())
    assert counts.min() >= 20
    assert frame["instruction"].is_unique
    questions = frame["dataset_name"].isin(["truthful_qa", "false_qa"])
    assert frame.loc[questions, "correct_answers"].map(bool).all()
    assert frame.loc[questions, "incorrect_answers"].map(bool).all()
    assert not frame.loc[~questions, ["correct_answers", "incorrect_answers"]].map(bool).any(axis=None)


def test_builtin_rows_name_no_path():
    assert set(sources.recipes("builtin").frame["source"]) == {"builtin"}


# Files


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json", "parquet"])
def test_recipes_are_the_same_in_every_kind_of_file(tmp_path, kind):
    rows = pd.DataFrame([RECIPE, RECIPE | {"sample_id": "r2"}])
    path = tmp_path / f"mine.{kind}"
    {
        "csv": lambda: rows.to_csv(path, index=False),
        "jsonl": lambda: rows.to_json(path, orient="records", lines=True),
        "json": lambda: rows.to_json(path, orient="records"),
        "parquet": lambda: rows.to_parquet(path),
    }[kind]()
    loaded = sources.recipes(path.name)
    assert loaded.frame.to_dict("records") == [
        RECIPE | {"source": path.name},
        RECIPE | {"sample_id": "r2", "source": path.name},
    ]
    assert (loaded.rows_read, loaded.left_out) == (2, {})
    assert set(loaded.frame.dtypes.astype(str)) == {"str"}


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path):
    text = 'sample_id,contribution,recipe\n1,Make it,"## Materials\n- ZnO"\n'
    write(tmp_path, "unix.csv", text)
    write(tmp_path, "windows.csv", "\ufeff" + text.replace("\n", "\r\n"))
    unix, windows = (sources.recipes(name).frame.drop(columns="source") for name in ("unix.csv", "windows.csv"))
    pd.testing.assert_frame_equal(unix, windows)
    assert unix["recipe"].tolist() == ["## Materials\n- ZnO"]


def test_texts_that_look_like_missing_values_stay_texts(tmp_path):
    words = ["None", "NA", "null", "N/A", "nan", "0123", "1e5", "no"]
    write(tmp_path, "a.csv", "sample_id,contribution,recipe\n" + "".join(f"{w},{w},{w}\n" for w in words))
    frame = sources.recipes("a.csv").frame
    assert frame["sample_id"].tolist() == frame["contribution"].tolist() == frame["recipe"].tolist() == words


def test_whole_number_ids_keep_their_digits_beside_a_missing_one(tmp_path):
    rows = [RECIPE | {"sample_id": 2**53 + 1}, RECIPE | {"sample_id": None, "recipe": "Other."}]
    write(tmp_path, "a.jsonl", rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.parquet"):
        first, second = sources.recipes(name).frame["sample_id"]
        assert first == "9007199254740993"
        assert re.fullmatch("[0-9a-f]{16}", second)


def test_an_id_that_has_become_a_float_is_an_error(tmp_path):
    write(tmp_path, "a.jsonl", [RECIPE | {"sample_id": 1.0}])
    with pytest.raises(SourceError, match=r"a\.jsonl, row 1, column 'sample_id': 1\.0 is no id"):
        sources.recipes("a.jsonl")


def test_rows_without_ids_are_named_by_their_content(tmp_path):
    write(tmp_path, "a.csv", "contribution,recipe\nMake A,Mix.\nMake B,Heat.\n")
    write(tmp_path, "b.csv", "recipe,contribution\nNew.,Make C\nHeat.,Make B\nMix.,Make A\n")
    a, b = (sources.recipes(name).frame["sample_id"].tolist() for name in ("a.csv", "b.csv"))
    assert b[1:] == a[::-1]
    assert len({*a, *b}) == 3


def test_a_repeated_row_without_an_id_is_left_out_and_counted(tmp_path):
    write(tmp_path, "a.csv", "contribution,recipe\nMake A,Mix.\nMake A,Mix.\n")
    loaded = sources.recipes("a.csv")
    assert (len(loaded.frame), loaded.rows_read, loaded.left_out) == (1, 2, {"repeats an earlier row": 1})


def test_an_empty_recipe_is_left_out_and_counted(tmp_path):
    write(
        tmp_path,
        "a.jsonl",
        [RECIPE, RECIPE | {"sample_id": "r2", "recipe": " \n"}, RECIPE | {"sample_id": "r3", "recipe": None}],
    )
    loaded = sources.recipes("a.jsonl")
    assert (loaded.frame["sample_id"].tolist(), loaded.rows_read) == (["r1"], 3)
    assert loaded.left_out == {"recipe is empty": 2}


def test_the_first_n_are_taken_or_all_if_there_are_fewer(tmp_path):
    write(tmp_path, "a.jsonl", [RECIPE | {"sample_id": f"r{i}"} for i in range(5)])
    two, nine = sources.recipes("a.jsonl", n=2), sources.recipes("a.jsonl", n=9)
    assert (two.frame["sample_id"].tolist(), two.left_out) == (["r0", "r1"], {"after the first 2": 3})
    assert (len(nine.frame), nine.left_out) == (5, {})


def test_a_glob_joins_files_in_order_of_name(tmp_path):
    write(tmp_path, "b.jsonl", [RECIPE])
    write(tmp_path, "a.jsonl", [RECIPE | {"sample_id": "r0"}])
    frame = sources.recipes("*.jsonl").frame
    assert frame[["sample_id", "source"]].values.tolist() == [["r0", "a.jsonl"], ["r1", "b.jsonl"]]


def test_the_title_stands_in_for_a_contribution_that_is_not_there(tmp_path):
    write(tmp_path, "a.jsonl", [{"id": 7, "title": "ZnO rods", "recipe": "Mix."}])
    assert sources.recipes("a.jsonl").frame.loc[0, ["sample_id", "contribution", "process"]].tolist() == [
        "7",
        "ZnO rods",
        "",
    ]


def test_other_columns_are_mapped(tmp_path):
    write(tmp_path, "a.csv", "nr,goal,text\n1,Make A,Mix.\n")
    columns = {"sample_id": "nr", "contribution": "goal", "recipe": "text", "instruction": "of the other table"}
    assert sources.recipes("a.csv", columns=columns).frame["recipe"].tolist() == ["Mix."]


# Instructions


def test_truthful_qa_rows_are_recognised(tmp_path):
    write(tmp_path, "t.csv", TRUTHFUL)
    row = sources.instructions("t.csv").frame.iloc[0]
    assert row[["dataset_name", "instruction", "source"]].tolist() == ["truthful_qa", "Is ice hot?", "t.csv"]
    assert (row["correct_answers"], row["incorrect_answers"]) == (["No", "It is cold"], ["Yes"])


def test_false_qa_rows_with_label_1_are_taken(tmp_path):
    write(tmp_path, "f.csv", FALSE)
    loaded = sources.instructions("f.csv")
    assert loaded.frame["correct_answers"].tolist() == [["Ice isn't hot.", "Ice is cold, it's frozen water."]]
    assert (loaded.frame.loc[0, "dataset_name"], loaded.left_out) == ("false_qa", {"label is 0": 1})


def test_ultrafeedback_rows_are_recognised_and_its_none_means_no_answer(tmp_path):
    row = {"source": "flan", "instruction": "Add 1 and 1.", "models": [], "completions": [{"x": 1}]}
    none = {"correct_answers": ["None"], "incorrect_answers": ["None"]}
    write(
        tmp_path,
        "u.jsonl",
        [row | none, row | {"instruction": "Name it.", "correct_answers": ["None"], "incorrect_answers": []}],
    )
    frame = sources.instructions("u.jsonl").frame
    assert frame["dataset_name"].tolist() == ["flan", "flan"]
    assert frame["correct_answers"].tolist() == [[], ["None"]]


def test_the_first_n_of_each_subset_are_taken(tmp_path):
    write(tmp_path, "t.csv", TRUTHFUL + "A,Is fire cold?,No,No,Yes\n")
    write(tmp_path, "u.csv", FALSE)
    loaded = sources.instructions("*.csv", n_per_subset=1)
    assert loaded.frame["dataset_name"].tolist() == ["truthful_qa", "false_qa"]
    assert loaded.rows_read == 4 == len(loaded.frame) + sum(loaded.left_out.values())


@pytest.mark.parametrize("text", ["['a' 'b']", "[a, b]", "[1, 2]", "['a', __import__('os')]", "['a'", "[['a']]"])
def test_a_written_list_that_is_no_list_of_texts_is_an_error(tmp_path, text):
    write(tmp_path, "f.csv", f'question,answer,label\nWhy?,"{text}",1\n')
    with pytest.raises(SourceError, match=r"f\.csv, row 1, column 'answer'"):
        sources.instructions("f.csv")


def test_an_unknown_subset_is_an_error_where_the_known_ones_are_given(tmp_path):
    write(tmp_path, "u.jsonl", [{"source": "alpaca", "instruction": "Hi"}])
    assert len(sources.instructions("u.jsonl").frame) == 1
    with pytest.raises(SourceError, match=r"u\.jsonl, row 1: unknown subset 'alpaca'; known: flan"):
        sources.instructions("u.jsonl", subsets=["flan"])


# What cannot be used


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.csv",
            "sample_id,recipe\n1,Mix.\n",
            r"a\.csv: has no column 'contribution' or 'title'.*only sample_id, recipe",
        ),
        ("a.csv", "", r"a\.csv: holds no rows"),
        ("a.csv", "sample_id,contribution,recipe\n", r"a\.csv: holds no rows"),
        ("a.jsonl", "", r"a\.jsonl: holds no rows"),
        ("a.csv", "contribution,recipe\nMake A\n", r"a\.csv.*line 2 has 1 fields, the header has 2"),
        ("a.csv", 'contribution,recipe\nMake A,"Mix', r"a\.csv: cannot be read, it may be cut off: unexpected end"),
        ("a.csv", "recipe,recipe,title\n1,2,3\n", r"a\.csv.*column 'recipe' is there twice"),
        ("a.jsonl", '{"title": "A", "recipe": "Mix"}\n{"title": "B", "rec', r"a\.jsonl.*line 2 is not JSON"),
        ("a.jsonl", "[1]\n", r"a\.jsonl.*row 1 is not an object"),
        ("a.json", '{"title": "A"}', r"a\.json.*it is not a list of objects"),
        ("a.parquet", "PAR1", r"a\.parquet: cannot be read"),
        ("a.txt", "Mix.", r"a\.txt: is not a file that can be read; give \.csv, \.jsonl, \.json, \.parquet"),
        ("a.csv", "title,recipe\nA,\n", r"a\.csv: no row can be used: \{'recipe is empty': 1\}"),
        ("a.jsonl", '{"title": "A", "recipe": ["Mix"]}', r"a\.jsonl, row 1, column 'recipe': \['Mix'\] is no text"),
    ],
)
def test_an_input_that_cannot_be_used_is_an_error_with_the_file_name(tmp_path, name, content, message):
    write(tmp_path, name, content)
    with pytest.raises(SourceError, match=message):
        sources.recipes(name)


def test_text_that_is_not_utf8_is_an_error(tmp_path):
    (tmp_path / "a.csv").write_bytes("title,recipe\nA,80 °C\n".encode("latin-1"))
    with pytest.raises(SourceError, match=r"a\.csv: cannot be read.*utf-8"):
        sources.recipes("a.csv")


def test_duplicate_ids_are_listed_with_their_places(tmp_path):
    rows = [RECIPE | {"sample_id": i, "recipe": f"{n}"} for n, i in enumerate([1, 2, 1, 3, 3])]
    write(tmp_path, "a.jsonl", rows)
    with pytest.raises(
        SourceError, match=r"2 ids stand more than once: '1' \(a\.jsonl, row 1, column 'sample_id'; .*row 3"
    ):
        sources.recipes("a.jsonl", n=1)


def test_a_file_that_is_nowhere_is_an_error_that_says_where_it_was_sought(tmp_path):
    with pytest.raises(SourceError, match=rf"'no\.csv' is not there; looked in {re.escape(str(tmp_path))} and "):
        sources.recipes("no.csv")
    with pytest.raises(SourceError, match=r"no file fits 'no\*\.csv', neither in"):
        sources.recipes("no*.csv")


def test_a_mapping_that_does_not_fit_is_an_error(tmp_path):
    write(tmp_path, "a.csv", "title,recipe\nA,Mix.\n")
    with pytest.raises(SourceError, match=r"a\.csv: has no column 'goal' for 'contribution'"):
        sources.recipes("a.csv", columns={"contribution": "goal"})
    with pytest.raises(SourceError, match="'receipt' is none of our columns"):
        sources.recipes("a.csv", columns={"receipt": "recipe"})


# Datasets


def test_a_dataset_is_loaded_by_split(tmp_path):
    folder = tmp_path / "omg"
    folder.mkdir()
    pd.DataFrame([RECIPE | {"sample_id": 2**53 + 1}]).to_json(folder / "train.jsonl", orient="records", lines=True)
    pd.DataFrame([RECIPE | {"sample_id": 3}]).to_json(folder / "test.jsonl", orient="records", lines=True)
    frame = sources.recipes("hf:omg:test").frame
    assert frame[["sample_id", "source"]].values.tolist() == [["3", "omg"]]
    assert sources.recipes("hf:omg:train").frame["sample_id"].tolist() == ["9007199254740993"]
    with pytest.raises(SourceError, match="hf:omg: has the splits train, test; name one: hf:omg:train"):
        sources.recipes("hf:omg")


def test_a_dataset_that_cannot_be_had_is_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match=r"hf:empty: cannot be loaded \("):
        sources.recipes("hf:empty")


def test_rows_read_are_rows_kept_and_rows_left_out(tmp_path):
    rows = [RECIPE | {"sample_id": None, "recipe": text} for text in ("a", "a", "", "b", "c")]
    write(tmp_path, "a.jsonl", rows)
    loaded = sources.recipes("a.jsonl", n=2)
    assert Counter(loaded.left_out) == {"repeats an earlier row": 1, "recipe is empty": 1, "after the first 2": 1}
    assert loaded.rows_read == len(loaded.frame) + sum(loaded.left_out.values())
