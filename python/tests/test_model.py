# SPDX-License-Identifier: Apache-2.0
"""Models: where they come from, where they go, what they look like."""

import copy
import io
import logging
import os
import pathlib
import pickle
import tempfile
import unittest

import numpy

import cameo

LINE = """<ir_version: 8, opset_import: ["" : 17]>
line (float[N] x) => (float[N] y) <float[1] w = {2}> { y = Mul(x, w) }"""


class LoadTest(unittest.TestCase):
    def setUp(self):
        self.model = cameo.load(LINE)
        self.x = numpy.array([1, 2, 3], numpy.float32)

    def check(self, model):
        self.assertEqual(model.run(x=self.x)["y"].tolist(), [2, 4, 6])

    def test_bytes_and_file_objects(self):
        data = self.model.to_bytes()
        for source in (data, io.BytesIO(data), bytearray(data), memoryview(data), io.StringIO(LINE), LINE.encode(),
                       "\n" + LINE, io.BytesIO(LINE.encode()), self.model.to_onnx(), self.model):
            self.check(cameo.load(source))

    def test_paths(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a.onnx", "a.onnxtxt", "\udcff.onnx", "мир.onnx"):
                path = os.path.join(folder, name)
                self.model.save(path)
                for source in (path, pathlib.Path(path)):
                    self.check(cameo.load(source))
                    self.check(cameo.load(source, copy=True))
                with open(path, "rb") as file:
                    self.check(cameo.load(file))

    def test_what_is_no_model(self):
        with self.assertRaisesRegex(cameo.ModelError, "is not an ONNX model") as caught:
            cameo.load(b"GIF89a, and more")
        self.assertIsInstance(caught.exception, cameo.Error)
        self.assertIsInstance(caught.exception, ValueError)
        self.assertEqual(caught.exception.problems, ())
        for source in (b"", b"<", "<ir_version", "\0.onnx", "nosuch.onnx", os.path.dirname(__file__)):
            with self.subTest(source=source), self.assertRaises((cameo.Error, ValueError)):
                cameo.load(source)
        for source in (None, 3, object(), [1, 2]):
            with self.subTest(source=source), self.assertRaisesRegex(TypeError, "a model is loaded from"):
                cameo.load(source)

    def test_every_cut_of_a_file_is_refused_or_loads(self):
        data = self.model.to_bytes()
        for size in range(len(data)):
            try:
                model = cameo.load(data[:size])
                model.nodes, model.check(), dict(model.initializers)  # pylint: disable=expression-not-assigned
            except cameo.Error:
                pass

    def test_messages_with_names_that_are_no_utf8(self):
        model = cameo.load(self.model.to_bytes().replace(b"Mul", b"M\xf8l"))
        with self.assertRaisesRegex(cameo.Error, r"M\\xf8l"):
            model.run(x=self.x)
        with self.assertRaisesRegex(cameo.Error, r"M\\xf8l") as caught:
            model.prepare("mse")
        self.assertTrue(str(caught.exception))

    def test_changing_leaves_sessions_alone(self):
        session = cameo.Session(self.model)
        self.model.prepare(loss="mse", optimizer="sgd", lr=0.1)
        self.assertEqual(session.run(["y"], {"x": self.x})[0].tolist(), [2, 4, 6])
        self.check(self.model)

    def test_copies_are_apart(self):
        for made in (copy.copy(self.model), copy.deepcopy(self.model), pickle.loads(pickle.dumps(self.model))):
            made.initializers["w"] = [5]
            self.check(self.model)
            self.assertEqual(made.run(x=self.x)["y"].tolist(), [5, 10, 15])
            self.model.initializers["w"] = [2]
            self.assertEqual(made.initializers["w"].tolist(), [5])


class ExternalTest(unittest.TestCase):
    def test_values_outside_come_along(self):
        model = cameo.load(LINE)
        model.initializers["w"] = [3]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            big = cameo.load(f"""<ir_version: 8, opset_import: ["" : 17]>
            m (float[1000] x) => (float[1000] y) <float[1000] w = {{{','.join(map(str, range(1000)))}}}>
            {{ y = Mul(x, w) }}""")
            big.save(path, external="weights.bin")
            self.assertEqual(sorted(os.listdir(folder)), ["m.onnx", "weights.bin"])
            outside = cameo.load(path)
            for source in (outside.to_bytes(), outside.to_onnx(), pickle.loads(pickle.dumps(outside))):
                self.assertEqual(cameo.load(source).initializers["w"][999], 999)
            stream = io.BytesIO()
            outside.save(stream)
            self.assertEqual(cameo.load(stream.getvalue()).initializers["w"][999], 999)
            made = outside.infer()
            made.initializers["w"] = numpy.zeros(1000, numpy.float32)
            self.assertEqual(outside.initializers["w"][999], 999)
            inline = os.path.join(folder, "inline.onnx")
            outside.save(inline, inline=True)
            self.assertGreater(os.path.getsize(inline), 4000)
            self.check_reference(path)
            os.remove(os.path.join(folder, "weights.bin"))
            with self.assertRaisesRegex(cameo.Error, "weights.bin"):
                cameo.load(path).initializers["w"]

    def test_what_is_shipped_stands_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            big = cameo.load(f"""<ir_version: 8, opset_import: ["" : 17]>
            m (float[1000] x) => (float[1000] y) <float[1000] w = {{{','.join(map(str, range(1000)))}}}>
            {{ y = Mul(x, w) }}""")
            big.save(path, external="weights.bin")
            made = {"loaded": cameo.load(path), "stripped": cameo.load(path).strip(),
                    "optimized": cameo.load(path).optimize(), "upgraded": cameo.load(path).upgrade(18),
                    "prepared": cameo.load(path).prepare(loss="mse", optimizer="sgd")}
            for name, model in made.items():
                place = os.path.join(folder, name)
                os.mkdir(place)
                model.save(os.path.join(place, "m.onnx"))
                self.assertEqual(os.listdir(place) == ["m.onnx"], name != "loaded", name)
                self.assertEqual(cameo.load(os.path.join(place, "m.onnx")).initializers["w"][999], 999)
            place = os.path.join(folder, "kept")
            os.mkdir(place)
            made["stripped"].save(os.path.join(place, "m.onnx"), external=False)
            self.assertEqual(sorted(os.listdir(place)), ["m.onnx", "weights.bin"])

    def check_reference(self, path):
        """A message that only refers to its values is described, and says why they cannot be read."""
        import onnx
        model = cameo.load(onnx.load(path, load_external_data=False))
        self.assertEqual(list(model.initializers), ["w"])
        with self.assertRaisesRegex(cameo.Error, "weights.bin"):
            model.initializers["w"]
        with self.assertRaisesRegex(cameo.Error, "weights.bin"):
            model.run(x=numpy.zeros(1000, numpy.float32))

    def test_wrong_places(self):
        model = cameo.load(LINE)
        with self.assertRaises(cameo.ArgumentError):
            model.save("m.onnx", external=True, inline=True)
        with self.assertRaises(cameo.ArgumentError):
            model.save(io.BytesIO(), external=True)
        with self.assertRaises(cameo.Error):
            model.save("/nosuch/folder/m.onnx")


class LogTest(unittest.TestCase):
    def test_what_the_library_says_reaches_logging(self):
        with self.assertLogs("cameo", logging.DEBUG) as heard:
            model = cameo.load("""<ir_version: 6, opset_import: ["" : 11]>
            line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {2}> { y = MatMul(x, w) }""")
            model.prepare("mse")
            model.run(x=numpy.float32([[1]]))
        self.assertTrue(any("'w' is trained" in line for line in heard.output), heard.output)
        self.assertTrue(any(record.levelno == logging.INFO for record in heard.records))

    def test_a_handler_that_fails_stops_nothing(self):
        class Bad(logging.Handler):
            def emit(self, record):
                raise RuntimeError("handler")
        logger = logging.getLogger("cameo")
        handler = Bad()
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        import sys
        unraisable, sys.unraisablehook = sys.unraisablehook, lambda _: None
        try:
            self.assertEqual(cameo.load(LINE).run(x=numpy.float32([1]))["y"].tolist(), [2])
        finally:
            sys.unraisablehook = unraisable
            logger.removeHandler(handler)
            logger.setLevel(logging.NOTSET)


class ShowTest(unittest.TestCase):
    def test_table_and_picture(self):
        page = cameo.load(LINE)._repr_html_()
        self.assertIn("<td>x</td><td>float[N]</td>", page)
        self.assertIn("data:image/svg+xml;base64,", page)
        self.assertIn("<svg", cameo.load(LINE).graph._repr_svg_())

    def test_names_from_the_file_do_no_harm(self):
        import onnx
        proto = cameo.load(LINE).to_onnx()
        bad = "</td><script>alert(1)</script>&\"'"
        proto.graph.name = proto.producer_name = bad
        proto.graph.input[0].name = proto.graph.node[0].input[0] = proto.graph.node[0].name = bad
        proto.graph.output[0].name = proto.graph.node[0].output[0] = bad + "2"
        proto.graph.node[0].op_type = bad
        proto.opset_import.append(onnx.OperatorSetIdProto(domain=bad, version=1))
        model = cameo.load(proto)
        self.assertNotIn("<script", model._repr_html_())
        self.assertNotIn("<script", model.graph.svg())
        import xml.dom.minidom
        xml.dom.minidom.parseString(model.graph.svg())

    def test_big_graphs_are_cut(self):
        nodes = " ".join(f"v{i + 1} = Neg(v{i})" for i in range(1500))
        model = cameo.load(f'<ir_version: 8, opset_import: ["" : 17]> g (float v0) => (float v1500) {{ {nodes} }}')
        page = model._repr_html_()
        self.assertIn("too many to be read here", page)
        self.assertLess(len(page), 5000)
        many = ", ".join(f"float x{i}" for i in range(100))
        model = cameo.load(f'<ir_version: 8, opset_import: ["" : 17]> g ({many}) => (float y) {{ y = Neg(x0) }}')
        self.assertIn("and 80 more", model._repr_html_())
        self.assertLess(len(repr(model)), 600)

    def test_a_model_without_nodes(self):
        model = cameo.load('<ir_version: 8, opset_import: ["" : 17]> g (float x) => (float x) { }')
        self.assertIn("<table>", model._repr_html_())


if __name__ == "__main__":
    unittest.main()
