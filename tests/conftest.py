from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature


@pytest.fixture
def mixed_schema() -> FeatureSchema:
    features = (
        NumericFeature("age", 0.0, 100.0),
        CategoricalFeature("colour", ("red", "green", "blue")),
        NumericFeature("income", -10.0, 10.0),
    )
    return FeatureSchema(features, ("no", "yes"))


@pytest.fixture
def development_tables() -> Path:
    """The folder of ACS tables beside the project; where it is not, its tests are skipped."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data" / "acs"
    if not folder.is_dir():
        pytest.skip("needs the development tables in ../shared/data/acs")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium that reaches nothing but files; where there is none, its tests are skipped."""
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    if missing := [name for name, place in programs.items() if place is None]:
        pytest.skip(f"no {' and '.join(missing)} here (Debian: chromium and chromium-driver)")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = programs["chromium"]
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in ("headless", "no-sandbox", "disable-dev-shm-usage", "window-size=1200,1400"):
        options.add_argument(f"--{flag}")
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND")
    driver = webdriver.Chrome(options, webdriver.ChromeService(programs["chromedriver"]))
    yield driver
    driver.quit()
