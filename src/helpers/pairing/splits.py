"""Train and validation, divided so that no recipe stands on both sides; or row by row, as published."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from helpers import keyed
from helpers.anchoring import condition_names
from helpers.pairing.preferences import prompt_text
from helpers.pairing.texts import Signatures, Texts, Words, common_wording, digests, signatures, similar

__all__ = ["KEPT_TOGETHER", "draw_samples", "sample_summary", "shared_wording", "split"]

Ints = npt.NDArray[np.int64]

# Below the likeness that a leak report calls a near-duplicate, so that no perturbed version crosses that line.
KEPT_TOGETHER = 0.6
SIDES = pd.Index(["train", "validation"], dtype="str")
PROMPTS_COMPARED = 200


def split(
    pairs: pd.DataFrame,
    *,
    by: str = "sample",
    validation_fraction: float = 0.1,
    seed: int = 42,
    texts: pd.DataFrame | None = None,
) -> pd.Series:
    """Return "train" or "validation" for each pair, under the pairs' index.

    By "sample", samples that share a prompt, or whose unperturbed prompts (or else the mildest ones) are alike
    (`texts`: Jaccard of word triples at least 0.6), stay together; groups go to validation in the order of their keyed
    draws as long as they fit into its share of each category, and at least one does when there are two. By "row"
    (published, leaky) the share of each category is drawn row by row; the draw is keyed, so the rows are not those
    that scikit-learn picks.
    `texts` is the table of judgements when the pairs hold positions (`pair_rows`).

    >>> pairs = pd.DataFrame({"sample_id": list("aabbcc"), "perturbation_category": ["error", "represent"] * 3})
    >>> split(pairs, validation_fraction=1 / 3).value_counts().to_dict()
    {'train': 4, 'validation': 2}
    """
    if not 0 <= validation_fraction < 1:
        raise ValueError(f"validation_fraction is {validation_fraction}; it is at least 0 and below 1")
    if by == "sample":
        drawn = draw_samples(sample_summary(pairs, texts), validation_fraction=validation_fraction, seed=seed)
        return pairs["sample_id"].astype("str").map(drawn).rename("split")
    if by == "row":
        return pd.Series(SIDES.take(_draw_rows(pairs, validation_fraction, seed)), pairs.index, name="split")
    raise ValueError(f"by is {by!r}; it is 'sample' or 'row'")


def shared_wording(buckets: Iterable[pd.DataFrame]) -> Words:
    """Return the wording that the prompts of the first two hundred samples of all buckets share: the template's."""
    prompts: list[str] = []
    for judgements in buckets:
        prompts += judgements.drop_duplicates("sample_id")["user"].astype("str").tolist()
        if len(prompts) >= PROMPTS_COMPARED:
            break
    return common_wording(prompts[:PROMPTS_COMPARED])


def sample_summary(
    pairs: pd.DataFrame, texts: pd.DataFrame | None = None, *, common: Words | None = None
) -> pd.DataFrame:
    """Return what a split needs to know of each sample, small enough for millions of pairs.

    Index sample_id; `family` is the first of the samples that share a prompt, `signature` the minwise hashes of the
    sample's unperturbed prompt (or else that at the lowest rate), and one column for each category counts pairs.
    Wording in `common` does not count; summaries of several buckets agree only under the same (`shared_wording`).
    """
    sample, ids = pd.factorize(pairs["sample_id"].astype("str"), sort=True)
    category, categories = _categories(pairs)
    counts = np.bincount(sample * len(categories) + category, minlength=len(ids) * len(categories))
    if "prompt" in pairs:
        prompts = _prompts(pairs, texts)
        digest = digests(prompts)
        family = _family(sample, digest, len(ids))
        rate = pairs.get("perturbation_rate", pd.Series(0.0, pairs.index)).to_numpy("float64", na_value=np.inf)
        order = np.lexsort((digest, rate, sample))
        mildest = prompts.take(order[np.searchsorted(sample[order], np.arange(len(ids)))])
        values, back = (mildest if texts is None else _originals(mildest, ids, texts)).distinct()
        wording = values.take(pa.array(back)).to_pylist()
        hashes = signatures(wording, common_wording(wording[:PROMPTS_COMPARED]) if common is None else common)
    else:
        family, hashes = np.arange(len(ids)), np.full((len(ids), 1), np.iinfo(np.uint32).max, np.uint32)
    facts = pd.DataFrame({"family": ids.take(family), "signature": list(hashes)})
    facts[list(categories)] = counts.reshape(len(ids), len(categories))
    return facts.set_index(pd.Index(ids, name="sample_id"))


