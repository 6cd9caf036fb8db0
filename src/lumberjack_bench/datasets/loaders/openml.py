"""Any classification table of OpenML, by its number; scikit-learn fetches and keeps it.

Its schema is drafted from the published table and says so. Planning a run fetches the table, as
the checksum of its rows is part of the run.
"""

from __future__ import annotations

import functools
import hashlib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from lumberjack_bench.datasets.cache import cached
from lumberjack_bench.datasets.dataset import Dataset, DatasetError, DataSource
from lumberjack_bench.datasets.draft import published_schema
from lumberjack_bench.datasets.entries import EntryOptions
from lumberjack_bench.datasets.sources import data_folder


def load(config: Mapping[str, Any]) -> Dataset:
    """Load the table that the config's ``id`` says; rows without a label are left out."""
    folder = data_folder(config)
    number = _number(config)
    table, label, title, checksum = _fetched(number, folder / "openml")
    schema = published_schema(table, label, name=title, source=f"OpenML {number}, {title}")
    return cached(
        folder / "cache",
        str(config["name"]),
        schema,
        {"source": checksum},
        lambda: (table, DataSource("openml", schema.citation, f"openml {number}", checksum)),
        is_strict=True,
        options=EntryOptions(unlabelled="drop"),
    )


def identity(config: Mapping[str, Any]) -> str:
    """Return the number of the table and the checksum of its rows, which are fetched for it."""
    number = _number(config)
    return f"openml:{number}:{_fetched(number, data_folder(config) / 'openml')[-1]}"


def _number(config: Mapping[str, Any]) -> int:
    number = config.get("id")
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise DatasetError(
            f"openml: give the number of a table with dataset.id=NUMBER (31 for "
            f"https://www.openml.org/d/31), got {number!r}."
        )
    return number


@functools.cache
def _fetched(number: int, folder: Path) -> tuple[pa.Table, str, str, str]:
    """Return table, name of the label, title and checksum of the rows, from the folder if they are there."""
    # Seconds to import, which planning of other tables does not need.
    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings():
            # That a retry was needed, or that a newer version of the table exists.
            warnings.simplefilter("ignore")
            answer = fetch_openml(
                data_id=number,
                data_home=folder,
                as_frame=True,
                n_retries=1,
                # The faster one stumbles over categories that are whole numbers.
                parser="liac-arff",
            )
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DatasetError(
            f"openml: table {number} cannot be had ({reason}). Check its number and the network; "
            f"what was fetched before lies in {folder}."
        ) from None
    if len(answer.target_names) != 1:
        raise DatasetError(
            f"openml: table {number} names {len(answer.target_names)} columns to predict, not one. "
            "Download it and use dataset=table."
        )
    rows = answer.frame.to_csv(index=False, lineterminator="\n")
    checksum = hashlib.sha256(rows.encode()).hexdigest()
    table = pa.Table.from_pandas(answer.frame, preserve_index=False)
    return table, answer.target_names[0], answer.details["name"], checksum
