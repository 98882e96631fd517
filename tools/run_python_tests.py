#!/usr/bin/env python3
# Runs the tests of the Python package with the interpreter that runs this: tools/run_python_tests.py [NAME...]
# SPDX-License-Identifier: Apache-2.0
"""Tests are python/tests/test_*.py (unittest), the examples in docstrings of the package, and those of docs/python*.md.

NAME picks those whose file or module has it in its name. The last line counts: N passed, N failed. A test that is skipped
counts as neither; each is named with its reason.
"""

import doctest
import importlib
import os
import pkgutil
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TESTS = os.path.join(ROOT, "python", "tests")
# Modules that import what may not be installed; their examples run where it is.
NEEDS = {"cameo.torch": "torch", "cameo.sklearn": "sklearn", "cameo.backend": "onnx"}


class Result(unittest.TextTestResult):
    """Counts what passed, too."""

    def __init__(self, *args):
        super().__init__(*args)
        self.passed = 0
        self.counted_bad = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        self.counted_bad += err is not None


def has(module):
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def examples(wanted):
    """Docstrings of all modules, and the pages."""
    import cameo
    suite = unittest.TestSuite()
    names = ["cameo"] + sorted(info.name for info in pkgutil.walk_packages(cameo.__path__, "cameo.", onerror=lambda _: None)
                               if not info.name.endswith("._cameo"))
    for name in names:
        needed = next((module for prefix, module in NEEDS.items() if (name + ".").startswith(prefix + ".")), None)
        if not wanted(name) or (needed and not has(needed)):
            continue
        module = importlib.import_module(name)
        if doctest.DocTestFinder(exclude_empty=True).find(module):
            try:
                suite.addTest(doctest.DocTestSuite(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE))
            except ValueError:
                pass  # it has docstrings, but no examples in them
    for page in sorted(os.listdir(os.path.join(ROOT, "docs"))):
        if page.startswith("python") and wanted(page):
            suite.addTest(doctest.DocFileSuite(os.path.join(ROOT, "docs", page), module_relative=False,
                                               optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE))
    return suite


def main():
    words = sys.argv[1:]

    def wanted(name):
        return not words or any(word in name for word in words)

    sys.path.insert(0, TESTS)
    loader = unittest.TestLoader()
    suite = unittest.TestSuite()
    for name in sorted(os.listdir(TESTS)):
        if name.startswith("test_") and name.endswith(".py") and wanted(name):
            suite.addTest(loader.loadTestsFromName(name[:-3]))
    suite.addTest(examples(wanted))
    result = unittest.TextTestRunner(sys.stdout, resultclass=Result, verbosity=1, buffer=True).run(suite)
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    print(f"{result.passed} passed, {failed} failed")
    return 1 if failed or not result.passed else 0


if __name__ == "__main__":
    sys.exit(main())
