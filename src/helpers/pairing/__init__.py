"""Pairs of verdicts: which of two judges' evaluations of one text to prefer, and why the others are left out."""

from helpers.pairing.pairs import (
    ANSWER_FATES,
    FATES,
    PUBLISHED,
    LeakReport,
    PairingRules,
    attrition,
    compare_rules,
    instruction_attrition,
    instruction_pairs,
    leak_report,
    make_pairs,
    pair_rows,
    split,
    with_texts,
)

__all__ = [
    "ANSWER_FATES",
    "FATES",
    "PUBLISHED",
    "LeakReport",
    "PairingRules",
    "attrition",
    "compare_rules",
    "instruction_attrition",
    "instruction_pairs",
    "leak_report",
    "make_pairs",
    "pair_rows",
    "split",
    "with_texts",
]
