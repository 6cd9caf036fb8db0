"""What makes a run the run it is: its canonical text, its hash, and the seeds that follow from it.

Places, worker counts, tracking and labels are not part of it; library versions and the commit are
recorded with the result instead.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

FORMAT = 1
"""Raised when results of the same configuration stop being comparable with earlier ones."""

HASH_LENGTH = 16


# Hydra reads these annotations and makes objects of this class; it could not write to frozen ones.
@dataclass
class MethodConfig:
    """A method and its hyper-parameters, as ``conf/method/<name>.yaml`` describes it."""

    name: str
    target: str
    label: str
    is_private: bool = True
    mode: str | None = None
    is_tuned: bool = False
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunConfig:
    """One (data set, method, eps, delta, seed) with all its repetitions.

    Parameters
    ----------
    dataset : dict
        ``name``, ``kind`` and the keys of that kind, as its loader takes them.
    dataset_identity : str
        What determines the rows (a checksum, a recipe), wherever they lie.
    method : MethodConfig
        What to fit.
    eps, delta : float
        The privacy parameters; infinity and 0 for a method that is not private.
    seed : int
        Root of all randomness of the run.
    n_repeats : int
        Number of repetitions.
    method_version : str
        Name of the source text of a method from outside the project; empty for ours.
    """

    dataset: dict[str, Any]
    dataset_identity: str
    method: MethodConfig
    eps: float
    delta: float
    seed: int
    n_repeats: int
    method_version: str = ""

    @cached_property
    def identity(self) -> str:
        """Canonical text of all that changes the run's numbers."""
        content = asdict(self)
        content["dataset"] = self.dataset["name"]
        del content["method"]["label"]
        if not self.method_version:
            del content["method_version"]
        content["format"] = FORMAT
        return json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))

    @cached_property
    def hash(self) -> str:
        """Name of the run everywhere: the first hexadecimal digits of its identity's SHA-256."""
        return hashlib.sha256(self.identity.encode()).hexdigest()[:HASH_LENGTH]

    def __hash__(self) -> int:
        return hash(self.identity)

    def __str__(self) -> str:
        privacy = f"eps={self.eps:g}" if self.method.is_private else "not private"
        return f"{self.dataset['name']} {self.method.name} {privacy}"

    @property
    def data_version(self) -> str:
        """Name of the rows and the schema: eight digits, equal only for the same ones."""
        return hashlib.sha256(self.dataset_identity.encode()).hexdigest()[:8]

    @property
    def versions(self) -> dict[str, str]:
        """Versions of what may change under its name: the data set, and a method from outside."""
        versions = {self.dataset["name"]: self.data_version}
        if self.method_version:
            versions[f"method={self.method.name}"] = self.method_version
        return versions

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain data, without the folder of this machine's data."""
        content = asdict(self)
        content["dataset"].pop("data_dir", None)
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> RunConfig:
        """Return the run that plain data describes; a TypeError or KeyError when it describes none."""
        return cls(**{**content, "method": MethodConfig(**content["method"])})

    def split_seed(self, repetition: int) -> np.random.SeedSequence:
        """Return the seed of the split of a repetition; the same for every method and eps."""
        return _seed("split", self.seed, self.dataset["name"], repetition)

    def method_seed(self, purpose: str, repetition: int) -> np.random.SeedSequence:
        """Return a seed of the method in a repetition, for structure, noise or tuning."""
        return _seed(purpose, self.seed, self.dataset["name"], self.method.name, repetition)


def _seed(*parts: str | int) -> np.random.SeedSequence:
    # A hash, not SeedSequence.spawn: a method's seeds must not depend on which others there are.
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return np.random.SeedSequence(int.from_bytes(digest[:16], "big"))
