"""Texts in pieces, as Parquet gives them, behave like texts in one."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from helpers.pairing.texts import Texts, common_wording, digests, pair_keys, same_text, signatures, similar

WORDS = ["a", "bb", None, "", "ccc °", "a"]
PIECES = {
    "one": pd.Series(WORDS, dtype="str"),
    "pieces": pa.chunked_array([WORDS[:1], [], WORDS[1:4], WORDS[4:]], pa.string()).to_pandas(),
    "category": pd.Series(WORDS, dtype="category"),
    "objects": pd.Series(WORDS, dtype=object),
}


@pytest.mark.parametrize("column", PIECES.values(), ids=PIECES)
def test_rows_are_found_wherever_their_text_lies(column):
    texts = Texts.of(column).take(np.array([4, 0, 5, 1, 4, 3]))
    assert [bytes(span).decode() for span in texts.spans()] == ["ccc °", "a", "a", "bb", "ccc °", ""]
    assert texts.sizes().tolist() == [6, 1, 1, 2, 6, 0]
    values, back = texts.distinct()
    assert values.take(pa.array(back)).to_pylist() == ["ccc °", "a", "a", "bb", "ccc °", ""]
    assert Texts.of(column).places[2] == -1
    assert digests(texts)[0] == int.from_bytes(hashlib.sha256("ccc °".encode()).digest()[:8], "little")


@pytest.mark.parametrize("column", [PIECES["one"].head(0), pa.chunked_array([], pa.string()).to_pandas()])
def test_an_empty_column_has_no_texts(column):
    texts = Texts.of(column)
    assert list(texts.spans()) == []
    assert len(texts.distinct()[0]) == 0
    assert pair_keys(texts, texts, texts).empty


def test_texts_are_the_same_but_for_margins_and_unicode_form():
    assert same_text(" A\u030a\n", "\u00c5")
    assert not same_text("10\u2075", "105")


def test_the_estimate_is_near_the_jaccard_index():
    # 100 words in common and 25 of each side's own, all different: 98 of 98 + 25 + 25 triples
    shared = [f"s{n}" for n in range(100)]
    one, other = (" ".join(shared + [f"{side}{n}" for n in range(25)]) for side in "ab")
    found = signatures([one, other])
    assert (found[0] == found[1]).mean() == pytest.approx(98 / 148, abs=3 * 0.04)
    assert [pair[0].tolist() for pair in similar(found[:1], found[1:], 0.5) if len(pair[0])]


def test_only_later_rows_of_the_same_table_are_compared():
    found = signatures(["heat it in air", "cool it in water", "heat  it in AIR"])
    pairs = {(i, j) for rows in similar(found, found, 0.8) for i, j in zip(*map(np.ndarray.tolist, rows), strict=True)}
    assert pairs == {(0, 2)}


def test_common_wording_is_that_of_more_than_nine_in_ten():
    texts = [f"always the same beginning then word{n}" for n in range(20)]
    assert len(common_wording(texts)) == 3
    assert len(common_wording([*texts, "another", "text", "and", "more"])) == 0
    assert len(common_wording([])) == 0
    assert len(common_wording(texts[:19])) == 0  # of so few, a recipe's own wording
