"""Simulated judges whose shift, blindness and noise are known, and the metrics that they must therefore have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import foldnorm, norm

RATES = (0.01, 0.02, 0.05, 0.10, 0.15)
TAU = 0.5


@dataclass(frozen=True)
class PlantedJudge:
    """Scores quality + shift + noise, and takes `drop` off for an error unless it is blind to it."""

    name: str
    shift: float
    drop: float
    blindness: float
    noise: float

    def truth(self) -> dict[str, float]:
        """Return the metrics that this judge has on infinitely many recipes."""
        seen, twice = 1 - self.blindness, self.noise * np.sqrt(2)
        validity = self.blindness * norm.sf(TAU / twice) + seen * norm.sf((TAU - self.drop) / twice)
        stability = 1 - 2 * norm.sf(TAU / twice)
        return {
            "repr_bias": float(foldnorm.mean(abs(self.shift) / self.noise, scale=self.noise)),
            "error_sensitivity": self.drop * seen - self.shift,
            "validity": float(validity),
            "stability": float(stability),
            "accuracy": float(validity + stability) / 2,
        }


JUDGES = (
    PlantedJudge("keen", shift=0.2, drop=1.5, blindness=0.1, noise=0.3),
    PlantedJudge("blind", shift=-0.4, drop=1.0, blindness=0.7, noise=0.5),
)


def judgements(judges: tuple[PlantedJudge, ...], n_recipes: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Let every judge score every recipe: the original and five rates of error and of equivalent wording."""
    rng = np.random.default_rng(seed)
    quality = rng.uniform(2, 4, n_recipes)
    conditions = [("original", None, 0.0)] + [(f"{c} {r}", c, r) for c in ("error", "represent") for r in RATES]
    tables = []
    for judge in judges:
        for name, category, rate in conditions:
            score = quality + judge.shift + judge.noise * rng.standard_normal(n_recipes)
            if category == "error":
                score -= judge.drop * (rng.random(n_recipes) >= judge.blindness)
            rows = {"sample_id": [f"r{i:03}" for i in range(n_recipes)], "overall_score": score}
            tables.append(
                pd.DataFrame(rows).assign(
                    dataset_name=name, perturbation_category=category, perturbation_rate=rate, judge=judge.name
                )
            )
    anchors = pd.DataFrame({"sample_id": [f"r{i:03}" for i in range(n_recipes)], "anchor_score": quality})
    scores = pd.concat(tables, ignore_index=True)
    return scores.assign(item_id=scores["sample_id"] + "/" + scores["dataset_name"]), anchors
