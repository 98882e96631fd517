# SPDX-License-Identifier: Apache-2.0
"""Type checkers and pyflakes have nothing to say about a user's program and about the package."""

import glob
import importlib.util
import os
import re
import runpy
import subprocess
import sys
import tempfile
import unittest

import cameo

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.join(HERE, "typing_example.py")


def needs(package):
    return unittest.skipUnless(importlib.util.find_spec(package), f"{package} is not installed")


class TypingTest(unittest.TestCase):
    def mypy(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.dirname(os.path.dirname(os.path.abspath(cameo.__file__)))
            done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder, *arguments],
                                  cwd=folder, env={**os.environ, "MYPYPATH": "" if "site-packages" in path else path},
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_example_runs(self):
        runpy.run_path(EXAMPLE, run_name="__main__")

    @needs("mypy")
    def test_mypy_accepts_the_example(self):
        self.mypy("--follow-imports", "silent", EXAMPLE)

    @needs("mypy")
    def test_mypy_accepts_the_package(self):
        """Whether or not the packages of others are there that it can work with."""
        self.mypy("--ignore-missing-imports", "--allow-subclassing-any", "--no-warn-unused-ignores", "-p", "cameo")

    @needs("pyflakes")
    def test_pyflakes_accepts_the_package_and_its_tests(self):
        root = os.path.dirname(os.path.dirname(HERE))
        files = [path for names in ("python/cameo/**/*.py", "python/tests/*.py", "tools/*.py")
                 for path in glob.glob(os.path.join(root, names), recursive=True)]
        done = subprocess.run([sys.executable, "-m", "pyflakes", *files], stdout=subprocess.PIPE, text=True)
        wrong = [line for line in done.stdout.splitlines() if not self.is_for_users(line)]
        self.assertEqual(wrong, [])

    @staticmethod
    def is_for_users(complaint):
        """Is it about a name that is imported to be imported from there? `from .x import y as y` says so."""
        path, number, _ = complaint.split(":", 2)
        with open(path, encoding="utf-8") as file:
            line = file.readlines()[int(number) - 1]
        return "imported but unused" in complaint and re.search(r"\b(\w+) as \1\b", line)


if __name__ == "__main__":
    unittest.main()
