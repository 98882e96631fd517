# SPDX-License-Identifier: Apache-2.0
"""Operators written in Python: kernels, inference, gradients, and all that goes wrong in them."""

import gc
import threading
import time
import traceback
import unittest
import weakref

import numpy

import cameo
from cameo import _cameo
from cameo.operators import TensorType, operator

HEAD = '<ir_version: 8, opset_import: ["" : 17, "ex" : 1]>\n'


def f32(*values):
    return numpy.array(values, numpy.float32)


class Case(unittest.TestCase):
    """Each test has a registry of its own."""

    def setUp(self):
        self.registry = cameo.Registry()

    def operator(self, name, **more):
        return operator("ex", name, registry=self.registry, **more)

    def load(self, text):
        return cameo.load(HEAD + text, registry=self.registry)


class ForwardTest(Case):
    def test_a_kernel_and_its_attributes(self):
        @self.operator("Scale")
        def scale(x, *, by=2.0):
            return x * numpy.float32(by)

        model = self.load("g (float[N] x) => (float[N] y, float[N] z) { y = ex.Scale(x) z = ex.Scale <by = 0.5> (x) }")
        out = model.run(x=f32(1, 2))
        self.assertEqual((out["y"].tolist(), out["z"].tolist()), ([2, 4], [0.5, 1]))
        self.assertEqual(scale(f32(1), by=3.0).tolist(), [3])

    def test_attributes_of_all_kinds(self):
        seen = {}

        @self.operator("All", attributes={"f": 1.5, "i": 2, "s": "three", "fs": [0.5], "ints": list[int], "ss": ["a", "b"],
                                          "must": float})
        def everything(x, **attributes):
            seen.update(attributes)
            return x

        text = "g (float[1] x) => (float[1] y) {{ y = ex.All <{}> (x) }}"
        self.load(text.format("ints = [1, 2], must = 4.0")).run(x=f32(1))
        self.assertEqual(seen, {"f": 1.5, "i": 2, "s": "three", "fs": [0.5], "ints": [1, 2], "ss": ["a", "b"],
                                "must": 4.0})
        self.load(text.format('ints = [-9223372036854775808], must = 0.25, f = -1.0, i = 7, s = "é", fs = [1.0, 2.5], '
                              'ss = ["", "z"]')).run(x=f32(1))
        self.assertEqual(seen, {"f": -1.0, "i": 7, "s": "é", "fs": [1.0, 2.5], "ints": [-2**63], "ss": ["", "z"],
                                "must": 0.25})
        with self.assertRaisesRegex(cameo.ModelError, "ints"):
            self.load(text.format("must = 1.0")).run(x=f32(1))

    def test_annotations_of_attributes(self):
        space = {}
        exec("from __future__ import annotations\n"
             "def kernel(x, *, axis: int, axes: list[int], by: float = 2.0): return x * axis * axes[1] * by", space)
        self.operator("Times")(space["kernel"])
        model = self.load("g (float[1] x) => (float[1] y) { y = ex.Times <axis = 3, axes = [0, 5]> (x) }")
        self.assertEqual(model.run(x=f32(1))["y"].tolist(), [30])

    def test_attributes_reach_inference(self):
        @self.operator("Tile")
        def tile(x, *, axes=[1, 2], mode="a", scales=[1.5]):
            return numpy.zeros(axes, x.dtype) + numpy.float32(len(mode) + scales[0])

        @tile.infer
        def _(x, *, axes, mode, scales):
            self.assertEqual((mode, scales), ("abc", [2.5, 1.0]))
            return x.dtype, axes

        model = self.load('g (float[N] x) => (y) { y = ex.Tile <axes = [2, 3], mode = "abc", scales = [2.5, 1.0]> (x) }')
        self.assertEqual(model.run(x=f32(1))["y"].tolist(), [[5.5] * 3] * 2)

    def test_optional_and_variadic_inputs(self):
        @self.operator("Add3")
        def add3(x, b=None, c=None):
            return x + (0 if b is None else b) + (0 if c is None else 10 * c)

        @self.operator("Total")
        def total(first, *xs):
            return first + sum(xs)

        model = self.load("""g (float[N] x) => (float[N] a, float[N] b, float[N] c, float[N] t)
        { a = ex.Add3(x) b = ex.Add3(x, "", x) c = ex.Add3(x, x, x) t = ex.Total(x, x, x, x) }""")
        out = model.run(x=f32(1, 2))
        self.assertEqual([out[name].tolist() for name in "abct"], [[1, 2], [11, 22], [12, 24], [4, 8]])

    def test_several_outputs_as_tuple_and_dict(self):
        @self.operator("Split", outputs=["low", "high?"])
        def split(x):
            return numpy.minimum(x, 0), numpy.maximum(x, 0)

        @split.infer
        def _(x):
            return [x, x]

        @self.operator("SplitByName", outputs=["low", "high?"])
        def by_name(x):
            return {"high": numpy.maximum(x, 0), "low": numpy.minimum(x, 0)}

        @by_name.infer
        def _(x):
            return [x, x]

        for name in ("Split", "SplitByName"):
            model = self.load(f"g (float[N] x) => (float[N] a, float[N] b, float[N] c) {{ a, b = ex.{name}(x) "
                              f"c = ex.{name}(x) }}")
            out = model.run(x=f32(-1, 2))
            self.assertEqual([out[key].tolist() for key in "abc"], [[-1, 0], [0, 2], [-1, 0]])

    def test_writing_into_the_output(self):
        @self.operator("Twice")
        def twice(x, *, out):
            numpy.multiply(x, 2, out=out)

        self.assertEqual(self.load("g (float[N] x) => (float[N] y) { y = ex.Twice(x) }").run(x=f32(1, 2))["y"].tolist(),
                         [2, 4])

    def test_every_type(self):
        @self.operator("Same")
        def same(x):
            types.append(x.dtype)
            return x

        for name in ("float", "double", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                     "uint64", "bool"):
            types = []
            kind = {"float": "float32", "double": "float64"}.get(name, name)
            x = numpy.array([[0, 1, 1]], kind)
            model = self.load(f"g ({name}[N, M] x) => ({name}[N, M] y) {{ y = ex.Same(x) }}")
            numpy.testing.assert_array_equal(model.run(x=x)["y"], x)
            self.assertEqual(types, [x.dtype])

    def test_narrow_types(self):
        @self.operator("Same")
        def same(x):
            return x

        for name in ("bfloat16", "float8e4m3fn", "int4", "uint4"):
            model = self.load(f"g (float[N] x) => (float[N] y) {{ c = Cast <to = {NUMBERS[name]}> (x) d = ex.Same(c) "
                              f"y = Cast <to = 1> (d) }}")
            self.assertEqual(model.run(x=f32(1, 2, 3))["y"].tolist(), [1, 2, 3])

    def test_strings_come_in(self):
        @self.operator("Length")
        def length(x):
            return numpy.array([len(text) for text in x.reshape(-1)], numpy.int64).reshape(x.shape)

        @length.infer
        def _(x):
            return "int64", x.shape

        model = self.load("g (string[N] x) => (int64[N] y) { y = ex.Length(x) }")
        self.assertEqual(model.run(x=numpy.array(["", "ab", "é"], object))["y"].tolist(), [0, 2, 1])

    def test_scalars_and_empty_arrays(self):
        @self.operator("Neg")
        def neg(x):
            return -x

        model = self.load("g (float[N, 3] x, float s) => (float[N, 3] y, float t) { y = ex.Neg(x) t = ex.Neg(s) }")
        out = model.run(x=numpy.zeros((0, 3), numpy.float32), s=numpy.float32(2))
        self.assertEqual((out["y"].shape, out["t"].tolist()), ((0, 3), -2))

    def test_sizes_that_depend_on_values(self):
        @self.operator("Positive", dynamic=True)
        def positive(x):
            return x[x > 0]

        @positive.infer
        def _(x):
            return TensorType(x.dtype, (None,))

        model = self.load("g (float[N] x) => (float[M] y) { p = ex.Positive(x) y = Add(p, p) }")
        self.assertEqual(model.run(x=f32(-1, 2, 3))["y"].tolist(), [4, 6])
        self.assertEqual(model.run(x=f32(-1))["y"].tolist(), [])

    def test_bodies(self):
        op = cameo.operator("ex", "Double", inputs=["x"], registry=self.registry,
                            body='<domain: "ex", opset_import: ["" : 17]> Double (x) => (y) { y = Add(x, x) }')
        model = self.load("g (float[N] x) => (float[N] y) { y = ex.Double(x) }")
        self.assertEqual(model.run(x=f32(2))["y"].tolist(), [4])
        self.assertEqual(model.grad("y", wrt=["x"]).run(x=f32(2))["gradient.x"].tolist(), [2])
        op.kernel(lambda x: 3 * x)
        self.assertEqual(model.run(x=f32(2))["y"].tolist(), [6])

    def test_what_is_registered_later_is_known(self):
        model = self.load("g (float[N] x) => (float[N] y) { y = ex.Later(x) }")
        with self.assertRaises(cameo.Error):
            model.run(x=f32(1))
        self.operator("Later")(lambda x: x + 1)
        session = cameo.Session(model)
        self.assertEqual(model.run(x=f32(1))["y"].tolist(), [2])
        self.operator("Later")(lambda x: x + 2)
        self.assertEqual(model.run(x=f32(1))["y"].tolist(), [3])
        self.assertEqual(session.run(["y"], {"x": f32(1)})[0].tolist(), [2])

    def test_a_model_that_is_changed_often_knows_its_operators(self):
        @self.operator("Twice")
        def twice(x):
            return x * 2

        inside = self.load("g (float[1] x) => (float[1] y) { y = ex.Twice(x) }")._inside
        registry = _cameo.registry_of(inside)
        self.assertIsNotNone(registry)
        for _ in range(20):
            inside, _ = _cameo.infer(inside, True)
            self.assertIs(_cameo.registry_of(inside), registry)
        self.assertEqual(_cameo.Session(inside).run(None, {"x": f32(3)})[0].tolist(), [6])

    def test_a_registry_nobody_refers_to_goes(self):
        class Own:
            pass

        def make():
            registry, own = cameo.Registry(), Own()
            operator("ex", "Same", registry=registry)(lambda x: own and x)
            model = cameo.load(HEAD + "g (float[1] x) => (float[1] y) { y = ex.Same(x) }", registry=registry)
            self.assertEqual(model.run(x=f32(3))["y"].tolist(), [3])
            return weakref.ref(own)

        own = make()
        gc.collect()
        gc.collect()  # the model and its session first, then the registry they kept
        self.assertIsNone(own())

    def test_the_default_registry(self):
        op = operator("ex", "InDefault")(lambda x: x + 1)
        self.addCleanup(cameo.operators.default.remove, op)
        text = HEAD + "g (float[N] x) => (float[N] y) { y = ex.InDefault(x) }"
        self.assertEqual(cameo.load(text).run(x=f32(1))["y"].tolist(), [2])
        with self.assertRaises(cameo.Error):
            cameo.Session(cameo.load(text), registry=self.registry).run(None, {"x": f32(1)})


