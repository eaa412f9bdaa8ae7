"""Principles: the keyed draw in its two steps, the exact expectation, the prompts and the audit."""

from helpers.principles.drawing import (
    PRINCIPLES,
    audit,
    draw,
    draw_models,
    draw_steps,
    expected,
    prompts,
    subsets,
)

__all__ = [
    "PRINCIPLES",
    "audit",
    "draw",
    "draw_models",
    "draw_steps",
    "expected",
    "prompts",
    "subsets",
]
