"""The benchmark of growth: its fits on curves worked out by hand, its cells, and one small run of it."""

import argparse
import io
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

from benchmarks import data
from benchmarks.scale import cells, growth, study
from benchmarks.scale.cells import BASE_LABELS, Cell, usual_rows
from tests.helpers.data import ROOT

SIZES = np.array([1e3, 1e4, 1e5, 1e6])


def record(labels, search="exact", k=5, **costs):
    rows = usual_rows(labels)
    return {"source": "topics", "labels": labels, "rows": rows, "search": search, "k": k} | costs


def test_a_power_law_gives_its_exponent():
    assert growth.fit_power(SIZES, 3 * SIZES**0.7) == pytest.approx((0.7, 1.0))


def test_a_logarithm_gives_what_a_doubling_adds():
    assert growth.fit_logarithm(SIZES, 100 + 20 * np.log2(SIZES)) == pytest.approx((20.0, 1.0))


def test_r_squared_tells_a_logarithm_from_a_power_law():
    assert growth.fit_logarithm(SIZES, SIZES**0.7)[1] < 0.8
    assert growth.fit_power(SIZES, np.log(SIZES) - 6)[1] < 0.95


def test_a_model_lies_only_on_the_curves_that_it_belongs_to():
    found = [
        record(1_000, evaluations=10.0),
        record(BASE_LABELS, evaluations=20.0),
        record(BASE_LABELS, k=50, evaluations=90.0),
        record(BASE_LABELS, evaluations=30.0) | {"rows": 50_000},
    ]
    points = {curve.against: list(zip(curve.x, curve.y, strict=True)) for curve in growth.curves(found)}
    assert points["labels"] == [(1_000, 10), (BASE_LABELS, 20)]
    assert points["rows"] == [(usual_rows(BASE_LABELS), 20), (50_000, 30)]
    assert points["k"] == [(5, 20), (50, 90)]


def test_cells_stay_below_the_largest_size_and_grow_along_a_curve():
    curves = cells.curves(["hierarchy", "tib-sid"], 70_000)
    assert all(cell.labels <= 70_000 and (cell.rows or 0) <= 70_000 for curve in curves for cell in curve)
    for curve in curves:
        sizes = [(cell.labels, cell.rows or 0) for cell in curve]
        assert sizes == sorted(sizes)
        assert len(set(sizes)) == len(sizes) >= 3


def test_only_the_base_cell_is_asked_for_several_k():
    curves = cells.curves(["topics"], 1_000_000)
    several = {cell.name for curve in curves for cell in curve if len(cells.entry(cell).searches) > 3}
    assert several == {f"topics-{BASE_LABELS}-{usual_rows(BASE_LABELS)}"}


def test_a_cell_is_measured_once_and_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "CACHE", tmp_path / "data")
    monkeypatch.setattr(cells, "DEV_ROWS", 50)
    options = argparse.Namespace(threads=1, repeat=1, timeout=120.0, memory=2.0)
    measured = study.measure(Cell("topics", 300, 300, 500), options)
    assert not study.failed(measured)
    assert [found["search"] for found in measured] == ["exact", "exact, tail 1", "beam 10"]
    assert all(found["evaluations"] > 5 and found["process_peak_bytes"] > 2**20 for found in measured)
    assert not list((tmp_path / "data").iterdir())
    console = Console(width=300, record=True, file=io.StringIO())
    console.print(growth.cost_table(growth.records({"cells": {"one": measured}}), markdown=True))
    assert "| topics" in console.export_text()


def test_a_cell_beyond_its_memory_fails_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "CACHE", tmp_path / "data")
    monkeypatch.setattr(cells, "DEV_ROWS", 50)
    options = argparse.Namespace(threads=1, repeat=1, timeout=120.0, memory=0.03)
    measured = study.measure(Cell("topics", 300, 300, 500), options)
    assert study.failed(measured)
    assert "MemoryError" in study.reason(measured)


def test_a_failed_or_missing_cell_is_measured_again():
    assert study.failed(None)
    assert study.failed([{"failed": "train took longer than 1 seconds."}])
    assert not study.failed([record(1_000)])


def test_the_command_explains_itself():
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert "--amazon" in run.stdout
    assert run.returncode == 0
