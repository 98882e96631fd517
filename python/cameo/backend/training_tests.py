# A conformance suite for backends that train.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the interface in cameo.backend.training, for any backend, in the manner of onnx.backend.test:

    from cameo.backend.training_tests import TrainingBackendTest
    import my_backend  # has prepare_training and supports_device

    runner = TrainingBackendTest(my_backend, __name__).exclude("lstm")
    globals().update(runner.test_cases)

or, without a file: python -m cameo.backend.training_tests MODULE [--include REGEX] [--exclude REGEX] [--report FILE]

Each case is two tests. test_NAME_DEVICE compares the loss of every step, the loss of evaluate afterwards and the weights
with what PyTorch computed in double precision, and looks at export. test_NAME_resumed_DEVICE exports the model half way
and trains the exported file to the end. |x - y| <= tolerance * (1 + |y|) must hold for each number; the tolerance of a case
is ten times PyTorch's own distance between single and double precision, and 1e-5 at least.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import math
import re
import sys
import unittest
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy
import onnx

from .. import _cameo
from ._cases import Case, all_cases
from ._command import module_of, pattern

__all__ = ["Case", "TrainingBackendTest", "main"]

TestFunction = Callable[[unittest.TestCase], None]


def _compare(what: str, got: float, expected: float, tolerance: float) -> None:
    if not math.isclose(got, expected, rel_tol=0, abs_tol=tolerance * (1 + abs(expected))):
        raise AssertionError(f"{what} is {got:.9g}, expected {expected:.9g} (tolerance {tolerance:.1g})")


def _compare_weights(case: Case, state: dict[str, numpy.ndarray[Any, Any]]) -> None:
    for name, expected in case.weights.items():
        if name not in state:
            continue  # nothing changed it, so that it needs not be part of the state; export is asked for it
        got = numpy.asarray(state[name]).reshape(-1)
        if len(got) != len(expected):
            raise AssertionError(f"weight '{name}' has {len(got)} numbers, expected {len(expected)}")
        for index, (one, other) in enumerate(zip(got.tolist(), expected)):
            _compare(f"number {index} of weight '{name}'", one, other, case.tolerance)


def _check_export(case: Case, model: onnx.ModelProto) -> None:
    """What a backend exports is the model with other values."""
    before = case.model()
    if not isinstance(model, onnx.ModelProto):
        raise AssertionError(f"export returned {type(model).__name__}, expected an onnx.ModelProto")
    if not model.training_info:
        raise AssertionError("the exported model has no training info")
    for field in ("input", "output"):
        names = [[info.name for info in getattr(which.graph, field)] for which in (model, before)]
        if names[0] != names[1]:
            raise AssertionError(f"the exported model has the {field}s {names[0]}, expected {names[1]}")
    values = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    missing = sorted(set(case.weights) - set(values))
    if missing:
        raise AssertionError(f"the exported model has no initializer '{missing[0]}'")
    _compare_weights(case, values)


def _steps(case: Case, rep: Any, first: int, last: int) -> None:
    for step in range(first, last):
        loss = rep.step(case.batch(step))
        _compare(f"the loss of step {step}", float(loss), case.losses[step], case.tolerance)


def _prepared(case: Case, backend: Any, device: str) -> Any:
    rep = backend.prepare_training(case.model(), case.loss, case.optimizer, device, **case.options)
    if case.initialize:
        rep.initialize()
    return rep


def run_case(case: Case, backend: Any, device: str) -> None:
    """Trains; raises an AssertionError where something is not as expected."""
    rep, count = _prepared(case, backend, device), len(case.losses)
    _steps(case, rep, 0, count)
    before = {name: numpy.array(value) for name, value in rep.state.items()}
    for _ in range(2):  # the second tells whether the first changed something
        _compare("the loss of evaluate", float(rep.evaluate(case.batch(count))), case.evaluated, case.tolerance)
    for name, value in rep.state.items():
        numpy.testing.assert_array_equal(value, before[name], f"evaluate changed '{name}'")
    _compare_weights(case, before)
    _check_export(case, rep.export())


