from __future__ import annotations

import math

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex
from synthetic_results import result_rows

from lumberjack_bench.figures import style
from lumberjack_bench.figures.curves import read_panels
from lumberjack_bench.figures.panels import draw_panels, spread

EPS = (0.5, 1.0, 2.0)


def sweep(method, values, **changes):
    return [
        row
        for eps, value in zip(EPS, values, strict=True)
        for row in result_rows(method, [value - 0.01, value + 0.01], eps=eps, **changes)
    ]


@pytest.fixture
def drawn(table_of):
    def draw(*runs):
        panels = read_panels(table_of(*runs))
        with style.our_look():
            return draw_panels(panels)

    return draw


def texts(figure):
    return [text.get_text() for part in (figure, *figure.axes) for text in part.texts]


def footnote(figure, mark):
    return " ".join(text.get_text() for text in figure.texts).partition(mark)[2]


def curve_lines(axes):
    """Lines with a vertex for each eps, not the samples beside the names."""
    return [line for line in axes.lines if list(line.get_xdata()) == list(EPS)]


def test_a_doubted_guarantee_is_dashed_hollow_and_has_a_footnote(drawn):
    figure = drawn(
        sweep("lumberjack", [0.82, 0.83, 0.84]),
        sweep("snr", [0.78, 0.79, 0.8], label="SNR", card_status="doubted"),
        sweep("suihkonen", [0.7, 0.71, 0.72], label="Suihkonen", card_status="broken"),
    )
    lines = {to_hex(line.get_color()).upper(): line for line in curve_lines(figure.axes[0])}
    assert not lines[style.BLUE].is_dashed()
    assert to_hex(lines[style.BLUE].get_markerfacecolor()).upper() == style.BLUE
    for colour in (style.ORANGE, style.PURPLE):
        assert lines[colour].is_dashed()
        assert lines[colour].get_markerfacecolor() == "white"
    assert {"Lumberjack", "SNR †", "Suihkonen †"} < set(texts(figure))
    note = footnote(figure, "†")
    assert "SNR" in note
    assert "Suihkonen" in note
    assert "Lumberjack" not in note


def test_tuning_without_privacy_cost_is_marked_for_private_methods_only(drawn):
    figure = drawn(
        sweep("diffprivlib", [0.7, 0.7, 0.7], label="DiffPrivLib", tuned='{"a": 1}'),
        result_rows("extra_trees", [0.8], eps=math.inf, label="Extra Trees", tuned='{"a": 1}'),
    )
    assert {"DiffPrivLib ‡", "Extra Trees"} < set(texts(figure))
    assert "DiffPrivLib" in footnote(figure, "‡")
    assert "Extra Trees" not in footnote(figure, "‡")


def test_a_stand_in_is_named_in_the_title_with_its_rows(drawn):
    source = "stand-in part.parquet, 89,958 rows"
    changes = {"dataset": "acs_income", "data_source": source, "is_stand_in": True}
    figure = drawn(sweep("lumberjack", [0.7, 0.71, 0.72], **changes))
    titles = {text.get_text(): text for text in figure.axes[0].texts}
    assert "ACSIncome" in titles
    assert titles[source].get_color() == style.VERMILION
    assert "not the rows of the paper" in " ".join(texts(figure))


def test_names_stand_in_the_order_of_last_values_and_do_not_overlap(drawn):
    figure = drawn(
        sweep("a", [0.9, 0.85, 0.8], label="A"),
        sweep("b", [0.7, 0.75, 0.8001], label="B"),
        sweep("c", [0.8, 0.8, 0.8002], label="C"),
        result_rows("extra_trees", [0.95], eps=math.inf, label="Extra Trees"),
    )
    names = {
        text.get_text(): text.get_position()[1]
        for text in figure.axes[0].texts
        if text.get_text() in ("A", "B", "C", "Extra Trees")
    }
    assert sorted(names, key=names.get) == ["A", "B", "C", "Extra Trees"]
    heights = np.sort(list(names.values()))
    line_height = style.LABEL_SIZE / 72 / 2.9  # of a panel 2.9 inches high
    assert np.diff(heights).min() > line_height


def test_references_are_horizontal_and_the_majority_a_thin_dotted_line(drawn):
    figure = drawn(
        sweep("lumberjack", [0.7, 0.71, 0.72]),
        result_rows("extra_trees", [0.8], eps=math.inf),
        result_rows("majority", [0.68], eps=math.inf),
    )
    lines = [line for line in figure.axes[0].lines if set(line.get_ydata()) in ({0.8}, {0.68})]
    horizontal = {line.get_ydata()[0]: line for line in lines}
    assert horizontal[0.8].get_linestyle() == "-"
    assert horizontal[0.68].get_linestyle() == ":"
    assert horizontal[0.68].get_linewidth() < horizontal[0.8].get_linewidth()


