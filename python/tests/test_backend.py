# SPDX-License-Identifier: Apache-2.0
"""ONNX's official backend runner over the whole suite of the installed package, and the interface itself.

A case that tests/known_failures.txt lists must fail, every other one must pass. The runner has each case once for the CPU
and once for CUDA, which this backend does not support: those are left out here instead of being skipped one by one.
"""

import os
import pathlib
import re
import tempfile
import unittest
import unittest.mock
import warnings

import numpy
import onnx
import onnx.parser
from onnx import TensorProto, helper

import cameo
import cameo.backend

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KINDS = {"OnnxBackendNodeModelTest": 1884, "OnnxBackendRealModelTest": 9, "OnnxBackendSimpleModelTest": 23,
         "OnnxBackendPyTorchConvertedModelTest": 82, "OnnxBackendPyTorchOperatorModelTest": 35}
PINNED = "1.23.1"


def known_failures():
    lines = (ROOT / "tests" / "known_failures.txt").read_text(encoding="utf-8").splitlines()
    names = {line.split("#")[0].strip() for line in lines} - {""}
    return {name if name.endswith("_cpu") else name + "_cpu" for name in names}


def left_out():
    """Wheels are built without libtiff (pyproject.toml says why); what reads TIFF must fail there, and nowhere else."""
    has_tiff = any(row["name"] == "libtiff" and row["version"] for row in cameo.libraries())
    return set() if has_tiff else {"test_image_decoder_decode_tiff_rgb_cpu"}


