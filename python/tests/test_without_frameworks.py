# SPDX-License-Identifier: Apache-2.0
"""Modules of the package that need a framework, where it is not installed."""

import unittest

from test_package import run_python

FRAMEWORKS = {"torch": ("torch", "PyTorch"), "keras": ("keras", "Keras"), "jax": ("jax", "JAX")}
WITHOUT = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
import cameo
try:
    cameo.{module}
except ModuleNotFoundError as error:
    print(error.name, error, sep=": ")
"""


class WithoutFrameworksTest(unittest.TestCase):
    def test_one_sentence_says_what_to_install(self):
        for module, (package, name) in FRAMEWORKS.items():
            with self.subTest(module):
                done = run_python(WITHOUT.format(module=module, package=package))
                self.assertEqual(done.stdout, f"{package}: cameo.{module} needs {name}, which is not installed for this "
                                 f"Python: pip install {package}\n", done.stderr)
                self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    unittest.main()
