# The report of ONNX's backend scoreboard.
# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX's official backend suite and writes the files that github.com/onnx/backend-scoreboard keeps of a backend.

    python -m cameo.backend.scoreboard OUT_DIR [--backend MODULE] [--package NAME] [--include REGEX]

OUT_DIR receives report.json (names of tests by outcome), trend.json (counts of this run and of those before it), ops.json
(counts by operator), pip-list.json, nodes.csv, models.csv and metadata.csv, in the scoreboard's own form, and
scoreboard.md, the same as tables to read. As there, only tests on the CPU are run.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib.metadata
import io
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import onnx.defs

from .. import _cameo
from ._command import module_of, pattern

OUTCOMES = ("passed", "failed", "skipped")


class _Recorder:
    """The backend, with a note of the model that it was given last: that of the test under way."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.model: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def prepare(self, model: Any, device: str = "CPU", **kwargs: Any) -> Any:
        self.model = model
        return self._backend.prepare(model, device, **kwargs)

    def supports_device(self, device: str) -> bool:
        return bool(self._backend.supports_device(device))


class Outcome:
    """One test: name as the scoreboard writes it, outcome, reason of a failure, the model's name and operators."""

    __slots__ = ("name", "outcome", "reason", "graph", "operators")

    def __init__(self, name: str) -> None:
        self.name, self.outcome, self.reason, self.graph = name, "passed", "", ""
        self.operators: frozenset[tuple[str, str]] = frozenset()


