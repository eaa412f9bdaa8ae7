"""Sources: recipes and instructions from the built-in files, from a reader's own files, or from a dataset."""

from helpers.sources.loading import (
    Loaded,
    SourceError,
    instructions,
    recipes,
)

__all__ = [
    "Loaded",
    "SourceError",
    "instructions",
    "recipes",
]
