"""A tokenizer of one token a word stands in for a real one, so that every count can be done by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from helpers.export import Track, write_dataset
from helpers.export.card import Card
from helpers.export.preflight import preflight

CARD = Card("Toy", "cc0-1.0", {"toy": "cc0-1.0"}, {"x": "rules"})


class Words:
    """One token a word, and one more for every message and for the generation prompt."""

    chat_template = "yes"

    def apply_chat_template(self, messages, tokenize=True, return_dict=True, add_generation_prompt=False):
        words = [word for message in messages for word in (f"<{message['role']}>", *message["content"].split())]
        words += ["<assistant>"] if add_generation_prompt else []
        return {"input_ids": words} if tokenize else " ".join(words)

    def decode(self, tokens):
        return " ".join(tokens)


@pytest.fixture
def folder(tmp_path):
    table = pd.DataFrame(
        {
            "prompt": ["judge this", "judge that " * 10],
            "chosen": ['poor work {"overall_score": 2}', 'good {"overall_score": 4}'],
            "rejected": ['poor work indeed {"overall_score": 4}', 'bad {"overall_score": 1}'],
            "sample_id": ["a", "b"],
            "score_delta": [2.0, 3.0],
            "chosen_model": "x",
            "rejected_model": "y",
            "split": "train",
        }
    )
    write_dataset([Track("recipes", table, "be strict")], tmp_path / "dataset", card=CARD)
    return tmp_path / "dataset"


def test_lengths_are_counted_as_the_trainer_counts_them(folder):
    found = preflight(folder, Words(), max_length=100)
    # system 1 + 2, user 1 + 2 or 1 + 20, generation prompt 1; answers 4, 5, 3 and 3 words
    assert found.lengths.loc["prompt", "max"] == 25
    assert found.lengths.loc["chosen", "max"] == 4
    assert found.lengths.loc["longest", "max"] == 28
    assert (found.rows, found.of, found.enough) == (2, 2, 64)
    assert (found.dropped, found.cut, found.score_cut, found.identical) == (0, 0, 0, 0)
    assert found.rendered.startswith("<system> be strict <user> judge this <assistant> poor work")


def test_a_cut_takes_the_scores_and_then_the_difference(folder):
    # pair a keeps 7 prompt tokens and "poor work": both answers lose their score and nothing else differs
    found = preflight(folder, Words(), max_length=9)
    assert (found.dropped, found.cut, found.score_cut, found.identical) == (0.5, 1, 1, 1)
    assert found.table()["share"].tolist() == [0.5, 1, 1, 1]


def test_a_cut_of_one_answer_only_is_not_identical(folder):
    # pair a: chosen has 7 + 4 = 11 tokens, rejected 12
    found = preflight(folder, Words(), max_length=11)
    assert (found.cut, found.score_cut, found.identical) == (1, 1, 0.5)


def test_rows_are_taken_evenly(folder):
    assert preflight(folder, Words(), rows=1).rows == 1


def test_a_folder_without_complete_files_is_named(folder, tmp_path):
    with pytest.raises(ValueError, match="instructions holds no pairs"):
        preflight(folder, Words(), config="instructions")
    file = next((folder / "recipes").iterdir())
    file.write_bytes(file.read_bytes()[:-50])
    with pytest.raises(ValueError, match="recipes cannot be read as Parquet"):
        preflight(folder, Words())


def test_a_tokenizer_without_chat_template_is_refused(folder):
    with pytest.raises(ValueError, match="no chat template"):
        preflight(folder, object())


def test_a_template_that_refuses_our_roles_is_named(folder):
    class TemplateError(Exception):
        pass

    class Refuses(Words):
        def apply_chat_template(self, messages, **options):
            raise TemplateError("System role not supported")

    with pytest.raises(ValueError, match="refuses the roles system, user"):
        preflight(folder, Refuses())


def test_json_strings_are_measured_like_messages(folder, tmp_path):
    pairs = pd.DataFrame(
        {"prompt": ["judge this"], "chosen": ["poor 2"], "rejected": ["good 4"], "sample_id": ["1"], "split": "train"}
        | dict.fromkeys(("score_chosen", "score_rejected", "score_delta", "anchor_score", "perturbation_rate"), 1.0)
        | dict.fromkeys(("perturbation_type", "perturbation_category", "chosen_model", "rejected_model"), "x")
    )
    write_dataset([Track("recipes", pairs, "be strict")], tmp_path / "json", card=CARD, message_format="json")
    assert preflight(tmp_path / "json", Words()).lengths.loc["prompt", "max"] == 7