NUMBERS = {"bfloat16": 16, "float8e4m3fn": 17, "uint4": 21, "int4": 22}


class MistakeTest(Case):
    def run_kernel(self, kernel, infer=None, **more):
        op = self.operator("Op", **more)(kernel)
        if infer:
            op.infer(infer)
        return self.load("g (float[N] x) => (float[M] y) { y = ex.Op(x) }").run(x=f32(1, 2))["y"]

    def test_results_of_another_type_or_shape(self):
        for kernel, error, part in (
                (lambda x: x.astype("float64"), TypeError, r"output 'y' as float64\[2\], its type is float32\[2\]"),
                (lambda x: x[:1], ValueError, r"float32\[1\], its type is float32\[2\]"),
                (lambda x: None, ValueError, "gave no output 'y'"),
                (lambda x: x.astype(">f4"), TypeError, ">f4"),
                (lambda x: {"z": x}, ValueError, "no output 'z'")):
            with self.subTest(part=part), self.assertRaisesRegex(error, part):
                self.run_kernel(kernel)

    def test_the_exception_itself_arrives(self):
        class Own(Exception):
            pass

        def kernel(x):
            if x[0] > 0:
                raise Own("with a reason")
            return x

        self.operator("Op")(kernel)
        session = cameo.Session(self.load("g (float[N] x) => (float[N] y) { y = ex.Op(x) }"))
        for _ in range(2):
            try:
                session.run(["y"], {"x": f32(1)})
                self.fail("there was no exception")
            except Own as error:
                self.assertEqual(str(error), "with a reason")
                self.assertIn("ex.Op", error.__notes__[0])
                self.assertIn('raise Own("with a reason")', traceback.format_exc())
            self.assertEqual(session.run(["y"], {"x": f32(-1)})[0].tolist(), [-1])  # it can be used again

    def test_exceptions_of_all_lengths(self):
        for text in ("", "x" * 5000, "é" * 3000, "two\nlines", "%s %n", "\udcff"):
            def kernel(x, text=text):
                raise RuntimeError(text)

            with self.subTest(text=text[:10]), self.assertRaises(RuntimeError) as caught:
                self.run_kernel(kernel, inputs=["x"])
            self.assertEqual(str(caught.exception), text)

    def test_exceptions_of_inference(self):
        def infer(x):
            raise LookupError("no shape today")

        with self.assertRaisesRegex(LookupError, "no shape today"):
            self.run_kernel(lambda x: x, infer)
        for made in (3, [3], [("float32", (1,), 2)], ("nonsense", (1,)), ("float32", ("x",)), ("float32", (1,) * 65)):
            with self.subTest(made=made), self.assertRaises((TypeError, ValueError, cameo.Error)):
                self.run_kernel(lambda x: x, lambda x, made=made: made)

    def test_inference_that_reads_its_own_model(self):
        @self.operator("Look")
        def look(x):
            return x

        models = []

        @look.infer
        def types(x):
            for model in models:
                model.initializers["w"].copy()
            return x

        model = self.load("g (float[1] x) => (float[1] y) <float[1] w = {2}> { t = ex.Look(x) y = Mul(t, w) }")
        models.append(model)
        with self.assertRaisesRegex(cameo.Error, "the model is in use by the call"):
            model.run(x=f32(1))
        models.clear()
        self.assertEqual(model.run(x=f32(3))["y"].tolist(), [6])

    def test_inputs_are_to_be_read_only(self):
        def kernel(x):
            x[0] = 7
            return x

        with self.assertRaisesRegex(ValueError, "read-only"):
            self.run_kernel(kernel)

        def by_force(x):
            x.flags.writeable = True
            return x

        with self.assertRaises(ValueError):
            self.run_kernel(by_force)

    def test_what_is_kept_is_refused_and_stays_readable(self):
        kept = []

        def kernel(x):
            kept.append(x[1:])
            return x + 1

        with self.assertRaisesRegex(ValueError, "keep a copy"):
            self.run_kernel(kernel)
        gc.collect()
        junk = [f32(7, 7) for _ in range(1000)]
        self.assertEqual(kept[0].tolist(), [2])  # what was fed, which is kept as well
        del junk
        self.assertEqual(self.run_kernel(lambda x: kept.append(x.copy()) or x).tolist(), [1, 2])
        self.assertEqual(kept[-1].tolist(), [1, 2])

    def test_what_is_kept_of_a_validation_batch_stays(self):
        kept = []

        @self.operator("Keep")
        def keep(x):
            if len(x) == 5:
                kept.append(x)
            return x * 1

        @keep.gradient
        def gradient(x, d_y):
            return d_y * 1

        model = self.load("g (float[N, 1] x) => (float[N, 1] y) <float[1, 1] w = {1}> { t = ex.Keep(x) y = MatMul(t, w) }")
        trainer = cameo.Trainer(model.prepare(loss="mse", optimizer="sgd", lr=0.1))
        x, judged = numpy.ones((8, 1), "float32"), [numpy.full((5, 1), 9, "float32")]
        seen = weakref.ref(judged[0])
        with self.assertRaisesRegex(ValueError, "keep a copy"):
            trainer.fit([(x, x)], validate=lambda epoch=0: [(judged[0], judged.pop())])
        gc.collect()
        self.assertIsNotNone(seen())
        self.assertEqual(kept[0].tolist(), [[9]] * 5)

    def test_what_is_kept_of_a_room_stays(self):
        kept = []

        @self.operator("Out")
        def into(x, *, out=None):
            kept.append(out)
            out[...] = x

        session = _cameo.Session(self.load("g (float[2] x) => (float[2] y) { y = ex.Out(x) }")._inside)
        room = f32(0, 0)
        seen = weakref.ref(room)
        with self.assertRaisesRegex(ValueError, "keep a copy"):
            session.run(None, {"x": f32(1, 2)}, None, None, {"y": room})
        inside = kept[0].ctypes.data == room.ctypes.data
        del room
        gc.collect()
        self.assertEqual(seen() is not None, inside)

    def test_definitions_that_are_wrong(self):
        for error, make in (
                (cameo.ArgumentError, lambda: operator("", "Op", registry=self.registry)(lambda x: x)),
                (cameo.ArgumentError, lambda: operator("ai.onnx", "Op", registry=self.registry)(lambda x: x)),
                (cameo.ArgumentError, lambda: self.operator("Op", inputs=["xs*", "y"])(lambda *xs: xs)),
                (cameo.Error, lambda: self.operator("Op", inputs=["x"], body="nonsense")),
                (TypeError, lambda: self.operator("Op", attributes={"a": object()})(lambda x: x)),
                (TypeError, lambda: self.operator("Op", types={"x": "datetime64[s]"})(lambda x: x)),
                (ValueError, lambda: self.operator("Op", inputs=["x"] * 65)(lambda *x: x))):
            with self.assertRaises(error):
                make()
        self.assertEqual(len(self.registry), 0)

    def test_types_that_are_not_allowed(self):
        self.operator("Op", types={"x": ["float64", "int32"]})(lambda x: x)
        with self.assertRaisesRegex(cameo.Error, "float"):
            self.load("g (float[N] x) => (float[N] y) { y = ex.Op(x) }").run(x=f32(1))


