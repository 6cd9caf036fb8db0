from __future__ import annotations

import html.parser
import math
import re

import pytest
from synthetic_results import result_rows

from lumberjack_bench.figures import draw


class Collector(html.parser.HTMLParser):
    """Collects links to elsewhere, and checks that tags are closed in order."""

    VOID = ("meta", "img", "br", "link", "input")

    def __init__(self):
        super().__init__()
        self.open = []
        self.sources = []
        self.scripts = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append(dict(attrs))
        self.sources += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def page_of(write_results):
    def make(*runs):
        path = write_results(*runs)
        (report,) = draw("report", path.parent)
        assert report == path.parent / "report.html"
        return report.read_text(encoding="utf-8")

    return make


@pytest.fixture
def page(page_of):
    return page_of(
        result_rows("lumberjack", [0.82, 0.83, 0.84], eps=1.0),
        result_rows("lumberjack", [0.84, 0.85, 0.86], eps=2.0),
        result_rows("lumberjack", [1.5, 2.5, 3.5], eps=1.0, metric="fit_seconds"),
        result_rows(
            "snr",
            [0.78, 0.80, 0.79],
            eps=1.0,
            label="SNR <old>",
            card_status="doubted",
            card_concerns="reads n & bounds; second thing",
        ),
        result_rows("extra_trees", [0.85, 0.86, 0.87], eps=math.inf),
    )


def test_the_page_stands_on_its_own_and_is_well_formed(page):
    collector = Collector()
    collector.feed(page)
    assert collector.open == []
    assert collector.sources
    assert all(source.startswith(("data:", "#")) for source in collector.sources)
    # What runs in it stands in it.
    assert collector.scripts == [{"type": "application/json", "class": "data"}, {}]


def test_it_shows_means_with_intervals_and_marks_the_best(page):
    # 0.82, 0.83, 0.84: s = 0.01, t(2, 0.975) = 4.302653, half 4.302653 * 0.01 / sqrt(3) = 0.02484,
    # over 0.83 * 0.17 = 0.17606 in log-odds; 1 / (1 + exp(-(1.58563 -+ 0.17606))) = 0.8037, 0.8534.
    assert "<b>0.8300 [0.8037, 0.8534]</b>" in page
    assert "<td>0.7900 [0.7641, 0.8138]</td>" in page


def test_it_holds_cards_versions_times_and_commands(page):
    assert "<td>reads n &amp; bounds; second thing</td>" in page
    assert "SNR &lt;old&gt; †" in page
    assert "python=3.11 numpy=2.4" in page
    assert "Linux, 2 cores" in page
    assert ">2.50<" in page  # the mean of 1.5, 2.5 and 3.5 seconds
    command = (
        "dataset=adult +method.params.depth=3 n_repeats=3 method=extra_trees,lumberjack,snr eps=1,2"
    )
    assert f"python run.py -m {command}\n" in page
    assert "python scripts/make_figures.py figure3 report" in page


def test_it_compares_split_by_split(page):
    # Differences at the common eps, 1: 0.04, 0.03, 0.05; mean 0.04, half width 0.02484, on the
    # scale of log-odds within [-1, 1].
    assert "+0.0400" in page
    assert "[+0.0151, +0.0648]" in page
    assert "3 / 0 / 0" in page


def test_stand_ins_and_failures_are_said(page_of):
    page = page_of(
        result_rows(
            "lumberjack",
            [0.7, 0.8],
            dataset="acs_income",
            data_source="stand-in part.parquet, 10 rows",
            is_stand_in=True,
        ),
        result_rows("lumberjack", [0.7, 0.8]),
        result_rows("suihkonen", [""], metric="failure", status="timed out", run_hash="beef"),
    )
    assert '<span class="alert">ACSIncome (stand-in part.parquet, 10 rows)</span>' in page
    assert "1 without a result" in page
    assert re.search(r"<td>timed out</td><td><code>beef</code>", page)
    assert "# with LUMBERJACK_STAND_IN_DIR=FOLDER for the stand-ins" in page


def test_figures_that_lie_beside_it_are_embedded(page_of, tmp_path):
    (tmp_path / "figure1.png").write_bytes(b"\x89PNG picture")
    (tmp_path / "table1.csv").write_text("dataset,n_rows_ours\nadult,48842\n")
    page = page_of(result_rows("lumberjack", [0.82, 0.83]))
    assert "Figure 1: decision regions" in page
    assert "iVBORyBwaWN0dXJl" in page  # base64 of the bytes above
    assert "<td>48842</td>" in page
    assert "Figure 2" not in page
