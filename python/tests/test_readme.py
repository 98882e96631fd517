# SPDX-License-Identifier: Apache-2.0
"""The Python example of README.md, run where `cameo demo` wrote its files."""

import contextlib
import doctest
import io
import os
import subprocess
import sys
import tempfile
import unittest

README = os.path.join(os.path.dirname(__file__), "..", "..", "README.md")


class ReadmeTest(unittest.TestCase):
    def test_the_example_says_what_it_says(self):
        with open(README, encoding="utf-8") as file:
            test = doctest.DocTestParser().get_doctest(file.read().replace("```", ""), {}, "README.md", README, 0)
        self.assertGreater(len(test.examples), 5)
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                subprocess.run([sys.executable, "-m", "cameo", "demo", "--dir", "cameo-demo"], check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                said = io.StringIO()
                with contextlib.redirect_stdout(said):
                    failed, _ = doctest.DocTestRunner().run(test, out=said.write)
            finally:
                os.chdir(before)
        self.assertEqual(failed, 0, said.getvalue())


if __name__ == "__main__":
    unittest.main()
