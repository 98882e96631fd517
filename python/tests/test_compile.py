# The command of the wheel compiles models, or says what it needs.
# SPDX-License-Identifier: Apache-2.0
import ctypes
import glob
import os
import subprocess
import sys
import tempfile
import unittest

import cameo

FOLDER = os.path.dirname(cameo.__file__)
TWICE = """<ir_version: 8, opset_import: ["" : 17]>
twice (float[4] x) => (float[4] y) { y = Add(x, x) }"""


class CompileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        cameo.load(TWICE).save(os.path.join(self.folder, "twice.onnx"))

    def compile(self, **more):
        return subprocess.run([sys.executable, "-m", "cameo", "compile", "twice.onnx", "-o", "twice.so"], text=True,
                              cwd=self.folder, capture_output=True, env={**os.environ, **more})

    @unittest.skipUnless(glob.glob(os.path.join(FOLDER, "libcameo_mlir.so.*")), "MLIR was not there when it was built")
    def test_compiles(self):
        done = self.compile()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(hasattr(ctypes.CDLL(os.path.join(self.folder, "twice.so")), "twice_run"))

    def test_says_what_it_needs(self):
        done = self.compile(CAMEO_MLIR="off")
        self.assertEqual(done.returncode, 1)
        self.assertIn("unset CAMEO_MLIR", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "twice.so")))


if __name__ == "__main__":
    unittest.main()
