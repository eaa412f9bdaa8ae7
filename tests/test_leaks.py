"""Small sides with one flaw each, in every way in which prompts and answers are written."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from datasets import Dataset

from helpers.pairing import pair_rows, split, with_texts
from helpers.pairing.leaks import check, leak_report, nearly_equal
from helpers.pairing.preferences import prompt_text


def side(*rows):
    return pd.DataFrame(rows, columns=["sample_id", "prompt", "chosen", "rejected"])


TRAIN = side(("a", "heat the powder in air", "good", "bad"), ("b", "cool the melt in water", "fine", "poor"))
CLEAN = side(("c", "press the pellet and polish it", "right", "wrong"))


def test_sides_that_share_nothing_are_clean_and_sound():
    report = leak_report(TRAIN, CLEAN)
    assert (report.clean, report.sound, report.train_rows, report.validation_rows) == (True, True, 2, 1)
    assert report.table()["found"].tolist() == [0] * 10
    assert report.table()["of"].tolist() == [1, 1, 1, 1, 1, 3, 3, 3, 3, 3]


def test_a_shared_sample_is_a_leak():
    report = leak_report(TRAIN, CLEAN.assign(sample_id="b"))
    assert (report.shared_samples, report.sample_rows, report.shared_prompts) == (1, 1, 0)
    assert report.examples == ("b",)
    assert not report.clean


def test_a_shared_prompt_is_a_leak_and_counted_once():
    twice = pd.concat([TRAIN.head(1), TRAIN.head(1)]).assign(sample_id="c", chosen=["x", "y"])
    report = leak_report(TRAIN, twice)
    assert (report.shared_samples, report.shared_prompts, report.prompt_rows) == (0, 1, 2)
    assert not report.clean


def test_a_prompt_that_is_nearly_the_same_is_a_leak():
    words = " ".join(f"step{n}" for n in range(60))
    train, near = TRAIN.assign(prompt=words), CLEAN.assign(prompt=words.upper().replace("STEP30", "STEP 30"))
    report = leak_report(train, near)
    assert (report.shared_prompts, report.near_prompts) == (0, 1)
    assert not report.clean
    assert leak_report(train, CLEAN.assign(prompt=" ".join(words.split()[::-1]))).clean


def test_the_wording_of_a_template_makes_no_near_duplicate():
    rows = [
        (f"s{n}", f"material{n} oxide{n} " + "judge this recipe step by step " * 9 + f"end{n}", "x", "y")
        for n in range(30)
    ]
    table = side(*rows)
    assert leak_report(table.head(20), table.tail(10)).clean


def test_repeated_and_contradicting_pairs_are_counted_over_both_sides():
    swapped = TRAIN.head(1).rename(columns={"chosen": "rejected", "rejected": "chosen"})
    report = leak_report(TRAIN, pd.concat([swapped, TRAIN.tail(1)]))
    assert (report.swapped_pairs, report.identical_pairs) == (2, 1)
    assert not report.sound


def test_equal_and_empty_answers_are_counted():
    train = pd.concat(
        [TRAIN.assign(chosen=["25 \u212b ", ""], rejected=["25 \u00c5", "x"]), CLEAN.assign(chosen="wrong")]
    )
    report = leak_report(train, CLEAN.assign(sample_id="d", prompt="anneal it"))
    assert (report.equal_answers, report.empty_answers, report.swapped_pairs) == (2, 1, 0)
    assert report.clean
    assert not report.sound


WORDS = "".join(f"step {n:02d} heats it. " for n in range(10)).strip()  # 179 signs


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a" * 99 + "b", "a" * 99 + "c", True),  # 2 * 99 / 200 = 0.99
        ("a" * 98 + "bb", "a" * 98 + "cc", False),  # 2 * 98 / 200 = 0.98, not above
        ("a" * 99 + "bb", "a" * 99 + "cc", True),  # 2 * 99 / 202 = 0.9802
        ("a" * 100, "a" * 104, True),  # 2 * 100 / 204 = 0.9804
        ("a" * 98, "a" * 102, False),  # 2 * 98 / 200
        ("b" + "a" * 50, "a" * 50 + "b", True),  # the longest common subsequence is 50 a: 2 * 50 / 102 = 0.9804
        ("a" * 24 + "b", "a" * 24 + "c", False),  # 2 * 24 / 50 = 0.96
        (WORDS, WORDS.replace("05", "5"), True),  # 2 * 178 / 357 = 0.9972
        (WORDS, WORDS.replace("heats", "cools"), False),  # of each word only the s stays: 2 * 139 / 358 = 0.78
        (WORDS, WORDS[::-1], False),
        ("铁" * 60 + "炉", "铁" * 60 + "火", True),  # 2 * 60 / 122 = 0.984
        ("a" * 60, "a" * 60 + "\n" * 9, True),  # trimmed
    ],
)
def test_texts_are_nearly_equal_above_0_98(one, other, expected):
    assert nearly_equal(one, other) == nearly_equal(other, one) == expected


def test_nearly_equal_answers_are_counted_apart_from_equal_ones_and_only_warn():
    chosen = [WORDS, WORDS, WORDS + " ", "short"]
    rejected = [WORDS.replace("05", "5"), WORDS.replace("heats", "cools"), WORDS, "short!"]
    train = side(*((f"t{n}", f"make material {n}", *pair) for n, pair in enumerate(zip(chosen, rejected, strict=True))))
    validation = side(("v", "press the pellet", WORDS.upper(), WORDS.upper() + "!"))
    report = leak_report(train, validation)
    assert (report.near_equal_answers, report.equal_answers) == (2, 1)
    found = report.table().set_index("check").loc["pairs with chosen nearly equal to rejected"]
    assert found.tolist() == [2, 5, 0.4]
    assert not report.sound
    assert leak_report(train.drop(index=2), validation).sound


def test_tables_without_answers_have_no_nearly_equal_ones():
    report = leak_report(TRAIN[["sample_id", "prompt"]], CLEAN[["sample_id", "prompt"]])
    assert (report.near_equal_answers, report.sound) == (0, True)


@pytest.mark.parametrize("form", ["messages", "json", "arrays", "conversation", "sharegpt"])
def test_every_way_to_write_a_pair_gives_the_same_report(form):
    def messages(role, text):
        return [{"role": role, "content": text}]

    def written(row):
        prompt = [{"role": "system", "content": "be strict"}, *messages("user", row.prompt)]
        chosen, rejected = messages("assistant", row.chosen), messages("assistant", row.rejected)
        if form == "json":
            return [row.sample_id, *(json.dumps(part) for part in (prompt, chosen, rejected))]
        if form == "conversation":
            return [row.sample_id, row.prompt, prompt + chosen, prompt + rejected]
        if form == "arrays":
            return [row.sample_id, *(np.array(part) for part in (prompt, chosen, rejected))]
        if form == "sharegpt":
            return [
                row.sample_id,
                row.prompt,
                [{"from": "gpt", "value": row.chosen}],
                [{"from": "gpt", "value": row.rejected}],
            ]
        return [row.sample_id, prompt, chosen, rejected]

    sides = [
        side(*(written(row) for row in table.itertuples())) for table in (TRAIN, pd.concat([CLEAN, TRAIN.head(1)]))
    ]
    if form == "conversation":
        sides = [table.drop(columns="prompt") for table in sides]
    assert leak_report(*sides) == leak_report(TRAIN, pd.concat([CLEAN, TRAIN.head(1)]))


def test_text_that_only_looks_like_messages_is_text():
    for text in ('[{"not": json', '[{"some": "table"}]', '[{"role": "user"}, 3]'):
        assert prompt_text(text) == text
    assert prompt_text(None) == ""


def test_empty_sides_are_clean():
    report = leak_report(TRAIN, TRAIN.head(0))
    assert report.clean
    assert report.table()["share"].isna().sum() == 5


def test_tables_without_ids_say_so():
    report = leak_report(TRAIN.drop(columns="sample_id"), TRAIN)
    assert (report.has_ids, report.shared_samples, report.shared_prompts) == (False, 0, 2)


def test_files_folders_and_datasets_are_read_alike(tmp_path):
    for name, table in (("train", TRAIN), ("validation", TRAIN)):
        (tmp_path / name).mkdir()
        table.to_parquet(tmp_path / name / "part.parquet", index=False)
    expected = leak_report(TRAIN, TRAIN)
    assert check(tmp_path / "train" / "part.parquet", tmp_path / "validation") == expected
    assert check(Dataset.from_pandas(TRAIN), Dataset.from_pandas(TRAIN)) == expected


def test_unreadable_and_foreign_files_are_named(tmp_path):
    good, cut, foreign = tmp_path / "good.parquet", tmp_path / "cut.parquet", tmp_path / "foreign.parquet"
    TRAIN.to_parquet(good)
    cut.write_bytes(good.read_bytes()[:-20])
    TRAIN[["sample_id"]].to_parquet(foreign)
    for other, message in (
        (cut, r"cut\.parquet cannot be read as Parquet"),
        (foreign, r"foreign\.parquet has the columns \['sample_id'\]; pairs have chosen and rejected"),
        (tmp_path / "none.parquet", r"none\.parquet cannot be read"),
    ):
        with pytest.raises(ValueError, match=message):
            check(good, other)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"holds no \.parquet file"):
        check(good, tmp_path / "empty")


def test_a_split_of_our_own_is_clean_by_sample_and_leaks_by_row():
    from helpers.anchoring import anchor_scores
    from tests.bench_pairing import JUDGES, judgements

    table = judgements(30).to_pandas()
    pairs = pair_rows(table, anchor_scores(table), judges=JUDGES)
    sides = split(pairs, texts=table)
    whole = with_texts(pairs, table)
    report = leak_report(whole[sides == "train"], whole[sides == "validation"])
    assert report.clean
    assert report.sound
    assert sides.equals(split(whole))
    sides = split(pairs, by="row")
    report = leak_report(whole[sides == "train"], whole[sides == "validation"])
    assert report.shared_samples == report.validation_samples == 30
    assert report.prompt_rows > 0.95 * report.validation_rows
