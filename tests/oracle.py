"""The published pairing rule in plain Python, one verdict at a time: slow, and easy to check by reading."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Any

GRADED = [f"llm_representational_perturbation_{rate}pct" for rate in (1, 2, 5, 10, 15)]
REPRESENT = [*GRADED, "llm_to_formula_100pct", "llm_to_name_100pct", "llm_to_iupac_100pct"]
ERROR = [f"all_error_perturbation_{rate}pct" for rate in (1, 2, 5, 10, 15)] + [
    "element_substitution_100pct",
    "numerical_perturbation_100pct",
    "equipment_substitution_100pct",
    "action_antonym_100pct",
]
Row = Mapping[str, Any]


def anchors(rows: Iterable[Row]) -> dict[Any, float]:
    """Return the median of each sample's scores on the five graded represent conditions."""
    scores: dict[Any, list[float]] = {}
    for row in rows:
        if row["dataset_name"] in GRADED and row["overall_score"] is not None:
            scores.setdefault(row["sample_id"], []).append(row["overall_score"])
    return {sample: median(values) for sample, values in scores.items()}


def pairs(rows: Iterable[Row], judges: Sequence[str], max_pairs: int = 5) -> list[dict[str, Any]]:
    """Return the published pairs of a panel: represent conditions first, then by sample, then by delta."""
    rows = list(rows)
    anchor = anchors(rows)
    verdicts = {(row["dataset_name"], row["sample_id"], row["judge"]): row for row in rows}
    found, seen = [], set()
    for dataset in REPRESENT + ERROR:
        for sample in sorted({row["sample_id"] for row in rows}):
            panel = [verdicts.get((dataset, sample, judge)) for judge in sorted(judges)]
            if sample not in anchor or any(row is None or row["overall_score"] is None for row in panel):
                continue
            for pair in _best(panel, dataset, anchor[sample], max_pairs):
                texts = pair["prompt"] + pair["chosen"] + pair["rejected"]
                key = hashlib.sha256(texts.encode()).hexdigest()
                if key not in seen:
                    seen.add(key)
                    found.append({"sample_id": sample, "dataset_name": dataset, **pair})
    return found


def _best(panel: Sequence[Row], dataset: str, anchor: float, max_pairs: int) -> list[dict[str, Any]]:
    kept = []
    for one, two in combinations(panel, 2):
        low, high = sorted((one, two), key=lambda row: row["overall_score"])
        delta = high["overall_score"] - low["overall_score"]
        chosen, rejected = (low, high) if dataset in ERROR else (high, low)
        floor = rejected["overall_score"] - anchor + 2.0 if dataset in ERROR else chosen["overall_score"] - anchor + 1.5
        if delta > 1e-9 and delta >= 0.5 - 1e-9 and floor >= -1e-9:
            kept.append((-round(delta, 9), one["judge"], two["judge"], chosen, rejected))
    kept.sort(key=lambda candidate: candidate[:3])
    return [
        {
            "prompt": chosen["user"],
            "chosen": chosen["text"],
            "rejected": rejected["text"],
            "score_chosen": chosen["overall_score"],
            "score_rejected": rejected["overall_score"],
            "score_delta": -delta,
            "anchor_score": anchor,
            "chosen_model": chosen["judge"],
            "rejected_model": rejected["judge"],
        }
        for delta, _, _, chosen, rejected in kept[:max_pairs]
    ]
