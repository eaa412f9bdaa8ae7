"""Who answers: built-in judges, any OpenAI-compatible server, or a small model on this machine.

`load` reads the models, `ask` answers requests through the store, `keys` says where the answers are in it.
"""

from __future__ import annotations

from helpers.judges.accounts import Budget, Outcome, Stopped, Tally
from helpers.judges.asking import Clock
from helpers.judges.flow import ask, has_text
from helpers.judges.models import Model, ModelError, keys, load

__all__ = [
    "Budget", "Clock", "Model", "ModelError", "Outcome", "Stopped", "Tally",
    "ask", "has_text", "keys", "load",
]  # fmt: skip
