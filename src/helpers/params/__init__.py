"""The parameters of a run: one flat schema, loading, merging, checking."""

from helpers.params.schema import (
    ParameterError,
    Params,
    declared,
    describe,
    dump,
    from_notebook,
    load,
)

__all__ = [
    "ParameterError",
    "Params",
    "declared",
    "describe",
    "dump",
    "from_notebook",
    "load",
]
