from __future__ import annotations

import json
import shlex

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from synthetic_results import result_rows

from lumberjack_bench.figures.curves import read_panels
from lumberjack_bench.figures.recipes import run_commands


@pytest.mark.parametrize(
    "value",
    [
        *("null", "true", "1.0", "a b", "a,b", "it's", "[x]", "end\\", 'a\\"', "ä=ö", "", "-inf"),
        *("null 1", "a  b", " a", "10:30", "C:/a b/c", "-", "1_000", "a\nb"),
        *(["null", "?"], {"a": "b:c"}, 3, None),
    ],
    ids=repr,
)
def test_settings_of_a_table_come_back_from_the_command_as_they_were(table_of, value):
    config = {"kind": "table", "name": "mine", "path": "mine.csv", "missing_texts": value}
    rows = result_rows("majority", [0.5] * 5, dataset="mine", dataset_config=json.dumps(config))
    (command,) = run_commands(read_panels(table_of(rows)))
    parsed = OverridesParser.create().parse_overrides(shlex.split(command)[3:])
    given = {override.key_or_group: override.value() for override in parsed}
    assert given.get("dataset.missing_texts") == value
    assert (given["dataset"], given["dataset.path"]) == ("table", "mine.csv")


def test_budgets_are_written_in_full(table_of):
    rows = [result_rows("snr", [0.5] * 5, eps=eps, delta=1.23456789e-6) for eps in (0.12345678, 4)]
    (command,) = run_commands(read_panels(table_of(*rows)))
    assert "eps=0.12345678,4" in command
    assert "delta=1.23456789e-06" in command