class ThreadTest(Case):
    def test_several_threads(self):
        def kernel(x):
            if x[0] < 0:
                raise ValueError(str(int(x[0])))
            return x * 2

        self.operator("Op")(kernel)
        session = cameo.Session(self.load("g (float[N] x) => (float[N] y) { y = ex.Op(x) }"), threads=1)
        wrong = []

        def work(number):
            for i in range(200):
                sign = -1 if i % 3 == 0 else 1
                try:
                    out = session.run(["y"], {"x": f32(sign * number, i)})[0]
                    if sign < 0 or out.tolist() != [2 * number, 2 * i]:
                        wrong.append((number, i))
                except ValueError as error:
                    if str(error) != str(-number):
                        wrong.append((number, i, error))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_model_that_another_thread_makes_a_session_of(self):
        @self.operator("Slow")
        def slow(x):
            return x

        begun = threading.Event()

        @slow.infer
        def types(x):
            begun.set()
            time.sleep(0.1)  # others have the interpreter lock
            return x

        model = self.load("g (float[1] x) => (float[1] y) <float[1] w = {2}> { t = ex.Slow(x) y = Mul(t, w) }")
        thread = threading.Thread(target=lambda: cameo.Session(model))
        thread.start()
        begun.wait()
        inside = model._inside
        self.assertIsNot(_cameo.set_initializer(inside, 0, f32(3).tobytes()), inside)
        self.assertEqual(_cameo.notes(inside), [])
        self.assertEqual(_cameo.used_values(model._inside, ["x"], ["y"]), ["x"])
        thread.join()

    def test_a_session_inside_a_kernel(self):
        inner = cameo.load(HEAD + "g (float[N] x) => (float[N] y) { y = Neg(x) }")
        self.operator("Op")(lambda x: inner.run(x=x)["y"].copy())
        self.assertEqual(self.load("g (float[N] x) => (float[N] y) { y = ex.Op(x) }").run(x=f32(1))["y"].tolist(), [-1])


