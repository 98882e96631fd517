# SPDX-License-Identifier: Apache-2.0
"""Models: where they come from, what runs."""

import io
import unittest

import numpy

import cameo

LINE = """<ir_version: 8, opset_import: ["" : 17]>
line (float[N] x) => (float[N] y) <float[1] w = {2}> { y = Mul(x, w) }"""


class LoadTest(unittest.TestCase):
    def setUp(self):
        self.model = cameo.load(LINE)
        self.x = numpy.array([1, 2, 3], numpy.float32)

    def test_bytes_and_file_objects(self):
        for source in (self.model.to_bytes(), io.BytesIO(self.model.to_bytes()), bytearray(self.model.to_bytes())):
            self.assertEqual(cameo.load(source).run(x=self.x)["y"].tolist(), [2, 4, 6])

    def test_what_is_no_model(self):
        with self.assertRaisesRegex(cameo.ModelError, "is not an ONNX model") as caught:
            cameo.load(b"GIF89a, and more")
        self.assertIsInstance(caught.exception, cameo.Error)
        self.assertIsInstance(caught.exception, ValueError)

    def test_changing_leaves_sessions_alone(self):
        session = cameo.Session(self.model)
        self.model.prepare(loss="mse", optimizer="sgd", lr=0.1)
        self.assertEqual(session.run(["y"], {"x": self.x})[0].tolist(), [2, 4, 6])
        self.assertEqual(self.model.run(x=self.x)["y"].tolist(), [2, 4, 6])


if __name__ == "__main__":
    unittest.main()
