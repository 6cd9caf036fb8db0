"""Fits of a method that tells what it released, on tables where that is easiest to tell apart.

All rows are equal, so every node on their path has the same count, and the answers of a search follow
from the shape of the trees. With about as many rows as the threshold each answer is yes half the time, and tells most.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lumberjack.accounting import Structure
from lumberjack.transcript import (
    DiscreteRelease,
    Transcript,
    get_log_ratios,
    get_noise,
    split_distinct,
)
from lumberjack_bench.audit.findings import Subject
from lumberjack_bench.audit.neighbours import QUERIES

_ROWS_WITHOUT_THRESHOLD = 3000
"""So many that a model is sure of their class, and a record of another as far from it as can be."""

_DROPPED_LABEL = -7


@dataclass(frozen=True, slots=True)
class CrowdTable:
    """Equal rows and one record more, of the second class."""

    name: str
    """What is special about it."""
    n_rows: int
    """Rows without the record."""
    own_share: float = 0.0
    """Share of them that has the record's class."""

    @property
    def coded(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Encoded rows and class codes, the record last."""
        labels = np.zeros(self.n_rows + 1, dtype=np.int64)
        labels[self.n_rows - round(self.own_share * self.n_rows) :] = 1
        return np.asfortranarray(np.tile(QUERIES[0], (self.n_rows + 1, 1))), labels

    def rows(self, *, has_record: bool) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return what is handed to the method; a row without a class stands for an empty table."""
        values, labels = self.coded
        if not has_record:
            values, labels = values[:-1], labels[:-1]
        if self.n_rows < 3:
            values = np.vstack([values, QUERIES[:1]])
            labels = np.append(labels, _DROPPED_LABEL)
        return np.asfortranarray(values), labels


def crowds(subject: Subject) -> list[CrowdTable]:
    """Return the tables on which a whole fit is attacked; the better one is found by trial."""
    structure = _get_structure(subject)
    if structure is None:
        n_rows = _ROWS_WITHOUT_THRESHOLD
        return [CrowdTable(f"{n_rows} equal rows, none of the record's class", n_rows, 0.0)]
    n_rows = max(round(1 + structure.margin), 3)
    return [
        CrowdTable(f"{n_rows} equal rows, a third of the record's class", n_rows, 1 / 3),
        CrowdTable(f"{n_rows} equal rows, half of the record's class", n_rows, 1 / 2),
        CrowdTable(f"{n_rows} equal rows, none of the record's class", n_rows, 0.0),
    ]


def floors(subject: Subject) -> list[CrowdTable]:
    """Return the tables on which counts too small for an answer are attacked, if it has answers."""
    if _get_structure(subject) is None:
        return []
    return [
        CrowdTable("an empty table, and one record", 0),
        CrowdTable("2 equal rows, and one more", 2),
    ]


def fit_once(subject: Subject) -> Any:
    """Return the method fitted on a few rows, for what its ledger says."""
    model = subject.build()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*CrowdTable("", 10).rows(has_record=True))
    return model


def _get_structure(subject: Subject) -> Structure | None:
    groups = [release.group for release in fit_once(subject).ledger_.releases]
    return next((group for group in groups if isinstance(group, Structure)), None)


class Watched(NamedTuple):
    """Runs on both tables: element 0 without the record, element 1 with it."""

    without: list[Any]
    with_record: list[Any]


def watch(
    subject: Subject,
    table: CrowdTable,
    n_runs: int,
    look: Callable[[Transcript, CrowdTable], Any],
    *,
    stream: int,
) -> Watched:
    """Fit on both tables and return what a look at each transcript gives.

    Parameters
    ----------
    subject : Subject
    table : CrowdTable
    n_runs : int
        Fits on each.
    look : callable
        Takes a transcript and the table.
    stream : int
        Runs of different streams share no random numbers.
    """
    without, with_record = (
        watch_one(subject, table, n_runs, look, stream=stream, has_record=has_record)
        for has_record in (False, True)
    )
    return Watched(without, with_record)


def watch_one(
    subject: Subject,
    table: CrowdTable,
    n_runs: int,
    look: Callable[[Transcript, CrowdTable], Any],
    *,
    stream: int,
    has_record: bool = False,
) -> list[Any]:
    """Return what a look at each transcript gives on one of the tables; see :func:`watch`."""
    seeds = np.random.SeedSequence([subject.seed, stream, int(has_record)]).spawn(n_runs)
    batches = Parallel(n_jobs=subject.n_jobs)(
        delayed(_look_at_runs)(subject, table, has_record, seeds[start : start + 100], look)
        for start in range(0, n_runs, 100)
    )
    return [seen for batch in batches for seen in batch]


def _look_at_runs(
    subject: Subject,
    table: CrowdTable,
    has_record: bool,
    seeds: Sequence[np.random.SeedSequence],
    look: Callable[[Transcript, CrowdTable], Any],
) -> list[Any]:
    model = subject.build()
    if "unknown_labels" in model.get_params():
        model.set_params(unknown_labels="drop")
    X, y = table.rows(has_record=has_record)
    seen = []
    # Threads cost more than they bring for matrices of a dozen rows.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for one in seeds:
            splits, noise = one.spawn(2)
            model.random_state, model.noise_seed = splits, noise
            seen.append(look(model._fit_transcript(X, y), table))
    return seen


def look_at_ratios(transcript: Transcript, table: CrowdTable) -> dict[str, float]:
    """Return the log likelihood ratio of each group."""
    return get_log_ratios(transcript, *table.coded)


class GroupLook(NamedTuple):
    """What one fit shows of a group of releases.

    Attributes
    ----------
    shift : float
        Length of the record's own contribution in standard deviations of noise; for answers, in how
        many queries it was counted.
    score : float
        What tells most about the record: the noise along its contribution, of mean 0 without the record,
        `shift` with it, and variance 1; for answers, their log likelihood ratio.
    noise : ndarray of float64
        Noise of all coordinates in standard deviations, without the record; empty for answers.
    """

    shift: float
    score: float
    noise: NDArray[np.float64]


def look_at_groups(transcript: Transcript, table: CrowdTable) -> dict[str, GroupLook]:
    """Return what a fit shows of each group; as if the record were not in the table."""
    values, labels = table.coded
    record, others = (values[-1:], labels[-1:]), split_distinct(values[:-1], labels[:-1])
    found: dict[str, GroupLook] = {}
    for name in dict.fromkeys(release.name for release in transcript):
        square = along = 0.0
        noises = [np.empty(0)]
        n_queries = 0
        for release in transcript:
            if release.name != name:
                continue
            if isinstance(release, DiscreteRelease):
                along += release.get_log_ratio(values, labels)
                n_queries += release.n_queries
                continue
            own = release.add_up(*record)
            noise = get_noise(release, others)
            square += float(own @ own)
            along += float(own @ noise)
            noises.append(noise)
        if n_queries:
            found[name] = GroupLook(float(n_queries), along, noises[0])
        else:
            shift = float(np.sqrt(square))
            found[name] = GroupLook(shift, along / shift if shift else 0.0, np.concatenate(noises))
    return found