def draw_samples(summary: pd.DataFrame, *, validation_fraction: float, seed: int) -> pd.Series:
    """Return "train" or "validation" for each sample of a summary (or of several, one below the other)."""
    summary = summary.sort_index()
    hashes: Signatures = np.stack(summary["signature"].to_list()) if len(summary) else np.empty((0, 128), np.uint32)
    edges = [(np.arange(len(summary)), summary.index.get_indexer(pd.Index(summary["family"])))]
    edges += list(similar(hashes, hashes, KEPT_TOGETHER)) if hashes.shape[1] > 1 else []
    group = _components(edges, len(summary))
    sizes = summary.drop(columns=["family", "signature"]).groupby(group).sum().fillna(0).to_numpy("int64")
    first = summary.index[np.unique(group, return_index=True)[1]]
    order = np.argsort(keyed.blocks(seed, "split", first)[:, 0], kind="stable")
    return pd.Series(SIDES.take(_fill(sizes, order, validation_fraction)[group]), summary.index)


def _fill(sizes: Ints, order: Ints, fraction: float) -> Ints:
    """Mark with 1, in this order, the groups that fit into the validation share of every category."""
    room = np.round(fraction * sizes.sum(axis=0)).astype(np.int64)
    taken = np.zeros(len(sizes), dtype=np.int64)
    for group in order:
        if (sizes[group] <= room).all():
            taken[group] = 1
            room -= sizes[group]
    if fraction > 0 and len(sizes) > 1 and not taken.any():
        taken[min(order, key=lambda group: int(sizes[group].sum()))] = 1
    return taken


def _draw_rows(pairs: pd.DataFrame, fraction: float, seed: int) -> Ints:
    category, categories = _categories(pairs)
    counts = np.bincount(category, minlength=len(categories))
    shares = fraction * counts
    wanted = np.floor(shares).astype(np.int64)
    missing = math.ceil(round(fraction * len(pairs), 9)) - int(wanted.sum())
    wanted[np.argsort(wanted - shares, kind="stable")[:missing]] += 1
    order = np.lexsort((keyed.blocks(seed, "split", _row_names(pairs))[:, 0], category))
    rank = np.empty(len(pairs), dtype=np.int64)
    rank[order] = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.asarray(rank < wanted[category], dtype=np.int64)


def _row_names(pairs: pd.DataFrame) -> pd.Series:
    if "pair_key" in pairs:
        return pairs["pair_key"]
    names = [name for name in ("sample_id", "dataset_name", "chosen_model", "rejected_model") if name in pairs]
    return pairs[names].astype("str").agg("\x1f".join, axis=1)


def _categories(pairs: pd.DataFrame) -> tuple[Ints, pd.Index]:
    if "perturbation_category" not in pairs:
        return np.zeros(len(pairs), dtype=np.int64), pd.Index(["all"])
    codes, names = pd.factorize(pairs["perturbation_category"], sort=True, use_na_sentinel=False)
    return codes, names


def _prompts(pairs: pd.DataFrame, texts: pd.DataFrame | None) -> Texts:
    prompt = pairs["prompt"]
    if texts is not None:
        return Texts.of(texts["user"]).take(prompt.to_numpy())
    if isinstance(prompt.dtype, pd.CategoricalDtype) or pd.api.types.is_string_dtype(prompt):
        return Texts.of(prompt)
    return Texts.of(prompt.map(prompt_text).astype("str"))


def _originals(mildest: Texts, ids: pd.Index, texts: pd.DataFrame) -> Texts:
    """Return the prompt of each sample's unperturbed text, where it was judged too, in the place of its mildest one."""
    original = np.flatnonzero(condition_names(texts) == "original")
    first = pd.Series(original, texts["sample_id"].iloc[original].astype("str"))
    places = first[~first.index.duplicated()].reindex(ids, fill_value=-1).to_numpy()
    prompts = Texts.of(texts["user"])
    return Texts(prompts.values, np.where(places < 0, mildest.places, prompts.places[places]))


def _family(sample: Ints, digest: Words, n_samples: int) -> Ints:
    """Return for each sample the first of those that share a prompt with it, directly or by way of others."""
    _, first, prompt = np.unique(digest, return_index=True, return_inverse=True)
    group = _components([(sample, sample[first][prompt])], n_samples)
    return np.unique(group, return_index=True)[1][group]


def _components(edges: Sequence[tuple[Ints, Ints]], n: int) -> Ints:
    start, end = (np.concatenate([edge[side] for edge in edges]) for side in (0, 1))
    if (start == end).all():
        return np.arange(n)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(start)), (start, end)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)
