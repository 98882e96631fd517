# SPDX-License-Identifier: Apache-2.0
"""What models say of themselves, and the values of their initializers."""

import gc
import os
import tempfile
import unittest

import numpy

import cameo

NET = """<ir_version: 8, opset_import: ["" : 17, "my" : 1], producer_name: "tests", metadata_props: ["key": "value"]>
net (float[N,4] x, bool c) => (float[N,2] y) <float[4,2] w = {1,2,3,4,5,6,7,8}>
{
    h = MatMul(x, w)
    y = If(c) <then_branch = yes () => (float[N,2] p) { p = Relu(h) },
               else_branch = no () => (float[N,2] q) { q = my.Twice <times = 3> (h) }>
}
<domain: "my", opset_import: ["" : 17]>
Twice <times> (v) => (r)
{
    k = Constant <value_int: int = @times> ()
    t = Constant <value = float[2] {1, 2.5}> ()
    f = Cast <to = 1> (k)
    s = Mul(v, f)
    r = Add(s, t)
}"""


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class DescribeTest(unittest.TestCase):
    def setUp(self):
        self.model = cameo.load(NET)

    def test_nodes_have_names_operators_and_edges(self):
        multiply, choose = self.model.nodes
        self.assertEqual((multiply.op_type, multiply.domain, multiply.inputs, multiply.outputs),
                         ("MatMul", "", ["x", "w"], ["h"]))
        self.assertEqual(list(choose.attributes), ["then_branch", "else_branch"])
        body = choose.attributes["else_branch"]
        self.assertIsInstance(body, cameo.Graph)
        self.assertEqual([output.name for output in body.outputs], ["q"])
        self.assertEqual(body.nodes[0].operator, "my::Twice")
        self.assertEqual(dict(body.nodes[0].attributes), {"times": 3})

    def test_attributes_of_functions(self):
        twice, = self.model.functions
        self.assertEqual((twice.domain, twice.name, len(twice.nodes)), ("my", "Twice", 5))
        self.assertEqual(twice.nodes[0].attributes["value_int"], cameo.Reference("times"))
        numpy.testing.assert_array_equal(twice.nodes[1].attributes["value"], numpy.float32([1, 2.5]))
        self.assertEqual([value.name for value in twice.inputs + twice.outputs], ["v", "r"])

    def test_counts(self):
        self.assertEqual(self.model.opsets, {"": 17, "my": 1})
        self.assertEqual(self.model.metadata, {"key": "value"})
        self.assertEqual(self.model.operators["MatMul"], 1)
        self.assertEqual(self.model.operators["my::Twice"], 1)
        summary = self.model.summary
        self.assertEqual((summary.nodes, summary.parameters, summary.parameter_bytes, summary.producer_name), (2, 8, 32, "tests"))
        self.assertEqual(self.model.costs(N=3).flops, 48)
        self.assertEqual([(row.name, row.size, row.assumed) for row in self.model.costs({"N": 3}).sizes], [("N", 3, False)])

    def test_training(self):
        model = cameo.load("""<ir_version: 8, opset_import: ["" : 17]>
        line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {2}> { y = MatMul(x, w) }""")
        self.assertEqual(model.training, [])
        model.prepare("mse", "momentum", lr=0.1)
        entry, = model.training
        self.assertIn("w", entry.states)
        self.assertEqual([value.name for value in entry.inputs], ["target"])
        self.assertEqual(entry.update_binding["w"], "w.next")
        self.assertIn("loss", [value.name for value in entry.outputs])
        self.assertGreater(len(entry.algorithm.nodes), 3)

    def test_made_inputs_run(self):
        made = self.model.make_inputs(3, N=5)
        self.assertEqual(made["x"].shape, (5, 4))
        self.assertEqual(self.model.run(made)["y"].shape, (5, 2))
        numpy.testing.assert_array_equal(self.model.make_inputs(3, N=5)["x"], made["x"])
        self.assertEqual(self.model.make_inputs(shapes={"x": [2, 4]})["x"].shape, (2, 4))
        self.assertEqual(list(self.model.make_inputs(given={"x": made["x"]})), ["c"])
        with self.assertRaisesRegex(cameo.NotFoundError, "nosuch"):
            self.model.make_inputs(nosuch=3)

    def test_strings_that_are_no_utf8_are_bytes(self):
        model = cameo.load(self.model.to_bytes().replace(b"my", b"\xff\xfe"))
        self.assertEqual(len(model.nodes), 2)
        self.assertIn("\ufffd", model.functions[0].domain)