def run_resumed(case: Case, backend: Any, device: str) -> None:
    """Trains half of the steps, exports, and goes on with the exported model."""
    rep, count = _prepared(case, backend, device), len(case.losses)
    _steps(case, rep, 0, count // 2)
    half_way = onnx.load_from_string(rep.export().SerializeToString())
    rep = backend.prepare_training(half_way, device=device)
    _steps(case, rep, count // 2, count)
    _compare("the loss of evaluate", float(rep.evaluate(case.batch(count))), case.evaluated, case.tolerance)
    _check_export(case, rep.export())


class TrainingBackendTest:
    """The suite for one backend: a module or a class with prepare_training and supports_device.

    >>> import cameo.backend
    >>> runner = TrainingBackendTest(cameo.backend).include("^test_linear_mse_(sgd|adam)_cpu$")
    >>> unittest.TextTestRunner(sys.stdout).run(runner.test_suite)  # doctest: +ELLIPSIS
    ..
    ----------------------------------------------------------------------
    Ran 2 tests in ...s
    <BLANKLINE>
    OK
    <unittest.runner.TextTestResult run=2 errors=0 failures=0>
    """

    def __init__(self, backend: Any, parent_module: str | None = None, devices: Sequence[str] = ("CPU",)) -> None:
        self._module = parent_module
        self._include: list[re.Pattern[str]] = []
        self._exclude: list[re.Pattern[str]] = []
        self._xfail: list[re.Pattern[str]] = []
        self._report: dict[str, Any] | None = None
        self._tests: dict[str, dict[str, TestFunction]] = {}
        for file, cases in all_cases().items():
            tests = self._tests[f"TrainingBackend{file.capitalize()}Test"] = {}
            for device in devices:
                for case in cases:
                    for suffix, run in (("", run_case), ("_resumed", run_resumed)):
                        name = f"test_{case.name}{suffix}_{device.lower().replace(':', '_')}"
                        tests[name] = self._function(functools.partial(run, case, backend, device), backend, device)

    @staticmethod
    def _function(run: Callable[[], None], backend: Any, device: str) -> TestFunction:
        def test(self: unittest.TestCase) -> None:
            if not backend.supports_device(device):
                self.skipTest(f"the backend does not support device {device}")
            run()
        return test

    def include(self, pattern: str) -> TrainingBackendTest:
        """Only tests whose names one of the patterns given so is found in. Others are left out, not skipped."""
        self._include.append(re.compile(pattern))
        return self

    def exclude(self, pattern: str) -> TrainingBackendTest:
        """Tests whose names the pattern is found in are skipped, with the pattern as reason."""
        self._exclude.append(re.compile(pattern))
        return self

    def xfail(self, pattern: str) -> TrainingBackendTest:
        """Tests whose names the pattern is found in are expected to fail."""
        self._xfail.append(re.compile(pattern))
        return self

    def enable_report(self) -> TrainingBackendTest:
        """Lets `report` be filled as tests are run."""
        self._report = {"date": datetime.datetime.now().strftime("%m/%d/%Y %H:%M:%S"),
                        "passed": [], "failed": [], "skipped": []}
        return self

    @property
    def report(self) -> dict[str, Any]:
        """Names of the tests that were run by outcome, in the form of the backend scoreboard's report.json."""
        if self._report is None:
            raise ValueError("enable_report was not called")
        return {key: sorted(value) if isinstance(value, list) else value for key, value in self._report.items()}

    def _reported(self, name: str, test: TestFunction) -> TestFunction:
        report = self._report
        if report is None:
            return test

        @functools.wraps(test)
        def told(self: unittest.TestCase) -> None:
            try:
                test(self)
            except unittest.SkipTest:
                report["skipped"].append(name)
                raise
            except BaseException:
                report["failed"].append(name)
                raise
            report["passed"].append(name)
        return told

    def _chosen(self, group: str, name: str, test: TestFunction) -> TestFunction:
        for excluded in self._exclude:
            if excluded.search(name):
                def skipped(self: unittest.TestCase, reason: str = excluded.pattern) -> None:
                    self.skipTest(f'matched exclude pattern "{reason}"')
                return self._reported(f"{group}::{name}", skipped)
        test = self._reported(f"{group}::{name}", test)
        return unittest.expectedFailure(test) if any(wanted.search(name) for wanted in self._xfail) else test

    @property
    def test_cases(self) -> dict[str, type[unittest.TestCase]]:
        """Classes by name: globals().update(TrainingBackendTest(backend, __name__).test_cases)"""
        classes = {}
        for group, tests in self._tests.items():
            chosen = {name: self._chosen(group, name, test) for name, test in sorted(tests.items())
                      if not self._include or any(pattern.search(name) for pattern in self._include)}
            if chosen:
                classes[group] = type(group, (unittest.TestCase,), dict(chosen))
                classes[group].__module__ = self._module or __name__
        return classes

    @property
    def test_suite(self) -> unittest.TestSuite:
        """What a runner of unittest runs."""
        load = unittest.defaultTestLoader.loadTestsFromTestCase
        return unittest.TestSuite(load(case) for case in self.test_cases.values())


def _names(suite: Iterable[Any]) -> Iterable[str]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _names(test)
        else:
            yield "::".join(test.id().split(".")[-2:])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m cameo.backend.training_tests",
                                     description="Tests a backend that trains, against what PyTorch computes.")
    parser.add_argument("module", metavar="MODULE", help="has prepare_training and supports_device")
    parser.add_argument("--include", action="append", default=[], type=pattern, metavar="REGEX")
    parser.add_argument("--exclude", action="append", default=[], type=pattern, metavar="REGEX")
    parser.add_argument("--device", action="append", default=[], help="CPU otherwise")
    parser.add_argument("--report", metavar="FILE", help="names by outcome, as JSON")
    parser.add_argument("--list", action="store_true", help="print the names of the tests instead")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args(arguments)
    module = module_of(parser, options.module, ("prepare_training", "supports_device"))
    runner = TrainingBackendTest(module, devices=options.device or ("CPU",))
    for text in options.include:
        runner.include(text)
    for text in options.exclude:
        runner.exclude(text)
    suite = runner.enable_report().test_suite
    if options.list:
        print(*_names(suite), sep="\n")
        return 0
    result = unittest.TextTestRunner(sys.stdout, verbosity=2 if options.verbose else 1).run(suite)
    report = runner.report
    if options.report:
        _cameo.write_file(options.report, json.dumps(report, indent=4, sort_keys=True).encode())
    print(", ".join(f"{len(report[key])} {key}" for key in ("passed", "failed", "skipped")))
    return 0 if result.wasSuccessful() and report["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
