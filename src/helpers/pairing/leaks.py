"""What two sides of a split share: samples, prompts, near-duplicates, pairs; for anybody's preference data.

Rows are read in batches and only their hashes are kept, so that a file may be larger than memory. System messages do
not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from rapidfuzz.distance import Indel

from helpers.pairing.preferences import Batch, answers, of_frame, of_source, prompts
from helpers.pairing.texts import HASHES, Signatures, Words, common_wording, same_text, signatures, similar

__all__ = ["NEAR", "LeakReport", "check", "leak_report", "nearly_equal"]

Hashes = npt.NDArray[np.uint64]

NEAR = 0.8
NEARLY_EQUAL = 0.98


@dataclass(frozen=True)
class LeakReport:
    """What validation shares with train.

    `shared_samples`, `shared_prompts` and `near_prompts` are distinct ones of validation; a near one is not in train
    but has a prompt there with a likeness of at least 0.8 (see `texts`). `sample_rows` and `prompt_rows` are the rows
    of validation that the shared ones touch. Over the rows of both sides: `identical_pairs` repeat an earlier row,
    `swapped_pairs` have a row that prefers the opposite, `equal_answers` have chosen equal to rejected,
    `near_equal_answers` have them nearly equal (see `nearly_equal`), `empty_answers` lack a text. `has_ids` says
    whether both sides have a column sample_id.
    """

    train_rows: int
    validation_rows: int
    validation_samples: int
    validation_prompts: int
    has_ids: bool
    shared_samples: int
    shared_prompts: int
    near_prompts: int
    sample_rows: int
    prompt_rows: int
    identical_pairs: int
    swapped_pairs: int
    equal_answers: int
    near_equal_answers: int
    empty_answers: int
    examples: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether no sample and no prompt of train, and none nearly like it, is in validation."""
        return not (self.shared_samples or self.shared_prompts or self.near_prompts)

    @property
    def sound(self) -> bool:
        """Whether every pair adds something: no repeat, no contradiction, no equal or empty answers.

        Nearly equal answers are a warning and do not count here: the few signs that differ may be the very point of a
        preference, though a trainer whose loss stays at ln 2 may have too many such pairs.
        """
        return not (self.identical_pairs or self.swapped_pairs or self.equal_answers or self.empty_answers)

    def table(self) -> pd.DataFrame:
        """Return one row for each check: check, found, of, share."""
        both = self.train_rows + self.validation_rows
        checks = [
            ("samples on both sides", self.shared_samples, self.validation_samples),
            ("prompts on both sides", self.shared_prompts, self.validation_prompts),
            ("prompts with a near-duplicate on the other side", self.near_prompts, self.validation_prompts),
            ("validation rows whose sample is in train", self.sample_rows, self.validation_rows),
            ("validation rows whose prompt is in train", self.prompt_rows, self.validation_rows),
            ("pairs that repeat an earlier pair", self.identical_pairs, both),
            ("pairs that another pair contradicts", self.swapped_pairs, both),
            ("pairs with chosen equal to rejected", self.equal_answers, both),
            ("pairs with chosen nearly equal to rejected", self.near_equal_answers, both),
            ("pairs with an empty answer", self.empty_answers, both),
        ]
        table = pd.DataFrame(checks, columns=["check", "found", "of"])
        return table.assign(share=table["found"] / table["of"].where(table["of"] > 0))


def leak_report(train: pd.DataFrame, validation: pd.DataFrame) -> LeakReport:
    """Report what two tables of pairs share.

    >>> train = pd.DataFrame({"sample_id": ["a", "b"], "prompt": ["heat it", "cool it"]})
    >>> report = leak_report(train, train.head(1))
    >>> report.shared_samples, report.shared_prompts, report.clean
    (1, 1, False)
    """
    return _compare(partial(of_frame, train), partial(of_frame, validation))


def check(train: str | Path | Any, validation: str | Path | Any) -> LeakReport:
    """Report what two Parquet files, folders of them, or splits of a `datasets.Dataset` share.

    Raises ValueError for a file that is not complete Parquet or has no columns chosen and rejected.
    """
    return _compare(partial(of_source, train), partial(of_source, validation))


def nearly_equal(one: str, other: str) -> bool:
    """Whether the similarity of two texts, once trimmed, is above 0.98.

    The similarity is 2 L / (m + n) for texts of m and n signs whose longest common subsequence has L signs: the share
    of both that stays when insertions and deletions make one of the other.

    >>> nearly_equal("It was heated for 12 h, ground, pressed and heated again.", "It was heated for 12 h, ground, "
    ...              "pressed and heated again!")
    True
    >>> nearly_equal("It was heated.", "It was cooled.")
    False
    """
    return Indel.normalized_similarity(one.strip(), other.strip(), score_cutoff=NEARLY_EQUAL) > NEARLY_EQUAL