def test_a_majority_far_below_is_written_with_its_value_and_does_not_squeeze_the_rest(drawn):
    figure = drawn(
        sweep("lumberjack", [0.78, 0.79, 0.8]),
        result_rows("majority", [0.544], eps=math.inf, label="Majority class"),
    )
    assert "Majority class 0.544 ↓" in texts(figure)
    assert figure.axes[0].get_ylim()[0] > 0.6


def test_bands_are_the_intervals(drawn):
    # Two values 0.01 apart from their mean: s = 0.0141421, t(1, 0.975) = 12.706205,
    # half width 12.706205 * 0.0141421 / sqrt(2) = 0.12706205, over 0.25 = 0.5082482 in log-odds;
    # 1 / (1 + exp(0.5082482)) = 0.375605.
    figure = drawn(sweep("lumberjack", [0.5, 0.5, 0.6]))
    (band,) = figure.axes[0].collections
    ends = band.get_paths()[0].vertices
    at_first = ends[np.isclose(ends[:, 0], 0.5)][:, 1]
    assert at_first.min() == pytest.approx(0.375605, abs=1e-6)
    assert at_first.max() == pytest.approx(1 - 0.375605, abs=1e-6)


def test_a_method_looks_the_same_in_every_panel(drawn):
    runs = [
        sweep(method, [0.7, 0.71, 0.72], dataset=dataset)
        for dataset in ("adult", "mine")
        for method in ("lumberjack", "own_method", "another")
        if (dataset, method) != ("adult", "another")
    ]
    figure = drawn(*runs)
    first, second = (
        {(to_hex(line.get_color()), line.get_marker()) for line in curve_lines(axes)}
        for axes in figure.axes
    )
    assert len(first) == 2
    assert len(second) == 3
    assert first < second


def test_settings_that_differ_between_data_sets_only_do_not_change_a_method_s_look(drawn):
    settings = {"adult": '{"n_estimators": 30}', "mine": '{"n_estimators": 50}'}
    runs = [
        sweep("lumberjack", [0.7, 0.71, 0.72], dataset=dataset, params=params)
        for dataset, params in settings.items()
    ]
    figure = drawn(*runs)
    for axes in figure.axes:
        colours = {to_hex(line.get_color()).upper() for line in curve_lines(axes)}
        assert colours == {style.BLUE}


def test_methods_differ_in_marker_so_that_grey_print_can_be_read():
    private = [look for look in style.LOOKS.values() if look.marker]
    assert len({look.marker for look in private}) == len(private)


@pytest.mark.parametrize("kind", ["pdf", "png", "svg"])
def test_equal_results_make_equal_files_whatever_a_user_s_matplotlib_settings(drawn, kind):
    plain = style.as_bytes(drawn(sweep("lumberjack", [0.7, 0.71, 0.72])), kind)
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "black"}):
        assert style.as_bytes(drawn(sweep("lumberjack", [0.7, 0.71, 0.72])), kind) == plain
        assert matplotlib.rcParams["font.size"] == 20


def test_a_single_eps_and_a_lone_majority_can_be_drawn(drawn):
    figure = drawn(result_rows("majority", [0.7], eps=math.inf))
    assert figure.axes[0].get_ylim()[0] < 0.7 < figure.axes[0].get_ylim()[1]
    figure = drawn(result_rows("lumberjack", [0.7], eps=1.0))
    low, high = figure.axes[0].get_xlim()
    assert low < 1.0 < high


def test_spreading_moves_equal_positions_apart_around_their_mean():
    assert spread([0.5, 0.5], 0.2, 0.0, 1.0) == pytest.approx([0.4, 0.6])
    # 0.1 and 0.15 are a gap of 0.1 too close: their mean 0.125 stays; 0.9 is left alone.
    assert spread([0.1, 0.15, 0.9], 0.1, 0.0, 1.0) == pytest.approx([0.075, 0.175, 0.9])


def test_spreading_stays_within_its_limits_where_there_is_room():
    assert spread([0.95, 0.97, 0.99], 0.1, 0.0, 1.0) == pytest.approx([0.8, 0.9, 1.0])
    assert spread([0.0, 0.0], 0.1, 0.0, 1.0) == pytest.approx([0.0, 0.1])