class AgainTest(unittest.TestCase):
    def test_a_kernel_that_runs_its_own_session(self):
        """Nested runs are computed, or refused where the engine does one at a time; none waits for itself."""
        registry, x = cameo.Registry(), numpy.float32([3, 4])

        @cameo.operator("ex", "Twice", registry=registry)
        def twice(x):
            if runs:
                nested.append(runs.pop().run(None, {"x": x})[0])
            return 2 * x

        model = cameo.load('''<ir_version: 8, opset_import: ["" : 17, "ex" : 1]>
            g (float[2] x) => (float[2] y) { y = ex.Twice(x) }''', registry=registry)
        for options in ({}, {"expand": True}, {"backend": "plain"}):
            runs, nested = [], []
            session = cameo.Session(model, **options)
            runs.append(session)
            if options.get("backend") == "plain":
                with self.assertRaisesRegex(cameo.ArgumentError, "in use by the call"):
                    session.run(None, {"x": x})
            else:
                session.run(None, {"x": x})
                self.assertEqual(nested[0].tolist(), [6, 8])
            self.assertEqual(session.run(None, {"x": x})[0].tolist(), [6, 8])


class GradientTest(Case):
    def swish(self):
        @self.operator("Swish")
        def swish(x, *, beta=1.0):
            return x / (1 + numpy.exp(-beta * x, dtype=x.dtype))

        @swish.gradient
        def _(x, d_y, *, beta):
            s = 1 / (1 + numpy.exp(-beta * x))
            return {"d_x": d_y * (s + beta * x * s * (1 - s))}

    def test_against_the_analytic_one(self):
        self.swish()
        model = self.load("g (double[N] x) => (double[N] y) { y = ex.Swish <beta = 1.5> (x) }")
        x = numpy.linspace(-3, 3, 13)
        got = model.grad("y", wrt=["x"]).run(x=x)["gradient.x"]
        s = 1 / (1 + numpy.exp(-1.5 * x))
        numpy.testing.assert_allclose(got, s + 1.5 * x * s * (1 - s), rtol=1e-12)
        step = 1e-6
        numeric = (model.run(x=x + step)["y"] - model.run(x=x - step)["y"]) / (2 * step)
        numpy.testing.assert_allclose(got, numeric, rtol=1e-6)

    def test_against_differences(self):
        self.swish()
        model = self.load("g (float[N] x, float[N] b) => (float[N] y) { z = Mul(x, b) y = ex.Swish <beta = 0.5> (z) }")
        self.assertTrue(model.gradcheck({"x": f32(-2, 0.5, 3), "b": f32(1, 2, -1)}).good)

    def test_several_inputs_outputs_and_a_list(self):
        @self.operator("Mix", outputs=["total", "product"])
        def mix(a, *xs):
            return a + sum(xs), a * xs[0]

        @mix.infer
        def _(a, *xs):
            return [a, a]

        @mix.gradient
        def _(a, xs, d_total, d_product):
            zero = numpy.zeros_like(a)
            d_total, d_product = zero if d_total is None else d_total, zero if d_product is None else d_product
            return {"d_a": d_total + d_product * xs[0],
                    "d_xs": [d_total + (d_product * a if i == 0 else 0) for i in range(len(xs))]}

        model = self.load("""g (float[N] a, float[N] b, float[N] c) => (float[N] y, float[N] t)
        { t, p = ex.Mix(a, b, c) y = Add(t, p) }""")
        feeds = {"a": f32(2, 3), "b": f32(5, 7), "c": f32(1, 1)}
        out = model.grad("y", wrt=["a", "b", "c"]).run(**feeds)
        self.assertEqual([out["gradient." + name].tolist() for name in "abc"], [[6, 8], [3, 4], [1, 1]])
        out = model.grad("t", wrt=["a", "c"]).run(**feeds)
        self.assertEqual([out["gradient." + name].tolist() for name in "ac"], [[1, 1], [1, 1]])

    def test_integers_have_none(self):
        @self.operator("Pick")
        def pick(x, i):
            return x[i]

        @pick.infer
        def _(x, i):
            return x.dtype, i.shape

        @pick.gradient(wrt=["x"])
        def _(x, i, d_y):
            made = numpy.zeros_like(x)
            numpy.add.at(made, i, d_y)
            return made

        model = self.load("g (float[N] x, int64[M] i) => (float[M] y) { y = ex.Pick(x, i) }")
        out = model.grad("y", wrt=["x"]).run(x=f32(1, 2, 3), i=numpy.array([2, 2, 0]))
        self.assertEqual((out["y"].tolist(), out["gradient.x"].tolist()), ([3, 3, 1], [1, 0, 2]))

    def test_a_text(self):
        op = self.operator("Cube")(lambda x: x * x * x)
        op.gradient('<domain: "ex", opset_import: ["" : 17]> G (x, d_y) => (d_x) '
                    "{ q = Mul(x, x) three = Constant <value_float = 3.0> () t = Mul(q, three) d_x = Mul(t, d_y) }")
        model = self.load("g (float[N] x) => (float[N] y) { y = ex.Cube(x) }")
        self.assertEqual(model.grad("y", wrt=["x"]).run(x=f32(2))["gradient.x"].tolist(), [12])

    def test_mistakes(self):
        op = self.operator("Op")(lambda x, *, a=1.0: x)
        model = self.load("g (float[N] x) => (float[N] y) { y = ex.Op(x) }")
        with self.assertRaisesRegex(cameo.Error, "gradient"):
            model.grad("y", wrt=["x"])
        for rule, error, part in ((lambda z, d_y: d_y, ValueError, "'z'"),
                                  (lambda d_y, *, q: d_y, ValueError, "'q'"),
                                  (lambda d_y: {"x": d_y}, ValueError, "expected 'd_'"),
                                  (lambda d_y: (d_y, d_y), ValueError, "2 arrays for 1 inputs"),
                                  (lambda d_y: d_y[:1], ValueError, "the gradient of ex.Op"),
                                  (lambda d_y: 1 // 0, ZeroDivisionError, "")):
            with self.subTest(part=part), self.assertRaisesRegex(error, part):
                op.gradient(rule)
                model.grad("y", wrt=["x"]).run(x=f32(1, 2))
        with self.assertRaisesRegex(ValueError, "no input 'q'"):
            op.gradient(lambda d_y: d_y, wrt=["q"])


NET = """net (float[N, 4] x) => (float[N, 3] y)
<float[4, 8] w1 = {W1}, float[8] b1 = {B1}, float[8, 3] w2 = {W2}>
{ h = MatMul(x, w1) i = Add(h, b1) ACT y = MatMul(a, w2) }"""


class TrainingTest(Case):
    """A network with an operator in Python, and the same without."""

    def net(self, activation):
        rng = numpy.random.default_rng(1)
        text = NET.replace("ACT", activation)
        for name, size in (("W1", 32), ("B1", 8), ("W2", 24)):
            text = text.replace("{%s}" % name, "{%s}" % ", ".join(f"{v:.4f}" for v in rng.normal(size=size) / 2))
        return self.load(text)

    def setUp(self):
        super().setUp()
        GradientTest.swish(self)
        rng = numpy.random.default_rng(2)
        self.x = rng.normal(size=(64, 4)).astype("float32")
        self.t = (self.x[:, :3] * 2 + 1).astype("float32")

    def losses(self, model, optimizer):
        model.prepare(loss="mse", optimizer=optimizer, lr=0.05)
        trainer = cameo.Trainer(model)
        return [trainer.step(x=self.x, target=self.t) for _ in range(40)]

    def test_training_is_that_of_the_network_without(self):
        for optimizer in ("sgd", "adam"):
            own = self.losses(self.net("a = ex.Swish(i)"), optimizer)
            plain = self.losses(self.net("s = Sigmoid(i) a = Mul(i, s)"), optimizer)
            self.assertLess(own[-1], own[0] / 2)
            numpy.testing.assert_allclose(own, plain, rtol=1e-5, atol=1e-6)

    def test_an_exception_in_a_step_changes_nothing(self):
        model = self.net("a = ex.Swish(i)").prepare(loss="mse", optimizer="sgd", lr=0.05)
        calls = []
        swish = next(iter(self.registry))
        inner = swish._function

        def sometimes(x, *, beta):
            calls.append(1)
            if len(calls) == 2:
                raise OSError("the second time")
            return inner(x, beta=beta)

        swish.kernel(sometimes)
        trainer = cameo.Trainer(model)
        first = trainer.step(x=self.x, target=self.t)
        with self.assertRaisesRegex(OSError, "the second time"):
            trainer.step(x=self.x, target=self.t)
        self.assertEqual(trainer.steps, 1)
        self.assertLess(trainer.step(x=self.x, target=self.t), first)

    def test_a_kernel_may_not_look_at_the_trainer_that_calls_it(self):
        model = self.net("a = ex.Swish(i)").prepare(loss="mse", optimizer="sgd", lr=0.05)
        swish = next(iter(self.registry))
        inner = swish._function
        data = (self.x, self.t)

        def look(x, *, beta):
            trainer.evaluate(data)
            return inner(x, beta=beta)

        swish.kernel(look)
        trainer = cameo.Trainer(model)
        for train in (lambda: trainer.fit(data), lambda: trainer.fit([data]), lambda: trainer.step(data)):
            with self.assertRaisesRegex(RuntimeError, "in use by the call"):
                train()
        with self.assertRaisesRegex(RuntimeError, "in use by the call"):
            trainer.evaluate(data)

    def test_the_step_as_a_model_and_infer(self):
        model = self.net("a = ex.Swish(i)")
        self.assertEqual(model.check(), [])


if __name__ == "__main__":
    unittest.main()