class _Result(unittest.TestResult):
    def __init__(self, recorder: _Recorder) -> None:
        super().__init__()
        self.outcomes: list[Outcome] = []
        self._recorder = recorder

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._recorder.model = None
        self.outcomes.append(Outcome("::".join(test.id().split(".")[-2:])))

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        model, last = self._recorder.model, self.outcomes[-1]
        if model is not None:
            last.graph = model.graph.name
            last.operators = frozenset((node.domain, node.op_type) for node in model.graph.node)

    def _failed(self, error: Any) -> None:
        text = str(error[1]).strip().splitlines()
        self.outcomes[-1].outcome = "failed"
        self.outcomes[-1].reason = f"{error[0].__name__}: {text[0] if text else ''}"

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self._failed(err)

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        super().addError(test, err)
        self._failed(err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self.outcomes[-1].outcome, self.outcomes[-1].reason = "skipped", reason


def run(backend: Any, include: str = "") -> list[Outcome]:
    """Runs the suite, or the tests whose names the regular expression `include` is found in, on the CPU."""
    recorder = _Recorder(backend)
    suite = unittest.TestSuite()
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as home:
        warnings.simplefilter("ignore")  # the suite computes what it expects, and NumPy warns of overflows in that
        from onnx.backend.test import BackendTest
        runner: Any = BackendTest  # it is declared for classes, and takes whatever has their methods
        for case in runner(recorder, "scoreboard").test_cases.values():
            for name in sorted(vars(case)):
                if name.startswith("test_") and name.endswith("_cpu") and re.search(include, name):
                    suite.addTest(case(name))
        # Where the runner keeps copies of networks.
        with unittest.mock.patch.dict(os.environ, {"ONNX_MODELS": home}):
            result = _Result(recorder)
            result.buffer = True
            suite.run(result)
    return result.outcomes


def packages() -> list[dict[str, str]]:
    """What `pip list --format=json` tells."""
    rows = {str(found.metadata["Name"]): found.version for found in importlib.metadata.distributions()}
    return [{"name": name, "version": rows[name]} for name in sorted(rows, key=str.lower)]


def counts(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """How many tests ended in which way."""
    listed = [test.outcome for test in outcomes]
    return {outcome: listed.count(outcome) for outcome in OUTCOMES}


def report(outcomes: Iterable[Outcome], date: datetime.datetime) -> dict[str, Any]:
    """report.json: names by outcome."""
    listed = list(outcomes)
    return {"date": date.strftime("%m/%d/%Y %H:%M:%S"),
            **{key: sorted(test.name for test in listed if test.outcome == key) for key in OUTCOMES}}


def operators(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    """ops.json: for each operator, how many tests have it in their graph, and how they ended."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for test in outcomes:
        for domain, name in test.operators:
            row = rows.setdefault((domain, name), {"domain": domain, "op_type": name, "total_tests": 0,
                                                   **{f"{outcome}_tests": 0 for outcome in OUTCOMES}})
            row["total_tests"] += 1
            row[f"{test.outcome}_tests"] += 1
    return [rows[key] for key in sorted(rows)]


def next_trend(trend: list[dict[str, Any]], summary: dict[str, Any]) -> list[dict[str, Any]]:
    """The scoreboard's rule: a run that repeats the last of several replaces it, so that the date is the newest."""
    def without_date(row: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in row.items() if key != "date"}
    if len(trend) >= 2 and without_date(trend[-1]) == without_date(summary):
        return [*trend[:-1], summary]
    return [*trend, summary]


def node_rows(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """nodes.csv. The column of outcomes is called "None": so the scoreboard's reader wants it."""
    passed = {row["op_type"] for row in rows if row["passed_tests"] and row["domain"] in ("", "ai.onnx")}
    experimental = onnx.defs.OpSchema.SupportType.EXPERIMENTAL
    known = sorted((schema.name, schema.support_level == experimental) for schema in onnx.defs.get_all_schemas()
                   if schema.domain in ("", "ai.onnx"))
    table = [(name + " (Experimental)" * trial, "Passed!" if name in passed else "Failed!") for name, trial in known]
    done = sum(outcome == "Passed!" for _, outcome in table)
    return [("Op", "None"), *table, ("Summary", f"{done}/{len(table)} node tests passed")]


def model_rows(outcomes: Iterable[Outcome], rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """models.csv: the networks of the suite."""
    passed = {(row["domain"], row["op_type"]) for row in rows if row["passed_tests"]}
    real = [test for test in outcomes if test.name.startswith("OnnxBackendRealModelTest::") and test.graph]
    table = [(test.graph, f"{len(test.operators & passed)}/{len(test.operators)} nodes covered: "
              f"{'Passed' if test.outcome == 'passed' else 'Failed'}!") for test in real]
    done = sum(test.outcome == "passed" for test in real)
    return [("Model", "None"), *sorted(table), ("Summary", f"{done}/{len(real)} model tests passed")]


def _table(head: tuple[str, ...], rows: Iterable[Iterable[Any]]) -> list[str]:
    return [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}",
            *(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in rows), ""]


def page(title: str, outcomes: list[Outcome], rows: list[dict[str, Any]], summary: dict[str, Any]) -> str:
    """scoreboard.md"""
    kinds = sorted({test.name.split("::")[0] for test in outcomes})
    versions = ", ".join(f"{row['name']} {row['version']}" for row in summary["versions"])
    lines = [f"# ONNX backend suite: {title}", "", f"{summary['date']}; {versions}", ""]
    by_kind = [(kind, counts(test for test in outcomes if test.name.startswith(kind + "::"))) for kind in kinds]
    lines += _table(("tests", *OUTCOMES), [[kind, *count.values()] for kind, count in by_kind]
                    + [["all", *counts(outcomes).values()]])
    rest = [test for test in outcomes if test.outcome != "passed"]
    if rest:
        lines += _table(("test", "outcome", "reason"), [(test.name, test.outcome, test.reason) for test in rest])
    lines += _table(("domain", "operator", "tests", *OUTCOMES), [
        (row["domain"] or "ai.onnx", row["op_type"], row["total_tests"], *(row[f"{key}_tests"] for key in OUTCOMES))
        for row in rows])
    return "\n".join(lines)


def _version_of(package: str, module: Any) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(sys.modules[module.__name__.split(".")[0]], "__version__", "unknown"))


def write(folder: str | os.PathLike[str], outcomes: list[Outcome], versions: list[dict[str, str]],
          title: str = "cameo") -> None:
    """Writes the files into a folder that is made where it is missing; trend.json there is continued."""
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now()
    told, rows = report(outcomes, now), operators(outcomes)
    summary = {"date": told["date"], **counts(outcomes), "total_ops": len(rows), "versions": versions}
    try:
        trend = json.loads((out / "trend.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none, or one that is broken: the scoreboard begins anew too
        trend = []
    for name, value in (("report", told), ("trend", next_trend(trend, summary)), ("ops", rows),
                        ("pip-list", packages())):
        text = json.dumps(value, indent=4, sort_keys=True)
        _cameo.write_file(out / f"{name}.json", f"{text}\n".encode())
    for name, table in (("nodes", node_rows(rows)), ("models", model_rows(outcomes, rows)),
                        ("metadata", [("Latest Update", str(now))])):
        rows_as_text = io.StringIO()
        csv.writer(rows_as_text, lineterminator="\n").writerows(table)
        _cameo.write_file(out / f"{name}.csv", rows_as_text.getvalue().encode())
    _cameo.write_file(out / "scoreboard.md", page(title, outcomes, rows, summary).encode())


def main(arguments: list[str] | None = None, say: Callable[[str], Any] = print) -> int:
    parser = argparse.ArgumentParser(prog="python -m cameo.backend.scoreboard", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("folder", metavar="OUT_DIR")
    parser.add_argument("--backend", default="cameo.backend", metavar="MODULE", help="the module of the backend")
    parser.add_argument("--package", metavar="NAME", help="whose version is told; the first part of MODULE otherwise")
    parser.add_argument("--include", default="", type=pattern, metavar="REGEX", help="only tests whose names it is found in")
    options = parser.parse_args(arguments)
    module = module_of(parser, options.backend, ("prepare", "supports_device"))
    package = options.package or options.backend.split(".")[0]
    outcomes = run(module, options.include)
    versions = [{"name": package, "version": _version_of(package, module)},
                {"name": "onnx", "version": importlib.metadata.version("onnx")}]
    write(options.folder, outcomes, sorted(versions, key=lambda row: row["name"]), package)
    say(", ".join(f"{number} {outcome}" for outcome, number in counts(outcomes).items()))
    return 0 if outcomes else 1


if __name__ == "__main__":
    sys.exit(main())
