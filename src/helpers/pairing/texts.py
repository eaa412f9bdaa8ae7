"""Texts by the thousand: each held once, told apart by SHA-256, compared by the words they share.

Likeness is the Jaccard index of the sets of three consecutive words (lower case, white space evened out), estimated
from 128 minwise hashes (Broder 1997) with a standard error of at most 0.045; candidates share a band of them.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from unicodedata import normalize

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

__all__ = [
    "Texts",
    "common_wording",
    "digests",
    "pair_keys",
    "same_text",
    "signatures",
    "similar",
    "utf8",
    "with_texts",
]

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Signatures = npt.NDArray[np.uint32]

HASHES = 128
NOTHING = np.iinfo(np.uint32).max
BATCH = 512
TEMPLATE_TEXTS = 20
CANDIDATES = 1 << 16


@dataclass(frozen=True)
class Texts:
    """A column of texts: row i has the text `values[places[i]]`, -1 for none; a categorical column holds each once."""

    values: pa.ChunkedArray
    places: Ints

    @classmethod
    def of(cls, column: pd.Series) -> Texts:
        """Take over a text or categorical column; texts that Arrow holds are not copied."""
        if isinstance(column.dtype, pd.CategoricalDtype):
            return cls(_chunked(column.cat.categories), np.asarray(column.cat.codes, dtype=np.int64))
        values = _chunked(column)
        places = np.arange(len(values), dtype=np.int64)
        places[values.is_null().to_numpy()] = -1
        return cls(values, places)

    def take(self, rows: Ints) -> Texts:
        """Return the texts of these rows."""
        return Texts(self.values, self.places[rows])

    def spans(self) -> Iterator[memoryview]:
        """Yield the UTF-8 of each row's text."""
        data, chunks, starts, ends = self._where()
        for chunk, start, end in zip(chunks.tolist(), starts.tolist(), ends.tolist(), strict=True):
            yield data[chunk][start:end]

    def sizes(self) -> Ints:
        """Return the length of each row's text in bytes."""
        _, _, starts, ends = self._where()
        return ends - starts

    def _where(self) -> tuple[list[memoryview], Ints, Ints, Ints]:
        runs = [utf8(chunk) for chunk in self.values.chunks]
        starts = np.concatenate([starts[:-1] for _, starts in runs])
        ends = np.concatenate([starts[1:] for _, starts in runs])
        last = np.cumsum([len(starts) - 1 for _, starts in runs])
        chunks = np.searchsorted(last, self.places, side="right")
        return [data for data, _ in runs], chunks, starts[self.places], ends[self.places]

    def distinct(self) -> tuple[pa.Array, Ints]:
        """Return each text once, in the order of `values`, and for each row its place among them."""
        places, back = np.unique(self.places, return_inverse=True)
        parts = [pa.nulls(np.count_nonzero(places < 0), pa.large_string())]
        start = 0
        for chunk in self.values.chunks:
            inside = places[np.searchsorted(places, start) : np.searchsorted(places, start + len(chunk))]
            parts += [chunk.take(pa.array(inside - start))] if len(inside) else []
            start += len(chunk)
        return pa.concat_arrays(parts), back


def _chunked(column: pd.Series | pd.Index) -> pa.ChunkedArray:
    array = pa.array(column, pa.large_string(), from_pandas=True)
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    return pa.chunked_array(chunks or [pa.array([], pa.large_string())])


def utf8(texts: pa.Array) -> tuple[memoryview, Ints]:
    """Return the texts of an array as one run of UTF-8, and where each begins (and the last one ends)."""
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(data or b"")[: starts[-1]], starts


def with_texts(pairs: pd.DataFrame, judgements: pd.DataFrame) -> pd.DataFrame:
    """Put the texts in the place of the positions in `judgements` that `pairing.pair_rows` gives."""
    sources = {"prompt": "user", "chosen": "text", "rejected": "text"}
    return pairs.assign(**{name: judgements[source].array.take(pairs[name]) for name, source in sources.items()})


def digests(texts: Texts) -> Words:
    """Return the first 64 bits of the SHA-256 of each row's text; a text that several rows share is hashed once."""
    places, back = np.unique(texts.places, return_inverse=True)
    hashed = b"".join(hashlib.sha256(text).digest()[:8] for text in Texts(texts.values, places).spans())
    return np.frombuffer(hashed, "<u8")[back]


def pair_keys(user: Texts, chosen: Texts, rejected: Texts) -> pd.DataFrame:
    """Return for each row the SHA-256 of the three texts written one after the other, and where they meet.

    `key` is the published one; with `user_size` and `chosen_size` (bytes), equal rows mean equal texts.

    >>> one = Texts.of(pd.Series(["ab"])), Texts.of(pd.Series(["c"])), Texts.of(pd.Series(["d"]))
    >>> pair_keys(*one)["key"][0] == hashlib.sha256(b"abcd").hexdigest()
    True
    """
    keys, last, state = [], -1, hashlib.sha256()
    rows = zip(user.places.tolist(), user.spans(), chosen.spans(), rejected.spans(), strict=True)
    for place, asked, good, bad in rows:
        if place != last:
            last, state = place, hashlib.sha256(asked)
        key = state.copy()
        key.update(good)
        key.update(bad)
        keys.append(key.hexdigest())
    sizes = {"user_size": user.sizes(), "chosen_size": chosen.sizes()}
    return pd.DataFrame({"key": pd.array(keys, dtype="str"), **sizes})


