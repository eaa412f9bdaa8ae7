"""What a judge's scores say of the judge, every number with an interval and with what is missing.

`bias`: repr_bias, error_sensitivity, validity, stability, accuracy, and the curves behind them. `agreement`: between
judges. `counts`: shares, deltas, chosen judges, calibration, attrition. `resample`: the bootstrap they all use.
A missing score is left out and counted, never filled.
"""

from helpers.metrics.agreement import agreement, cramers_v, krippendorff_alpha
from helpers.metrics.bias import (
    METRICS,
    detection_by_rate,
    judge_bias,
    paired_differences,
    score_by_anchor,
    score_by_rate,
)
from helpers.metrics.counts import (
    applicability,
    attrition,
    calibration,
    calibration_bins,
    chosen_counts,
    delta_by_principle,
    delta_summary,
    overall_outside_aspects,
    reward_accuracy,
    shares,
    stated_confidence,
    wilson,
)
from helpers.metrics.resample import Estimate, group_means

__all__ = [
    "METRICS",
    "Estimate",
    "agreement",
    "applicability",
    "attrition",
    "calibration",
    "calibration_bins",
    "chosen_counts",
    "cramers_v",
    "delta_by_principle",
    "delta_summary",
    "detection_by_rate",
    "group_means",
    "judge_bias",
    "krippendorff_alpha",
    "overall_outside_aspects",
    "paired_differences",
    "reward_accuracy",
    "score_by_anchor",
    "score_by_rate",
    "shares",
    "stated_confidence",
    "wilson",
]
