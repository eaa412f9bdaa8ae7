"""The figures: each plots a table from `metrics`, answers the question in its title, and returns its axes.

`use_style` once at the top; `plot_x(table)` draws; `save(ax, stem, table, caption)` writes PDF, PNG, SVG, the numbers
and the caption, and returns the picture for display.
"""

from helpers.figures.files import Shown, save, show
from helpers.figures.judging import (
    plot_agreement,
    plot_calibration,
    plot_detection_by_rate,
    plot_judge_bias,
    plot_score_by_anchor,
    plot_score_by_rate,
    plot_scores,
    plot_stability_validity,
    plot_statuses,
)
from helpers.figures.pairing import (
    plot_anchors,
    plot_chosen,
    plot_delta_by_principle,
    plot_deltas,
    plot_deltas_by_type,
    plot_flow,
    plot_leaks,
    plot_pairs_per_condition,
)
from helpers.figures.sampling import plot_applicability, plot_principle_grid, plot_principle_shares, plot_rates
from helpers.figures.style import STYLES, label, looks, use_style

__all__ = [
    "STYLES",
    "Shown",
    "label",
    "looks",
    "plot_agreement",
    "plot_anchors",
    "plot_applicability",
    "plot_calibration",
    "plot_chosen",
    "plot_delta_by_principle",
    "plot_deltas",
    "plot_deltas_by_type",
    "plot_detection_by_rate",
    "plot_flow",
    "plot_judge_bias",
    "plot_leaks",
    "plot_pairs_per_condition",
    "plot_principle_grid",
    "plot_principle_shares",
    "plot_rates",
    "plot_score_by_anchor",
    "plot_score_by_rate",
    "plot_scores",
    "plot_stability_validity",
    "plot_statuses",
    "save",
    "show",
    "use_style",
]