def same_text(one: str, other: str) -> bool:
    """Whether two texts are equal once trimmed and in Unicode's composed form.

    >>> same_text("at 25 A\u030a ", "at 25 Å")
    True
    """
    return one == other or normalize("NFC", one.strip()) == normalize("NFC", other.strip())


def common_wording(texts: Sequence[str]) -> Words:
    """Return the shingles that more than nine in ten of these texts contain: a template's wording, not a recipe's.

    What fewer than twenty texts share may well be the recipes' own, and none is returned.
    """
    if len(texts) < TEMPLATE_TEXTS:
        return np.empty(0, np.uint64)
    shingles, starts = _shingles(texts)
    owner = np.repeat(np.arange(len(texts)), np.diff(starts))
    counts = pd.DataFrame({"owner": owner, "shingle": shingles}).drop_duplicates()["shingle"].value_counts()
    return np.sort(counts.index[counts > 0.9 * len(texts)].to_numpy("uint64"))


def signatures(texts: Sequence[str], common: Words | None = None) -> Signatures:
    """Return 128 minwise hashes for each text, shape (n, 128), leaving out the shingles in `common`.

    >>> signatures(["Heat at 500 °C for 2 h", "heat  at 500 °C for 2 h"]).std(axis=0).any()
    np.False_
    """
    parts = [_signatures(texts[start : start + BATCH], common) for start in range(0, len(texts), BATCH)]
    return np.concatenate(parts) if parts else np.empty((0, HASHES), np.uint32)


def _signatures(texts: Sequence[str], common: Words | None) -> Signatures:
    shingles, starts = _shingles(texts)
    words = (shingles >> np.uint64(32)).astype(np.uint32)
    left_out = np.zeros(len(words), bool) if common is None else np.isin(shingles, common)
    found = np.empty((len(texts), HASHES), np.uint32)
    for place, (factor, mask) in enumerate(_mixers()):
        mixed = (words ^ mask) * factor
        mixed ^= mixed >> np.uint32(15)
        mixed *= np.uint32(0x2C1B3C6D)
        mixed[left_out] = NOTHING
        found[:, place] = np.minimum.reduceat(mixed, starts[:-1])
    return found


def _mixers() -> list[tuple[np.uint32, np.uint32]]:
    words = np.frombuffer(b"".join(hashlib.sha256(b"minwise %d" % n).digest()[:8] for n in range(HASHES)), "<u4")
    return [(factor | np.uint32(1), mask) for factor, mask in words.reshape(-1, 2)]


class _Known(dict[str, int]):
    """The hashes of the words met so far."""

    def __missing__(self, word: str) -> int:
        self[word] = zlib.crc32(word.encode()) + 1
        return self[word]


def _shingles(texts: Sequence[str]) -> tuple[Words, Ints]:
    """Hash every three consecutive words; a shorter text is one shingle. Returns hashes and where each text begins."""
    known = _Known()
    hashes: list[int] = []
    sizes = []
    for text in texts:
        words = text.casefold().split()
        hashes.extend(map(known.__getitem__, words))
        hashes.extend([0] * (3 - len(words)))
        sizes.append(max(len(words), 3))
    hashed = np.array(hashes, np.uint64)
    ends = np.cumsum(sizes, dtype=np.int64)
    inside = np.ones(len(hashed), bool)
    inside[ends - 1] = inside[ends - 2] = False
    mixed = hashed * np.uint64(0x9E3779B97F4A7C15) + np.roll(hashed, -1) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed += np.roll(hashed, -2) * np.uint64(0x165667B19E3779F9)
    mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return mixed[inside], np.append(0, np.cumsum(np.array(sizes, np.int64) - 2))


def similar(
    one: Signatures, other: Signatures, threshold: float, done: npt.NDArray[np.bool_] | None = None
) -> Iterator[tuple[Ints, Ints]]:
    """Yield rows of `one` beside rows of `other` whose estimated likeness reaches `threshold`, possibly repeated.

    When both are the same table, a row is only put beside later ones.

    Of pairs just at the threshold one in fifty may be missed, of more similar ones hardly any. Rows of `one` that the
    caller marks in `done` in the meantime are passed over.
    """
    width = max(rows for rows in range(1, 17) if (1 - threshold**rows) ** (HASHES // rows) <= 0.02)
    for start in range(0, HASHES - width + 1, width):
        rows = np.flatnonzero(one[:, 0] != NOTHING) if done is None else np.flatnonzero((one[:, 0] != NOTHING) & ~done)
        for i, j in _same_band(_band(one[rows], start, width), _band(other, start, width)):
            i = rows[i]
            if one is other:
                i, j = i[i < j], j[i < j]
            alike = (one[i] == other[j]).mean(axis=1) >= threshold
            yield i[alike], j[alike]


def _band(hashes: Signatures, start: int, width: int) -> Words:
    band = np.zeros(len(hashes), np.uint64)
    for place in range(start, start + width):
        band = band * np.uint64(0x9E3779B97F4A7C15) + hashes[:, place]
    return band


def _same_band(one: Words, other: Words) -> Iterator[tuple[Ints, Ints]]:
    order = np.argsort(other, kind="stable")
    low, high = (np.searchsorted(other[order], one, side=side) for side in ("left", "right"))
    counts = high - low
    total = np.append(0, np.cumsum(counts))
    start = 0
    while start < len(one):
        stop = max(start + 1, int(np.searchsorted(total, total[start] + CANDIDATES, side="right")) - 1)
        part = counts[start:stop]
        i = np.repeat(np.arange(start, stop), part)
        within = np.arange(len(i)) - np.repeat(total[start:stop] - total[start], part)
        yield i, order[low[i] + within]
        start = stop
