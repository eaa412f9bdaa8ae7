"""Pairing and export beside their floors: `python -m tests.bench_pairing [--samples 2000] [--buckets 10] [--runs 3]`.

136,000 synthetic judgements (2,000 samples, 17 conditions, 4 judges; user texts of 2 kB, answers of 1.5 kB). Every
figure is a ratio to the least that the work can cost on this machine, measured in the same run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from helpers import anchoring, export, pairing
from helpers.card import Card
from helpers.perturbations import CONDITIONS

JUDGES = ["judge_a", "judge_b", "judge_c", "judge_d"]
SYSTEM = "You are a strict judge of recipes for making materials. " * 14
CARD = Card("Bench", "cc0-1.0", {"synthetic": "cc0-1.0"}, dict.fromkeys(JUDGES, "rules"))


def judgements(samples: int, seed: int = 0) -> pa.Table:
    """Make scored texts: judges of different severity, errors that cost 0 to 1.5 points, 1 % without a score."""
    rng = np.random.default_rng(seed)
    names = np.array(list(CONDITIONS))
    error = np.array([known.category == "error" for known in CONDITIONS.values()])
    shape = (samples, len(names), len(JUDGES))
    quality = rng.normal(3.4, 0.6, (samples, 1, 1)) - (rng.uniform(0, 1.5, shape[:2]) * error)[:, :, None]
    scores = quality + np.array([0.35, 0.10, -0.05, -0.40]) + rng.normal(0, 0.45, shape)
    scores = np.clip(np.round(scores * 2) / 2, 1, 5)
    scores[rng.random(shape) < 0.01] = np.nan
    words = np.array([f"{rng.choice(list('abcdefghijklmnop'))}{number:x}" for number in range(4_000)] + ["500 °C", "TiO₂"] * 50)
    users, answers = [], []
    for sample in range(samples):
        recipe = rng.choice(words, 340)
        for place, name in enumerate(names):
            version = recipe.copy()
            version[rng.integers(0, 340, 1 + place)] = f"x{place}"
            users += [f"Target: M{sample}\n\n" + " ".join(version)] * len(JUDGES)
            for judge in range(len(JUDGES)):
                said = " ".join(rng.choice(words, 215))
                score = scores[sample, place, judge]
                answers.append(f'{JUDGES[judge]} on {name}: {said}\n```json\n{{"overall_score": {score}}}\n```')
    index = np.indices(shape).reshape(3, -1)
    return pa.table(
        {
            "sample_id": pa.array([f"{seed:03d}-{sample:05d}" for sample in range(samples)]).take(pa.array(index[0])),
            "dataset_name": pa.array(names).take(pa.array(index[1])),
            "judge": pa.array(JUDGES).take(pa.array(index[2])),
            "overall_score": pa.array(scores.ravel(), from_pandas=True),
            "user": users,
            "text": answers,
        }
    )
