# SPDX-License-Identifier: Apache-2.0
"""The package as it is imported: quick, without NumPy, with the command and its libraries."""

import inspect
import os
import subprocess
import sys
import sysconfig
import unittest

import cameo


def run_python(code, *options, **more):
    """A fresh interpreter that sees the same package."""
    path = os.path.dirname(os.path.dirname(os.path.abspath(cameo.__file__)))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([path, os.environ.get("PYTHONPATH", "")])}
    return subprocess.run([sys.executable, *options, "-c", code], env=environment, text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


class ImportTest(unittest.TestCase):
    def test_does_not_import_numpy(self):
        done = run_python("import sys, cameo; print(sorted({'numpy', 'onnx', 'ml_dtypes', 'typing'} & set(sys.modules)))")
        self.assertEqual(done.stdout, "[]\n", done.stderr)

    def test_loads_no_library_of_others(self):
        done = run_python("import cameo; print([line.split()[-1] for line in open('/proc/self/maps') if 'dnnl' in line])")
        self.assertEqual(done.stdout, "[]\n", done.stderr)

    def test_every_public_name_is_there_and_has_a_docstring(self):
        for name in cameo.__all__:
            value = getattr(cameo, name)
            if isinstance(value, (str, int)):
                continue
            self.assertTrue(value.__doc__, name)
            for method, function in vars(value).items() if isinstance(value, type) else ():
                if not method.startswith("_") and inspect.isfunction(function):
                    self.assertTrue(function.__doc__, f"{name}.{method}")
        self.assertLessEqual(set(cameo.__all__), set(dir(cameo)))
        with self.assertRaisesRegex(AttributeError, "module 'cameo' has no attribute 'nothing'"):
            cameo.nothing

    def test_libraries_are_told(self):
        rows = {row["name"]: row for row in cameo.libraries()}
        self.assertIn("oneDNN", rows)
        for row in rows.values():
            self.assertTrue(row["version"] or row["why"], row)

    def test_exceptions_are_errors_and_pythons_own(self):
        for name, also in (("ModelError", ValueError), ("ArgumentError", ValueError), ("NotFoundError", LookupError),
                           ("UnsupportedError", NotImplementedError), ("OutOfMemoryError", MemoryError),
                           ("FileError", OSError), ("DivergedError", ArithmeticError)):
            self.assertTrue(issubclass(getattr(cameo, name), (cameo.Error, also)), name)


class CommandTest(unittest.TestCase):
    def test_runs_as_a_module(self):
        done = run_python("import sys; sys.argv = ['cameo', '--version']; import cameo.__main__ as m; m.main()")
        self.assertEqual(done.stdout.splitlines()[0], f"cameo {cameo.__version__}", done.stderr)

    def test_gives_the_commands_exit_status(self):
        done = run_python("import sys; sys.argv = ['cameo', 'check', '/nowhere']; import cameo.__main__ as m; m.main()")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/nowhere", done.stderr)


INSTALLED = os.path.abspath(cameo.__file__).startswith(sysconfig.get_path("platlib") + os.sep)


@unittest.skipUnless(INSTALLED, "the package is not an installed one")
class WheelTest(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.dirname(os.path.abspath(cameo.__file__))

    def test_onednn_of_the_wheel_is_used(self):
        if not os.path.exists(os.path.join(self.folder, "libdnnl.so.3")):
            self.skipTest("oneDNN's package is for x86-64")
        row = next(row for row in cameo.libraries() if row["name"] == "oneDNN")
        self.assertEqual(os.path.dirname(row["path"]), self.folder)

    def test_the_script_is_installed(self):
        script = os.path.join(sysconfig.get_path("scripts"), "cameo")
        done = subprocess.run([script, "--version"], stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.stdout.splitlines()[0], f"cameo {cameo.__version__}")

    def test_every_library_inside_has_its_licence(self):
        import importlib.metadata
        licences = [str(file) for file in importlib.metadata.files("cameo") if "/licenses/" in str(file)]
        ours = ("_cameo", "libcameo_codecs")
        others = [name for name in os.listdir(self.folder) if ".so" in name and not name.startswith(ours)]
        self.assertTrue(any(licence.endswith("/licenses/LICENSE") for licence in licences))
        self.assertGreaterEqual(len({os.path.dirname(licence) for licence in licences}) - 1, len(others), licences)


if __name__ == "__main__":
    unittest.main()
