"""The picture that a reader picks in: what it holds, and in a real browser that picking changes it."""

from __future__ import annotations

import json
import math
import re

import pytest
from synthetic_results import result_rows, write_table

from lumberjack_bench.figures import FigureError, draw, style
from lumberjack_bench.figures.explorer import Explorer, marker_outline

HOSTILE = "SNR </script><b>old"


RUNS = (
    result_rows("lumberjack", [0.82, 0.83, 0.84], eps=1.0),
    result_rows("lumberjack", [0.84, 0.85, 0.86], eps=2.0),
    result_rows("lumberjack", [0.4, 0.5, 0.6], eps=1.0, metric="log_loss"),
    result_rows("lumberjack", [0.7, 0.71], eps=1.0, dataset="acs_income"),
    result_rows("lumberjack", [2.7, 2.71], dataset="acs_income_dollars", metric="log_loss"),
    result_rows("snr", [0.78, 0.80, 0.79], label=HOSTILE, card_status="doubted"),
    result_rows("extra_trees", [0.85, 0.86, 0.87], eps=math.inf),
)


def test_it_holds_means_with_intervals_of_every_metric_and_data_set(table_of):
    data = Explorer(table_of(*RUNS)).data
    assert list(data["datasets"]) == ["adult", "acs_income", "acs_income_dollars"]
    assert [(name, metric["sign"]) for name, metric in data["metrics"].items()] == [
        ("accuracy", 1),
        ("log_loss", -1),
    ]
    curves = {(c["dataset"], c["metric"], c["method"]): c["points"] for c in data["curves"]}
    # As in the report: 0.82, 0.83, 0.84 give 0.83 [0.8037, 0.8534].
    assert curves["adult", "accuracy", "lumberjack"][0] == pytest.approx(
        [1, 0.83, 0.8037, 0.8534, 3], abs=5e-5
    )
    # Student's own, as a log loss has no upper end: 0.5 -+ 4.302653 * 0.1 / sqrt(3).
    (point,) = curves["adult", "log_loss", "lumberjack"]
    assert point == pytest.approx([1, 0.5, 0.251586, 0.748414, 3], abs=1e-5)
    assert curves["adult", "accuracy", "extra_trees"][0][0] is None
    assert len(curves) == 6


def test_methods_have_the_looks_of_the_figures_and_variants_their_own(table_of):
    other = result_rows("lumberjack", [0.8, 0.81, 0.8], params='{"depth": 9}')
    methods = Explorer(table_of(*RUNS, other)).data["methods"]
    assert set(methods) == {"lumberjack", "lumberjack.2", "snr", "extra_trees"}
    look = style.LOOKS["lumberjack"]
    assert methods["lumberjack"]["colour"] == look.colour
    assert methods["lumberjack"]["marker"] == marker_outline(look.marker)
    assert methods["lumberjack.2"]["colour"] != look.colour
    assert methods["snr"]["isDoubted"]
    assert methods["extra_trees"]["marker"] == ""


def test_every_marker_has_an_outline_about_one_unit_wide():
    markers = {look.marker for look in style.LOOKS.values() if look.marker}
    outlines = {marker_outline(marker) for marker in markers}
    assert len(outlines) == len(markers)
    for outline in outlines:
        assert re.match("M[-0-9]", outline)
        assert 0.4 < max(float(x) for x in re.findall(r"[.\d]+", outline)) < 0.71
    # A square, upside down as in SVG.
    assert marker_outline("s") == "M-0.5 0.5L0.5 0.5L0.5 -0.5L-0.5 -0.5Z"


def test_a_label_cannot_end_the_data(table_of):
    page = Explorer(table_of(*RUNS)).html
    assert page.count("</script>") == 2
    text = page.split('class="data">')[1].split("</script>")[0]
    assert json.loads(text)["methods"]["snr"]["label"] == f"{HOSTILE} †"


def test_a_table_without_a_result_is_refused(table_of):
    failed = result_rows("snr", [""], metric="failure", status="failed")
    with pytest.raises(FigureError, match="no finished run"):
        _ = Explorer(table_of(failed)).data