@dataclass
class _Side:
    """One side as hashes: `rows` (n, 4) of each row's sample, prompt, pair and swapped pair; `prompts`, distinct."""

    rows: list[Hashes] = field(default_factory=list)
    prompts: dict[int, int] = field(default_factory=dict)
    likeness: list[Signatures] = field(default_factory=list)
    ids: dict[int, str] = field(default_factory=dict)
    has_ids: bool = True
    has_answers: bool = True
    equal: int = 0
    near_equal: int = 0
    empty: int = 0

    def add(self, batch: Batch, common: Words) -> None:
        asked = prompts(batch)
        new: dict[int, str] = {}
        rows = []
        self.has_ids &= "sample_id" in batch
        self.has_answers &= "chosen" in batch and "rejected" in batch
        ids = [str(name) for name in batch.get("sample_id", [""] * len(asked))]
        for name, prompt, chosen, rejected in zip(ids, asked, *answers(batch, len(asked)), strict=True):
            hashes = [hashlib.sha256(text.encode()).digest() for text in (prompt, chosen, rejected)]
            row = [_number(name.encode()), int.from_bytes(hashes[0][:8], "little")]
            rows.append([*row, _number(b"".join(hashes)), _number(hashes[0] + hashes[2] + hashes[1])])
            self.ids[row[0]] = name
            if row[1] not in self.prompts:
                self.prompts[row[1]] = len(self.prompts)
                new[row[1]] = prompt
            equal = same_text(chosen, rejected)
            self.equal += equal
            self.near_equal += not equal and nearly_equal(chosen, rejected)
            self.empty += not (chosen.strip() and rejected.strip())
        self.rows.append(np.array(rows, np.uint64).reshape(-1, 4))
        self.likeness.append(signatures(list(new.values()), common))

    def table(self) -> Hashes:
        return np.concatenate([np.empty((0, 4), np.uint64), *self.rows])

    def signatures(self) -> Signatures:
        return np.concatenate([np.empty((0, HASHES), np.uint32), *self.likeness])


def _number(data: bytes) -> int:
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "little")


def _compare(train: Callable[[], Iterator[Batch]], validation: Callable[[], Iterator[Batch]]) -> LeakReport:
    common = _template(train, validation)
    sides = [_Side(), _Side()]
    for side, read in zip(sides, (train, validation), strict=True):
        for batch in read():
            side.add(batch, common)
    return _report(*sides)


def _template(*sides: Callable[[], Iterator[Batch]]) -> Words:
    """Return the wording of the first prompts that is a template's."""
    firsts = [prompt for read in sides for batch in islice(read(), 1) for prompt in prompts(batch)]
    return common_wording(list(dict.fromkeys(firsts)))


def _report(train: _Side, validation: _Side) -> LeakReport:
    sample, prompt, pair, swapped = train.table().T
    own_sample, own_prompt, own_pair, own_swapped = validation.table().T
    has_ids = train.has_ids and validation.has_ids
    samples = np.unique(own_sample) if has_ids else np.empty(0, np.uint64)
    shared = samples[np.isin(samples, sample)]
    prompts = np.fromiter(validation.prompts, np.uint64)
    in_train = np.isin(prompts, prompt)
    near = in_train.copy()
    for found, _ in similar(validation.signatures(), train.signatures(), NEAR, near):
        near[found] = True
    known = train.has_answers and validation.has_answers
    pairs, reverse = (np.append(pair, own_pair), np.append(swapped, own_swapped)) if known else (pair[:0], pair[:0])
    return LeakReport(
        train_rows=len(sample),
        validation_rows=len(own_sample),
        validation_samples=len(samples),
        validation_prompts=len(prompts),
        has_ids=has_ids,
        shared_samples=len(shared),
        shared_prompts=int(in_train.sum()),
        near_prompts=int(near.sum() - in_train.sum()),
        sample_rows=int(np.isin(own_sample, shared).sum()),
        prompt_rows=int(np.isin(own_prompt, prompt).sum()),
        identical_pairs=len(pairs) - len(np.unique(pairs)),
        swapped_pairs=int((np.isin(reverse, pairs) & (reverse != pairs)).sum()),
        equal_answers=train.equal + validation.equal,
        near_equal_answers=train.near_equal + validation.near_equal,
        empty_answers=train.empty + validation.empty,
        examples=tuple(sorted(validation.ids[int(number)] for number in shared)[:3]),
    )
