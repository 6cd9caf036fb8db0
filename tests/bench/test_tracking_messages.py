from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from lumberjack_bench.config import Settings, TrackingConfig
from lumberjack_bench.tracking import MlflowView, NoView, TrackingError, make_view


def with_tracking(settings: Settings, **tracking: str) -> Settings:
    return replace(settings, tracking=TrackingConfig(**tracking))


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (sqlite3.SQLITE_BUSY, "is locked by another program. Close that program, or"),
        (sqlite3.SQLITE_NOTADB, "is damaged. Move the file away"),
        (sqlite3.SQLITE_CORRUPT_INDEX, "is damaged. Move the file away"),
        (sqlite3.SQLITE_FULL, "has no room left. Free some, or"),
        (sqlite3.SQLITE_READONLY, "cannot be written. Choose another with"),
        (0, "cannot be used (ValueError: something new). Move the file away"),
    ],
)
def test_what_is_wrong_with_a_store_and_what_to_do_is_said_in_one_line(
    code: int, reason: str, settings: Settings
) -> None:
    view = MlflowView(with_tracking(settings, kind="sqlite"))
    error = ValueError("something\nnew")
    error.__cause__ = sqlite3.OperationalError("in words that may change")
    error.__cause__.sqlite_errorcode = code
    said = view._explain(error)
    assert said.startswith(f"the MLflow store {settings.results_dir / 'mlflow.db'} {reason}")
    assert said.endswith("Results are safe in the result files.") == ("no room" not in reason)
    assert "\n" not in said


@pytest.mark.parametrize(
    ("kind", "uri", "message"),
    [
        ("server", "sqlite:///x.db", "needs an address like http://127.0.0.1:5000, got 'sqlite"),
        ("server", "127.0.0.1", "needs an address like http://127.0.0.1:5000"),
        ("server", "ftp://me:secret@host", "5000, got 'ftp://host'"),
        ("sqlite", "http://127.0.0.1", "needs an address like sqlite:///FILE, got 'http"),
    ],
)
def test_an_address_of_the_wrong_kind_is_refused(
    kind: str, uri: str, message: str, settings: Settings
) -> None:
    settings.results_dir.joinpath("locks").mkdir(parents=True)
    view = MlflowView(with_tracking(settings, kind=kind, uri=uri))
    with pytest.raises(TrackingError, match=message):
        view.open("nothing")


def test_no_tracking_is_a_view_that_does_nothing(settings: Settings) -> None:
    view = make_view(with_tracking(settings, kind="none"))
    assert isinstance(view, NoView)
    assert view.close("FINISHED", []) == ""
