"""The dataset folder: Parquet that a trainer takes as it is, and a card made from the files."""

from helpers.export.files import (
    FACTS,
    PUBLISHED_COLUMNS,
    ROW_GROUP,
    SPLITS,
    Track,
    finish,
    push,
    whole_numbers,
    write_dataset,
    write_track,
)

__all__ = [
    "FACTS",
    "PUBLISHED_COLUMNS",
    "ROW_GROUP",
    "SPLITS",
    "Track",
    "finish",
    "push",
    "whole_numbers",
    "write_dataset",
    "write_track",
]
