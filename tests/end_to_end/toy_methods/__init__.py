"""Methods that misbehave in one way each, for tests of the harness."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from baselines.majority import MajorityClassifier
from lumberjack.accounting.guarantee import Guarantee, PrivacyCard


class PrivacyLeakWarning(RuntimeWarning):
    """The name by which libraries announce that they read private rows."""


class Toy(MajorityClassifier):
    """A private majority class, as far as the harness can see."""

    is_private = True

    def privacy_card(self) -> PrivacyCard:
        claimed = Guarantee(self.epsilon, self.delta)
        concerns = () if self.noise_seed is None else ("fixed noise seed",)
        return PrivacyCard("Toy", "paper", claimed, "nowhere", "holds", concerns)


class Slow(Toy):
    def __init__(self, *, seconds: float = 0.0, **shared: Any) -> None:
        super().__init__(**shared)
        self.seconds = seconds

    def fit(self, X: Any, y: Any) -> Slow:
        time.sleep(self.seconds)
        super().fit(X, y)
        return self


class Failing(Toy):
    """Fails at some eps, as long as a file is there."""

    def __init__(self, *, at_eps: float = 0.0, while_file: str = "", **shared: Any) -> None:
        super().__init__(**shared)
        self.at_eps = at_eps
        self.while_file = while_file

    def fit(self, X: Any, y: Any) -> Failing:
        if self.epsilon == self.at_eps and (not self.while_file or Path(self.while_file).exists()):
            raise RuntimeError(f"injected failure at eps={self.epsilon:g}\nwith a second line")
        super().fit(X, y)
        return self


class Dying(Failing):
    """Kills its own process where the other would fail, as the system does when memory is short."""

    def fit(self, X: Any, y: Any) -> Dying:
        try:
            super().fit(X, y)
        except RuntimeError:
            os.kill(os.getpid(), signal.SIGKILL)
        return self


class Leaking(Toy):
    def fit(self, X: Any, y: Any) -> Leaking:
        warnings.warn("bounds were read from the rows\nmore", PrivacyLeakWarning, stacklevel=2)
        super().fit(X, y)
        return self


class OutOfRange(Toy):
    def predict(self, X: Any) -> Any:
        return super().predict(X) + 7


class Wordy(Toy):
    def predict(self, X: Any) -> Any:
        return np.array(["yes"] * len(X))


class Voiceless(Toy):
    """Has no probabilities."""

    def predict(self, X: Any) -> Any:
        return super().predict_proba(X).argmax(axis=1)

    def predict_proba(self, X: Any) -> Any:
        return None


class Unsure(Toy):
    def predict_proba(self, X: Any) -> Any:
        return super().predict_proba(X) / 2


class Boasting(Toy):
    def fit_report(self) -> dict[str, float]:
        return {"accuracy": 1.0}


class Odd(Toy):
    """Reports under a name that MLflow does not take."""

    def fit_report(self) -> dict[str, float]:
        return {"depth! (of) trees?": 3.0}


class Vague(Toy):
    def fit_report(self) -> dict[str, float]:
        return {"depth": float("nan")}


class Skipping(Toy):
    def skip(self, n_rows: int) -> str | None:
        return None if self.epsilon >= 1 else f"{n_rows} rows need eps of at least 1"


class Exiting(Toy):
    def fit(self, X: Any, y: Any) -> Exiting:
        sys.exit(0)


class Vanishing(Toy):
    def fit(self, X: Any, y: Any) -> Vanishing:
        os._exit(0)


class Crashing(Toy):
    def fit(self, X: Any, y: Any) -> Crashing:
        ctypes.string_at(0)
        return self


class Hungry(Toy):
    """Eats memory up to a limit of its own."""

    def fit(self, X: Any, y: Any) -> Hungry:
        limit = 8 << 30
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        bytearray(2 * limit)
        return self


class Sleeping(Toy):
    def fit(self, X: Any, y: Any) -> Sleeping:
        time.sleep(600)
        return self


class Stubborn(Toy):
    """Starts a process, notes its number, and lets nothing end it."""

    def __init__(self, *, note: str = "", **shared: Any) -> None:
        super().__init__(**shared)
        self.note = note

    def fit(self, X: Any, y: Any) -> Stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        process = os.fork()
        if process and self.note:
            Path(self.note).write_text(str(process))
        while True:
            with contextlib.suppress(BaseException):
                time.sleep(600)


class Tuned(Toy):
    """Remembers the sizes of what it was given."""

    def __init__(self, *, depth: int = 1, **shared: Any) -> None:
        super().__init__(**shared)
        self.depth = depth

    def tune(self, X: Any, y: Any, X_validation: Any, y_validation: Any) -> dict[str, Any]:
        assert (len(X), len(y), len(X_validation), len(y_validation)) == (8000, 8000, 1000, 1000)
        return {"depth": np.int64(5)}

    def fit(self, X: Any, y: Any) -> Tuned:
        self.n_rows_ = len(X)
        super().fit(X, y)
        return self

    def fit_report(self) -> dict[str, float]:
        return {"depth": self.depth, "n_rows": self.n_rows_, "n_jobs": self.n_jobs}


class Seeded(Toy):
    """Reports what its seeds give, so that a test sees them in the result."""

    def fit_report(self) -> dict[str, float]:
        structure = np.random.default_rng(self.random_state).integers(1 << 40)
        noise = np.random.default_rng(self.noise_seed).integers(1 << 40)
        return {"structure": float(structure), "noise": float(noise)}