def official_cases():
    """The classes of the official runner, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, while the suite computes what it expects
        from onnx.backend.test import BackendTest
        runner = BackendTest(cameo.backend, __name__)
    for name in known_failures() | left_out():
        runner.xfail(f"^{re.escape(name)}$")
    classes = runner.test_cases
    for case in classes.values():
        for name in [name for name in vars(case) if name.endswith("_cuda")]:
            delattr(case, name)
    return classes


OFFICIAL = official_cases()
globals().update(OFFICIAL)


def setUpModule():
    """The runner keeps copies of the networks that come with onnx."""
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    unittest.enterModuleContext(unittest.mock.patch.dict(os.environ, {"ONNX_MODELS": folder.name}))


def names_of(case):
    return [name for name in vars(case) if name.startswith("test_")]


class SuiteTest(unittest.TestCase):
    def test_the_whole_suite_is_there(self):
        self.assertEqual(onnx.__version__, PINNED, "the counts below are those of another version")
        self.assertEqual({name: len(names_of(case)) for name, case in OFFICIAL.items()}, KINDS)

    def test_known_failures_are_of_the_suite(self):
        of_the_runner = {name for case in OFFICIAL.values() for name in names_of(case)}
        listed = (ROOT / "tests" / "known_failures.txt").read_text(encoding="utf-8")
        for name in known_failures():
            if re.search(rf"^{name}\b", listed, re.M):  # others are names of other suites
                self.assertIn(name, of_the_runner)


def model(text):
    return onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> ' + text)


class InterfaceTest(unittest.TestCase):
    def setUp(self):
        self.sum = model("sum (float[2] a, float[2] b) => (float[2] c) { c = Add(a, b) }")
        self.a = numpy.array([1, 2], numpy.float32)

    def test_inputs_as_list_tuple_dict_and_alone(self):
        rep = cameo.backend.prepare(self.sum)
        for inputs in ([self.a, self.a], (self.a, self.a), {"b": self.a, "a": self.a}, [[1, 2], (1, 2)]):
            self.assertEqual(rep.run(inputs)[0].tolist(), [2, 4])
        alone = cameo.backend.prepare(model("double (float[2] a) => (float[2] b) { b = Add(a, a) }"))
        self.assertEqual(alone.run(self.a)["b"].tolist(), [2, 4])
        self.assertEqual(alone.run([self.a]).b.tolist(), [2, 4])

    def test_defaults_may_be_left_out(self):
        with_default = model("scale (float[2] x, float[1] w) => (float[2] y) <float[1] w = {3}> { y = Mul(x, w) }")
        rep = cameo.backend.prepare(with_default)
        self.assertEqual(rep.run([self.a])[0].tolist(), [3, 6])
        self.assertEqual(rep.run([self.a, numpy.array([5], numpy.float32)])[0].tolist(), [5, 10])

    def test_wrong_inputs(self):
        rep = cameo.backend.prepare(self.sum)
        for inputs, words in (([self.a], "'b'"), ([self.a] * 3, "3 inputs are given, the model has 2"),
                              ({"a": self.a, "q": self.a}, "'q'"), (["x", self.a], "input 'a' cannot be made float"),
                              ([[1, [2]], self.a], "input 'a' cannot be made float"), (None, "'a'"), ([], "'a'"),
                              ([object(), self.a], "'a'")):
            with self.assertRaisesRegex(cameo.Error, words):
                rep.run(inputs)

    def test_devices(self):
        for device in ("CPU", "CPU:0"):
            self.assertTrue(cameo.backend.supports_device(device))
            self.assertIsNotNone(cameo.backend.prepare(self.sum, device))
        for device in ("CUDA", "CUDA:1", "CPU:1", "abacus", ""):
            self.assertFalse(cameo.backend.supports_device(device))
            self.assertFalse(cameo.backend.is_compatible(self.sum, device))
            with self.assertRaisesRegex(cameo.UnsupportedError, f"device '{device}' is not supported, expected 'CPU'"):
                cameo.backend.prepare(self.sum, device)

    def test_is_compatible(self):
        self.assertTrue(cameo.backend.is_compatible(self.sum))
        strange = model("strange (float[2] a) => (float[2] b) { b = Frobnicate(a) }")
        self.assertFalse(cameo.backend.is_compatible(strange))

    def test_options_are_those_of_a_session(self):
        self.assertEqual(cameo.backend.run_model(self.sum, [self.a, self.a], threads=1, rtol=1e-3)[0].tolist(), [2, 4])
        with self.assertRaises(TypeError):
            cameo.backend.prepare(self.sum, colour="blue")

    def test_the_class_and_the_module_are_one(self):
        self.assertTrue(issubclass(cameo.backend.Backend, onnx.backend.base.Backend))
        self.assertEqual(cameo.backend.Backend.run_model(self.sum, [self.a, self.a]).c.tolist(), [2, 4])


class NodeTest(unittest.TestCase):
    def test_a_node(self):
        node = helper.make_node("Add", ["x", "x"], ["y"])
        self.assertEqual(cameo.backend.run_node(node, {"x": numpy.array([1, 2])})[0].tolist(), [2, 4])
        clip = helper.make_node("Clip", ["x", "", "high"], ["y"])
        for inputs in ([numpy.array([1., 9.]), numpy.array(5.)], [numpy.array([1., 9.]), None, numpy.array(5.)]):
            self.assertEqual(cameo.backend.run_node(clip, inputs)[0].tolist(), [1, 5])

    def test_opset_version(self):
        squeeze = helper.make_node("Squeeze", ["x"], ["y"], axes=[0])  # axes are an attribute before opset 13
        x = numpy.zeros((1, 2), numpy.float32)
        self.assertEqual(cameo.backend.run_node(squeeze, [x], opset_version=11)[0].shape, (2,))
        with self.assertRaises(cameo.Error):
            cameo.backend.run_node(squeeze, [x], opset_version=13)

    def test_outputs_info(self):
        node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT64)
        out = cameo.backend.run_node(node, [numpy.array([1.5])], outputs_info=[(numpy.dtype("int64"), (1,))])
        self.assertEqual((out[0].dtype, out[0].tolist()), (numpy.dtype("int64"), [1]))

    def test_another_domain(self):
        node = helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml", threshold=1.0)
        self.assertEqual(cameo.backend.run_node(node, [numpy.array([[0.5, 2]], numpy.float32)])[0].tolist(), [[0, 1]])

    def test_sequences_and_strings(self):
        at = helper.make_node("SequenceAt", ["s", "i"], ["y"])
        out = cameo.backend.run_node(at, [[numpy.array([1, 2]), numpy.array([3])], numpy.array(1)])
        self.assertEqual(out[0].tolist(), [3])
        join = helper.make_node("StringConcat", ["a", "b"], ["c"])
        out = cameo.backend.run_node(join, [numpy.array(["a"]), numpy.array(["b"], dtype=object)])
        self.assertEqual(out[0].tolist(), ["ab"])


class DeclaredTypeTest(unittest.TestCase):
    """What an input is fed as follows from its type, not from what the value looks like."""

    @staticmethod
    def same(kind):
        info = [onnx.ValueInfoProto(name=name) for name in "xy"]
        for one in info:
            one.type.CopyFrom(kind)
        graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "same", info[:1], info[1:])
        return cameo.backend.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))

    def test_sequences(self):
        scalar = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
        vector = helper.make_tensor_type_proto(TensorProto.FLOAT, [None])
        for kind in (helper.make_sequence_type_proto(scalar),
                     helper.make_optional_type_proto(helper.make_sequence_type_proto(scalar))):
            for value in ([1., 2.], (1., 2.), numpy.array([1, 2], numpy.float32), [numpy.float32(1), numpy.float32(2)]):
                out = self.same(kind).run([value])[0]
                self.assertEqual([(item.shape, float(item)) for item in out], [((), 1.), ((), 2.)])
        out = self.same(helper.make_sequence_type_proto(vector)).run({"x": [[1, 2], [3.]]})[0]
        self.assertEqual([item.tolist() for item in out], [[1, 2], [3]])
        self.assertEqual(self.same(helper.make_sequence_type_proto(vector)).run({"x": []})[0], [])

    def test_optionals(self):
        kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.INT64, [None]))
        self.assertIsNone(self.same(kind).run([None])[0])
        self.assertEqual(self.same(kind).run([[4, 5]])[0].tolist(), [4, 5])

    def test_maps(self):
        text = model("features (float[1,2] x) => (float[1,2] y) { y = Identity(x) }")  # map types have no text form
        node = helper.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml", string_vocabulary=["a", "b"])
        text.graph.node[0].CopyFrom(node)
        text.graph.input[0].type.CopyFrom(helper.make_map_type_proto(
            TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])))
        text.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
        self.assertEqual(cameo.backend.run_model(text, [{"b": numpy.float32(3)}])[0].reshape(-1).tolist(), [0, 3])


class KnownFailureTest(unittest.TestCase):
    """Of what the runner cannot judge, as much as can be judged: it is not a licence to be wrong."""

    def each(self, pattern):
        from onnx.backend.test.loader import load_model_tests
        cases = [case for case in load_model_tests(kind="node") if re.fullmatch(pattern, case.name)]
        self.assertTrue(cases)
        for case in cases:
            with self.subTest(case.name):
                for inputs, expected in case.data_sets:
                    yield cameo.backend.run_model(case.model, list(inputs))[0], expected[0]

    def test_random_numbers(self):
        for got, expected in self.each("test_bernoulli.*"):
            self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape))
            self.assertLessEqual(set(got.reshape(-1).tolist()), {0, 1})

    def test_inverse_transform(self):
        for got, expected in self.each("test_dft_inverse.*"):
            numpy.testing.assert_allclose(got, expected, rtol=1e-6, atol=2e-7)

    def test_scalars_in_a_sequence(self):
        for got, expected in self.each("test_loop16_seq_none"):
            self.assertEqual([item.shape for item in got], [numpy.shape(item) for item in expected])
            for one, other in zip(got, expected):
                numpy.testing.assert_array_equal(one, other)


if __name__ == "__main__":
    unittest.main()
