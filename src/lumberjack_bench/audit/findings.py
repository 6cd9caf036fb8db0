"""What a layer of the audit says: what was tried, what was seen, and what follows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from lumberjack_bench.audit.neighbours import SCHEMA
from lumberjack_bench.methods import build_method

LARGEST_Z = 4.0
"""Standard deviations beyond which a test refutes; one sound test in 30,000 exceeds it by chance."""

UNSEEN = "this audit could not have seen it"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one attempt to refute a claim has found."""

    layer: str
    """Name of the layer."""
    tried: str
    """What was tried, in a few words."""
    n_runs: int
    """Fits, or draws, that were counted."""
    measured: float
    """What was found, in `unit`."""
    allowed: float
    """Above which the claim is refuted, in the same unit."""
    unit: str
    """Of what was measured, e.g. "epsilon >=" or "z ="."""
    limit: float | None = None
    """What infinitely many runs of a sound method would show; None where that is not known."""
    within: str = ""
    """How close to the claim the audit has come; empty where it says nothing."""
    details: str = ""

    @property
    def is_refuted(self) -> bool:
        """Whether the claim cannot hold."""
        return self.measured > self.allowed

    @property
    def verdict(self) -> str:
        """What follows, in words."""
        if self.is_refuted:
            return "refuted"
        return f"consistent, and within {self.within} of the claim" if self.within else UNSEEN

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain data, with its verdict."""
        data = asdict(self) | {"is_refuted": self.is_refuted, "verdict": self.verdict}
        return {key: _plain(value) for key, value in data.items()}

    def __str__(self) -> str:
        measured = self.measured
        # A bound of nothing reads like a result.
        seen = "nothing" if self.unit == "epsilon >=" and not measured else f"{measured:.3g}"
        parts = [f"{self.unit} {seen}"]
        if self.limit is not None:
            parts.append(f"limit {self.limit:.3g}")
        parts.append(f"{self.n_runs} runs")
        if self.details:
            parts.append(self.details)
        return f"{self.tried}: {', '.join(parts)}: {self.verdict}"


def _plain(value: Any) -> Any:
    # JSON has no infinity.
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


class Subject(NamedTuple):
    """The method that is audited, and how.

    Attributes
    ----------
    config : mapping
        The ``method`` part of a configuration.
    epsilon, delta : float
        What it is asked to keep.
    seed : int
        Of splits, noise and order of rows; results are the same for any number of processes.
    n_jobs : int
        Processes.
    allow_targets : sequence of str
        Packages that methods may come from besides our own.
    """

    config: Mapping[str, Any]
    epsilon: float
    delta: float
    seed: int = 0
    n_jobs: int = 1
    allow_targets: Sequence[str] = ()

    def build(
        self, seeds: np.random.SeedSequence | None = None, schema: Any = SCHEMA, **params: Any
    ) -> Any:
        """Build the method with seeds of its own; further parameters take the place of configured ones."""
        splits, noise = (None, None) if seeds is None else seeds.spawn(2)
        config = {**self.config, "params": {**self.config["params"], **params}}
        return build_method(
            config,
            schema=schema,
            epsilon=self.epsilon,
            delta=self.delta,
            random_state=splits,
            noise_seed=noise,
            allow_targets=self.allow_targets,
        )

    def with_params(self, **params: Any) -> Subject:
        """Return the same with other hyper-parameters, those that the method has."""
        known = {name: value for name, value in params.items() if name in self.config["params"]}
        config = {**self.config, "params": {**self.config["params"], **known}}
        return self._replace(config=config)

    @property
    def has_transcript(self) -> bool:
        """Whether the method tells what it released (:mod:`lumberjack.transcript`)."""
        return hasattr(self.build(), "_fit_transcript")