class Page:
    """The report in the browser."""

    def __init__(self, browser, place):
        self.browser, self.place = browser, place

    def open(self, fragment=""):
        self.browser.get("about:blank")
        self.browser.get(f"{self.place.as_uri()}{fragment}")

    def pick(self, name, value):
        self.browser.find_element("css selector", f"[name={name}] [value={value}]").click()

    def click(self, selector):
        self.browser.find_element("css selector", selector).click()

    def texts(self, selector):
        found = self.browser.find_elements("css selector", f"#explorer {selector}")
        return [one.text for one in found]

    @property
    def picture(self):
        return self.browser.find_element("css selector", ".picture").get_attribute("innerHTML")

    @property
    def hints(self):
        """What is shown when one points at a marker."""
        found = self.browser.find_elements("css selector", "#explorer .curve title")
        return sorted(one.get_attribute("textContent") for one in found)

    @property
    def address(self):
        return self.browser.current_url.partition("#")[2]


@pytest.fixture(scope="module")
def report(browser, tmp_path_factory):
    path = write_table(tmp_path_factory.mktemp("results"), *RUNS)
    (report,) = draw("report", path.parent)
    return report


@pytest.fixture
def page(browser, report):
    page = Page(browser, report)
    page.open()
    yield page
    assert browser.get_log("browser") == []


def test_picking_a_data_set_or_a_metric_changes_the_picture(page):
    assert page.texts("svg .axis") == ["Accuracy"]
    assert page.texts("svg .name") == ["Extra Trees", "Lumberjack", f"{HOSTILE} †"]
    # 0.84, 0.85, 0.86: half 0.02484 over 0.85 * 0.15 in log-odds; 1 / (1 + exp(-(1.73460 -+ 0.19484))).
    assert page.texts("td b") == ["0.8300 [0.8037, 0.8534]", "0.8500 [0.8234, 0.8732]"]
    assert page.hints == [
        "Lumberjack, ε = 1: 0.8300 [0.8037, 0.8534]",
        "Lumberjack, ε = 2: 0.8500 [0.8234, 0.8732]",
        f"{HOSTILE} †, ε = 1: 0.7900 [0.7641, 0.8138]",
    ]
    assert {"0.775", "0.800"} < set(page.texts("svg text"))
    before = page.picture

    page.pick("metric", "log_loss")
    assert page.texts("svg .axis") == ["Log loss (less is better)"]
    assert page.texts("svg .name") == ["Lumberjack"]
    (note,) = page.texts(".note")
    assert note.startswith(f"Without a value here: {HOSTILE} †, Extra Trees. Mean over")
    assert page.picture != before

    page.pick("metric", "accuracy")
    assert page.picture == before
    page.pick("dataset", "acs_income")
    assert page.picture != before
    assert page.texts("td:first-child") == ["Lumberjack"]

    # Another kind of table, which has no accuracy.
    page.pick("dataset", "acs_income_dollars")
    assert page.texts("svg .axis") == ["Log loss (less is better)"]


def test_methods_are_taken_off_and_put_back(page):
    before = page.picture
    page.click("[value=snr]")
    assert page.texts("svg .name") == ["Extra Trees", "Lumberjack"]
    page.click("[name=none]")
    assert page.picture == ""
    assert page.texts(".note") == ["No method is picked."]
    page.click("[name=all]")
    assert page.picture == before


def test_the_address_holds_the_choice_and_gives_it_back(page):
    page.pick("metric", "log_loss")
    page.click("[value=extra_trees]")
    assert page.address == "dataset=adult&metric=log_loss&methods=lumberjack,snr"
    chosen = page.picture
    page.open(f"#{page.address}")
    assert page.picture == chosen
    # An address with names that are not there, and one of a section, leave things as they are.
    page.open("#dataset=other&metric=other")
    assert page.texts("svg .axis") == ["Accuracy"]
    page.click("nav [href='#cards']")
    assert len(page.texts("svg .name")) == 3
