"""Anchors: the score a sample deserves, as the median of its verdicts on wording that keeps the meaning."""

from __future__ import annotations

import pandas as pd

from helpers.perturbations import CONDITIONS, canonical

__all__ = ["GRADED", "anchor_scores", "condition_names", "instruction_anchors", "leave_one_out"]

GRADED = tuple(f"llm_representational_perturbation_{percent}pct" for percent in (1, 2, 5, 10, 15))
_BY_TYPE = {f"{known.type}_{known.rate * 100:.0f}pct": name for name, known in CONDITIONS.items()}


def condition_names(judgements: pd.DataFrame) -> pd.Series:
    """Return each row's condition under its canonical name, as a category; one of the user's own keeps its name.

    Read from `dataset_name`, or else put together from `perturbation_type` and `perturbation_rate`.

    >>> condition_names(pd.DataFrame({"dataset_name": ["all_equivalence_rewriting_5pct", "original"]})).tolist()
    ['llm_representational_perturbation_5pct', 'original']
    """
    if "dataset_name" in judgements:
        given = judgements["dataset_name"]
    else:
        percent = (judgements["perturbation_rate"] * 100).round().astype("Int64").astype("str")
        given = (judgements["perturbation_type"] + "_" + percent + "pct").fillna("original")
    codes, names = pd.factorize(given)
    if (codes < 0).any():
        raise ValueError(f"judgement {judgements.index[codes < 0][0]} has no dataset_name")
    places, known = pd.factorize(pd.Series([_canonical(name) for name in names], dtype="str"))
    return pd.Series(pd.Categorical.from_codes(places[codes], known), judgements.index)


def anchor_scores(judgements: pd.DataFrame, *, min_scores: int = 1) -> pd.DataFrame:
    """Return one row for every sample, in the order of the ids: sample_id, anchor_score, n_scores, spread.

    The anchor is the median of every scored verdict over all judges (and repeats) on the five graded represent
    conditions; with fewer than `min_scores` verdicts it is null and the row stays. `spread` is the interquartile range
    of the same verdicts, null without any. Raises ValueError for two verdicts of one judge on the same text.

    >>> rows = [("a", f"llm_representational_perturbation_{rate}pct", score) for rate, score in [(1, 3), (5, 4)]]
    >>> anchor_scores(pd.DataFrame(rows, columns=["sample_id", "dataset_name", "overall_score"]))
      sample_id  anchor_score  n_scores  spread
    0         a           3.5         2     0.5
    """
    return _medians(_graded(judgements), judgements["sample_id"], min_scores)


def leave_one_out(judgements: pd.DataFrame, *, min_scores: int = 1) -> pd.DataFrame:
    """Return the anchors of every sample without each graded condition in turn, named in the column dataset_name."""
    graded = _graded(judgements)
    without = {name: graded[graded["dataset_name"] != name] for name in GRADED}
    tables = {name: _medians(rest, judgements["sample_id"], min_scores) for name, rest in without.items()}
    return pd.concat(tables, names=["dataset_name"]).reset_index("dataset_name").reset_index(drop=True)


def instruction_anchors(judgements: pd.DataFrame, *, min_scores: int = 1) -> pd.DataFrame:
    """Return anchors of instructions: the median over an instruction's completions and judges; columns as above."""
    keys = ["item_id", "judge", "repeat"]
    return _medians(_scored(judgements, keys), judgements["sample_id"], min_scores)


def _graded(judgements: pd.DataFrame) -> pd.DataFrame:
    names = condition_names(judgements)
    graded = names.isin(GRADED)
    keys = [key for key in ("sample_id", "judge", "repeat", "overall_score") if key in judgements]
    table = judgements.loc[graded, keys].assign(dataset_name=names[graded])
    return _scored(table, ["sample_id", "dataset_name", "judge", "repeat"])


def _scored(judgements: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    present = [key for key in keys if key in judgements]
    table = judgements[list(dict.fromkeys(["sample_id", *present, "overall_score"]))]
    if "judge" in present and (twice := table.duplicated(present)).any():
        raise ValueError(f"two verdicts on the same text: {table.loc[twice, present].iloc[0].to_dict()}; keep one")
    return table.astype({"overall_score": "float64"}).dropna(subset=["overall_score"])


def _medians(scored: pd.DataFrame, samples: pd.Series, min_scores: int) -> pd.DataFrame:
    if min_scores < 1:
        raise ValueError(f"min_scores is {min_scores}; an anchor needs at least 1 score")
    scores = scored.groupby("sample_id", observed=True)["overall_score"]
    table = pd.DataFrame(
        {
            "anchor_score": scores.median(),
            "n_scores": scores.size(),
            "spread": scores.quantile(0.75) - scores.quantile(0.25),
        }
    ).reindex(pd.Index(samples.unique(), name="sample_id").sort_values())
    table["n_scores"] = table["n_scores"].fillna(0).astype("int64")
    table["anchor_score"] = table["anchor_score"].where(table["n_scores"] >= min_scores)
    return table.reset_index()


def _canonical(name: str) -> str:
    try:
        return canonical(_BY_TYPE.get(name, name))
    except ValueError:
        return name
