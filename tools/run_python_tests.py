#!/usr/bin/env python3
# Runs the tests of the Python package with the interpreter that runs this: tools/run_python_tests.py [NAME...]
# SPDX-License-Identifier: Apache-2.0
"""usage: run_python_tests.py [--list] [--slow SECONDS] [--installed] [NAME...]

Tests are python/tests/test_*.py (unittest), the examples in docstrings of the package, and those of the pages docs/*.md
that have some. NAME picks those whose file or module has it in its name. --list names them and what they have instead.
--slow names tests that took longer (default: 5 s). --installed: the package must be one that was installed, not a source
or build folder. A test that is skipped counts as neither passed nor failed; each is named with its reason. The last line
counts: N passed, N failed.
"""

import argparse
import doctest
import glob
import importlib
import importlib.util
import os
import pkgutil
import re
import signal
import sys
import sysconfig
import time
import traceback
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TESTS = os.path.join(ROOT, "python", "tests")
# What may not be installed: modules and tests that import it are skipped then, and so are these pages.
OPTIONAL = {"torch", "keras", "jax", "sklearn", "onnx", "onnxruntime", "tensorboard", "mypy"}
PAGES = {"python-torch.md": "torch", "python-sklearn.md": "sklearn", "backend.md": "onnx"}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Result(unittest.TextTestResult):
    """Counts what passed, too, and how long each test took."""

    def __init__(self, *args):
        super().__init__(*args)
        self.passed = 0
        self.seconds = []

    def startTest(self, test):
        super().startTest(test)
        self.started = time.perf_counter()

    def stopTest(self, test):
        super().stopTest(test)
        self.seconds.append((time.perf_counter() - self.started, str(test)))

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


class Broken(unittest.TestCase):
    """A file or module that cannot be imported."""

    def __init__(self, name, reason):
        super().__init__()
        self.name, self.reason = name, reason

    def __str__(self):
        return f"import of {self.name}"

    def runTest(self):
        self.fail(self.reason)


class Skipped(unittest.TestCase):
    """A file, module or page that cannot be tested here."""

    def __init__(self, name, reason):
        super().__init__()
        self.name, self.reason = name, reason

    def __str__(self):
        return self.name

    def runTest(self):
        self.skipTest(self.reason)


def imported(name):
    """(module, None), or (None, the test that tells why there is none)."""
    try:
        return importlib.import_module(name), None
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in OPTIONAL:
            return None, Skipped(name, f"{error.name} is not installed")
        return None, Broken(name, traceback.format_exc())
    except unittest.SkipTest as reason:
        return None, Skipped(name, str(reason))
    except Exception:
        return None, Broken(name, traceback.format_exc())


def from_file(path):
    module, problem = imported(os.path.basename(path)[:-3])
    return problem or unittest.defaultTestLoader.loadTestsFromModule(module)


def from_module(name):
    module, problem = imported(name)
    # Docstrings without examples are left out.
    return problem or unittest.TestSuite(doctest.DocTestCase(test, FLAGS)
                                         for test in doctest.DocTestFinder().find(module) if test.examples)


def from_page(path):
    name = os.path.basename(path)
    needed = PAGES.get(name)
    if needed and importlib.util.find_spec(needed) is None:
        return Skipped(name, f"{needed} is not installed")
    return doctest.DocFileSuite(path, module_relative=False, optionflags=FLAGS)


def sources():
    """(name, how to load it) of everything that has tests."""
    import cameo
    for path in sorted(glob.glob(os.path.join(TESTS, "test_*.py"))):
        yield os.path.basename(path), lambda path=path: from_file(path)
    # __main__ runs the command when it is imported. Whoever cannot be imported is told when its tests are loaded.
    names = [info.name for info in pkgutil.walk_packages(cameo.__path__, "cameo.", onerror=lambda name: None)
             if not info.name.endswith(("._cameo", ".__main__"))]
    for name in ["cameo", *sorted(names)]:
        yield name, lambda name=name: from_module(name)
    for path in sorted(glob.glob(os.path.join(ROOT, "docs", "*.md"))):
        with open(path, encoding="utf-8") as file:
            if re.search(r"^>>> ", file.read(), re.M):
                yield os.path.basename(path), lambda path=path: from_page(path)


def main():
    # A shell lets what it starts in the background ignore Ctrl-C, which some tests send.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--slow", type=float, default=5)
    parser.add_argument("--installed", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    sys.path.insert(0, TESTS)
    import cameo
    if options.installed and not os.path.abspath(cameo.__file__).startswith(sysconfig.get_path("platlib") + os.sep):
        sys.exit(f"the package is not an installed one: {cameo.__file__}")
    suite = unittest.TestSuite()
    for name, load in sources():
        if not options.names or any(word in name for word in options.names):
            tests = load()
            if options.list:
                print(f"{name}: {tests.countTestCases()}")
            suite.addTest(tests)
    if options.list:
        return 0
    result = unittest.TextTestRunner(sys.stdout, resultclass=Result, verbosity=1, buffer=True).run(suite)
    for seconds, test in sorted(result.seconds, reverse=True):
        if seconds >= options.slow:
            print(f"slow: {test}: {seconds:.1f} s")
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    print(f"{result.passed} passed, {failed} failed")
    return 1 if failed or not result.passed else 0


if __name__ == "__main__":
    sys.exit(main())