class InitializersTest(unittest.TestCase):
    def setUp(self):
        self.model = cameo.load(NET)
        self.w = numpy.arange(1, 9, dtype=numpy.float32).reshape(4, 2)

    def test_is_a_mapping_of_read_only_arrays(self):
        self.assertEqual(list(self.model.initializers), ["w"])
        self.assertEqual(len(self.model.initializers), 1)
        self.assertIn("w", self.model.initializers)
        numpy.testing.assert_array_equal(self.model.initializers["w"], self.w)
        with self.assertRaises(ValueError):
            self.model.initializers["w"][0, 0] = 3
        with self.assertRaisesRegex(KeyError, "no initializer 'W2'") as caught:
            self.model.initializers["W2"]
        self.assertIsInstance(caught.exception, cameo.NotFoundError)

    def test_assigning_replaces_values_of_this_model_alone(self):
        view = self.model.initializers["w"]
        session = cameo.Session(self.model)
        feeds = {"x": numpy.eye(4, dtype=numpy.float32), "c": numpy.array(True)}
        self.model.initializers["w"] = self.w * 10
        numpy.testing.assert_array_equal(view, self.w)
        numpy.testing.assert_array_equal(session.run(["y"], feeds)[0], self.w)
        numpy.testing.assert_array_equal(self.model.run(feeds)["y"], self.w * 10)
        numpy.testing.assert_array_equal(self.model.initializers["w"], self.w * 10)

    def test_what_does_not_fit_is_refused(self):
        for values in (self.w.astype(numpy.complex64), numpy.full_like(self.w, 1e300, dtype=float), self.w[:3], self.w.T, "text", None, [1, 2], self.w.astype(object),
                       [["a", "b"]] * 4):
            with self.subTest(values=values), self.assertRaisesRegex(cameo.ArgumentError, "initializer 'w'"):
                self.model.initializers["w"] = values
        numpy.testing.assert_array_equal(self.model.initializers["w"], self.w)

    def test_any_layout_of_the_same_type_fits(self):
        for values in (numpy.asfortranarray(self.w), self.w[::-1][::-1], self.w.astype(">f4"), self.w.tolist(),
                       numpy.repeat(self.w, 2, axis=1)[:, ::2]):
            self.model.initializers["w"] = self.w * 0
            self.model.initializers["w"] = values
            numpy.testing.assert_array_equal(self.model.initializers["w"], self.w)

    def test_tensors_of_other_libraries_fit(self):
        class Tensor:
            """All that is known of it is DLPack, as of a tensor on its way from another library."""

            def __init__(self, array):
                self.array = array
                self.__dlpack_device__ = array.__dlpack_device__

            def __dlpack__(self, **options):
                if self.array is None:
                    raise BufferError("cannot be exported")
                return self.array.__dlpack__(**options)
        self.model.initializers["w"] = Tensor(self.w * 3)
        numpy.testing.assert_array_equal(self.model.initializers["w"], self.w * 3)
        broken = Tensor(self.w)
        broken.array = None
        for wrong in (broken, Tensor(self.w.astype(numpy.complex64)), Tensor(self.w[:2])):
            with self.assertRaisesRegex(cameo.ArgumentError, "initializer 'w'"):
                self.model.initializers["w"] = wrong

    def test_a_loop_of_assignments_does_not_pile_up(self):
        model = big_model(1 << 20)
        values = numpy.zeros(1 << 20, numpy.float32)
        x = numpy.float32([1])
        sizes = []
        for i in range(40):
            values[0] = i
            model.initializers["w"] = values
            self.assertEqual(model.run(x=x)["y"][0], i)
            sizes.append(resident())
        self.assertLess(sizes[-1] - sizes[9], 20 << 20)  # 30 rounds of 4 MB

    def test_sessions_that_come_and_go_do_not_pile_up(self):
        model = big_model(1 << 20)
        values = numpy.zeros(1 << 20, numpy.float32)
        sizes, session = [], None
        for i in range(80):
            values[0] = i
            model.initializers["w"] = values
            session = cameo.Session(model)
            sizes.append(resident())
        self.assertEqual(session.run(["y"], {"x": numpy.float32([1])})[0][0], 79)
        self.assertLess(sizes[-1] - sizes[39], 60 << 20)  # 40 rounds of 4 MB

    def test_views_of_a_file_copy_nothing(self):
        count = 25_000_000
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "big.onnx")
            big_model(count).save(path, external="big.data")
            gc.collect()
            model = cameo.load(path)
            before = resident()
            views = [model.initializers["w"] for _ in range(10)]
            self.assertLess(resident() - before, 10 << 20)  # each has 100 MB
            first = views[0].__array_interface__
            self.assertEqual(views[9].__array_interface__["data"], (first["data"][0], True))
            with open("/proc/self/maps", encoding="ascii") as file:
                ranges = [line.split()[0].split("-") for line in file if line.rstrip().endswith("big.data")]
            self.assertTrue(any(int(low, 16) <= first["data"][0] < int(high, 16) for low, high in ranges))
            self.assertEqual(views[0].shape, (count,))
            self.assertEqual(views[0][0], 0)
            del model
            gc.collect()
            self.assertEqual(views[0][count - 1], 0)  # the view keeps the mapping

    def test_views_of_bytes_lie_in_them(self):
        # Where values begin depends on what is before them: of four names, one puts them where floats may lie.
        inside = 0
        for length in range(4):
            text = NET.replace("net (", "n" * (length + 1) + " (")
            data = cameo.load(text).to_bytes()
            start = numpy.frombuffer(data, numpy.uint8).__array_interface__["data"][0]
            at = cameo.load(data).initializers["w"].__array_interface__["data"][0]
            inside += start <= at < start + len(data)
        self.assertEqual(inside, 1)

    def test_strings_and_narrow_types(self):
        model = cameo.load("""<ir_version: 10, opset_import: ["" : 21]>
        net (float[1] x) => (float[1] y)
        <string[2] s = {"one", "two"}, bfloat16[2] b = {1, 2}, int4[3] i = {-8, 0, 7}, uint4[2] u = {15, 1},
         double[2] h = {1, 0.5}, bool[2] t = {1, 0}, int64 n = {5}, float[0] e = {}>
        { y = Identity(x) }""")
        initializers = model.initializers
        self.assertEqual(initializers["s"].tolist(), ["one", "two"])
        self.assertEqual(initializers["s"].dtype, object)
        self.assertEqual(initializers["h"].tolist(), [1, 0.5])
        self.assertEqual(initializers["t"].tolist(), [True, False])
        self.assertEqual((initializers["n"].shape, int(initializers["n"])), ((), 5))
        self.assertEqual(initializers["e"].shape, (0,))
        for name in initializers:
            self.assertFalse(initializers[name].flags.writeable)
            if name == "s":
                with self.assertRaisesRegex(cameo.UnsupportedError, "strings"):
                    initializers[name] = ["a", "b"]
            else:
                before = initializers[name].copy()
                initializers[name] = numpy.zeros_like(before)
                self.assertFalse(initializers[name].astype(bool).any())
                initializers[name] = before
                numpy.testing.assert_array_equal(initializers[name], before)

    def test_sparse_ones_are_refused(self):
        path = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "models", "sparse.onnx")
        model = cameo.load(path)
        refused = 0
        for name in model.initializers:
            try:
                model.initializers[name].shape
            except cameo.UnsupportedError as problem:
                self.assertIn("sparse", str(problem))
                refused += 1
        self.assertGreater(refused, 0)


def big_model(count):
    """y = x * w[0], of a w of zeros, which as text would take long to read."""
    import onnx
    proto = cameo.load("""<ir_version: 8, opset_import: ["" : 17]>
    big (float[1] x) => (float[1] y) <int64[1] i = {0}> { g = Gather(w, i) y = Mul(x, g) }""").to_onnx()
    proto.graph.initializer.append(onnx.TensorProto(name="w", data_type=1, dims=[count], raw_data=bytes(4 * count)))
    return cameo.load(proto)


if __name__ == "__main__":
    unittest.main()
