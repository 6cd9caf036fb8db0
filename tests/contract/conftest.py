from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--method", action="append", default=[], help="test these methods only")
    parser.addoption("--method-folder", help="where they are, if they are none of ours")
