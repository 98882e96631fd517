# SPDX-License-Identifier: Apache-2.0
"""What a user gets wrong is told where it is given, by an exception of cameo's that says what is expected."""

import importlib.util
import io
import math
import os
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy

import cameo
from cameo import callbacks
from cameo.operators import Registry, operator

LINE = """<ir_version: 8, opset_import: ["" : 17]>
line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {0}> { y = MatMul(x, w) }"""
X = numpy.ones((4, 1), numpy.float32)
BAD = numpy.float32([[1], [math.nan], [1], [1]])


def trainer():
    return cameo.Trainer(cameo.load(LINE).prepare("mse", lr=0.1), threads=1)


class OperatorTest(unittest.TestCase):
    def test_a_wrong_rule_is_refused_where_it_is_given(self):
        registry = Registry()
        op = operator("ex", "Op", registry=registry)(lambda x: x)
        model = cameo.load("""<ir_version: 8, opset_import: ["" : 17, "ex" : 1]>
                           g (float[N] x) => (float[N] y) { y = ex.Op(x) }""", registry=registry)
        op.gradient(lambda d_y: d_y)
        for wrong in (lambda dy: dy, lambda d_y, *, q: d_y, 5, "nonsense"):
            with self.assertRaises(cameo.Error):
                op.gradient(wrong)
        with self.assertRaisesRegex(cameo.ArgumentError, "takes 'dy'"):
            op.gradient(lambda dy: dy)
        with self.assertRaises(cameo.ArgumentError):
            op.gradient(lambda d_y: d_y, wrt=["q"])
        with self.assertRaisesRegex(cameo.ArgumentError, "inference function"):
            op.infer(("float32", None))
        with self.assertRaisesRegex(cameo.ArgumentError, "kernel"):
            op.kernel(None)
        x = numpy.float32([3])
        self.assertEqual(model.grad("y", "x").run(x=x)["gradient.x"].tolist(), [1])


class RunTest(unittest.TestCase):
    def test_numpys_false_ends_a_run(self):
        run = trainer()
        run.fit((X, X), epochs=5, batch_size=1, progress=False,
                callbacks=[callbacks.LambdaCallback(on_step=lambda state: numpy.bool_(state.step < 3))])
        self.assertEqual(run.steps, 3)

    def test_a_loss_that_is_not_a_number_stays_in_the_history(self):
        stop, seen = callbacks.EarlyStopping("val_loss", patience=2), []
        with tempfile.TemporaryDirectory() as folder:
            save = callbacks.Checkpoint(os.path.join(folder, "{epoch}-{val_loss}.onnx"))
            best = callbacks.Checkpoint(os.path.join(folder, "best.onnx"), monitor="val_loss")
            look = callbacks.LambdaCallback(on_epoch=lambda state: seen.append(state.values()["val_loss"]))
            history = trainer().fit((X, X), validate=(X, BAD), epochs=5, callbacks=[stop, save, best, look],
                                    progress=False)
            self.assertEqual(sorted(os.listdir(folder)), ["1-nan.onnx", "2-nan.onnx"])
        self.assertEqual(len(history.epochs), 2)
        self.assertEqual({len(values) for values in history.values()}, {2})
        self.assertTrue(all(map(math.isnan, history["val_loss"] + seen)))

    def test_lists_of_a_history_are_of_one_length(self):
        history = cameo.History()
        history.add_epoch(1, {"loss": 1.0}, {"loss": 2.0})
        history.add_epoch(2, {"loss": 1.0, "late": 5.0})
        self.assertEqual(str(history), "{'loss': [1.0, 1.0], 'val_loss': [2.0, nan], 'late': [nan, 5.0]}")

    def test_what_is_monitored_must_be_there(self):
        for wrong in (callbacks.EarlyStopping("nothing"), callbacks.Checkpoint("{nothing}.onnx"),
                      callbacks.Checkpoint("x.onnx", monitor="val_loss")):
            with self.assertRaisesRegex(cameo.ArgumentError, r"\bloss, lr\b"):
                trainer().fit((X, X), callbacks=[wrong], progress=False)

    def test_run_async_always_calls_back(self):
        session, done, told = cameo.InferenceSession(cameo.load(LINE)), threading.Event(), []

        def tell(*given):
            told.append(given)
            done.set()
        with self.assertRaisesRegex(cameo.ArgumentError, "input_feed is a list"):
            session.run_async(None, [X], tell, None)
        session.run_async(5, {"x": X}, tell, "user")
        self.assertTrue(done.wait(60))
        self.assertEqual(told[0][:2], ([], "user"))
        self.assertTrue(told[0][2])


MIXED = """<ir_version: 8, opset_import: ["" : 17]>
net (float[N] x) => (float[N] y) <int64[2] i = {1, 2}, bool[1] b = {1}, float[1] f = {1}, int8[1] s = {1}>
{ y = Mul(x, f) }"""


class AssignTest(unittest.TestCase):
    def test_nothing_but_precision_is_lost(self):
        values = cameo.load(MIXED).initializers
        for name, wrong in (("i", [1.7, 2]), ("i", ["3", "4"]), ("i", [None, 1]), ("i", numpy.uint64([2**63, 1])),
                            ("b", [5]), ("f", [None]), ("f", [1j]), ("f", numpy.array([1], object)), ("f", [1e300]),
                            ("s", [128]), ("s", [-129]), ("f", None), ("f", [[1], [2, 3]])):
            with self.subTest(name=name, wrong=wrong), self.assertRaisesRegex(cameo.ArgumentError, f"^initializer '{name}'"):
                values[name] = wrong
        self.assertEqual([values[name].tolist() for name in "ibfs"], [[1, 2], [True], [1], [1]])
        for name, right, after in (("i", [True, False], [1, 0]), ("f", numpy.float64([0.1]), numpy.float32([0.1])),
                                   ("f", [3], [3]), ("s", numpy.int64([-128]), [-128]), ("f", [math.inf], [math.inf]),
                                   ("i", numpy.uint8([1, 2]), [1, 2])):
            values[name] = right
            self.assertEqual(values[name].tolist(), list(after))

    def test_variables_and_parameters(self):
        run = trainer()
        for wrong in ([[1j]], [[None]], [["3"]], [[1e300]]):
            with self.assertRaisesRegex(cameo.ArgumentError, "variable 'w'"):
                run.variables["w"] = wrong
            with self.assertRaisesRegex(cameo.ArgumentError, "parameter 'w'"):
                run.parameters = {"w": wrong}
        with self.assertRaisesRegex(cameo.ArgumentError, "parameters is a list"):
            run.parameters = ["w"]
        run.parameters = {"w": numpy.float64([[2]])}
        self.assertEqual(run.variables["w"], 2)

    def test_several_initializers_at_once(self):
        model = cameo.load(MIXED)
        model.run(x=numpy.float32([1]))  # the session that it keeps does not make a copy necessary
        before = model._handle
        model.initializers.update({"f": [5], "i": [7, 8]})
        if getattr(sys, "_is_gil_enabled", lambda: True)():  # without the lock a copy is changed, always
            self.assertIs(model._handle, before)
        self.assertEqual(model.run(x=numpy.float32([1]))["y"], 5)
        with self.assertRaises(cameo.ArgumentError):
            model.initializers.update({"f": [6], "i": [1.5, 2]})
        self.assertEqual(model.initializers["f"], 5)
        with self.assertRaisesRegex(cameo.ArgumentError, "initializers is a list"):
            model.initializers.update(["f"])

    def test_names_that_are_not_there(self):
        run = trainer()
        self.assertNotIn("zz", run.variables)
        self.assertIsNone(run.variables.get("zz"))
        with self.assertRaisesRegex(cameo.NotFoundError, "no variable 'ww'; there is 'w'"):
            run.variables["ww"]
        self.assertIs(run.variables, run.variables)


class WrongArgumentTest(unittest.TestCase):
    def check(self, calls):
        for part, call in calls:
            with self.subTest(part), self.assertRaisesRegex(cameo.ArgumentError, part):
                call()

    def test_models(self):
        model = cameo.load(LINE)
        self.check([
            ("opset is '20', expected a whole number", lambda: model.upgrade("20")),
            ("opset is '20'", lambda: model.upgrade({"": "20"})),
            ("opset is 1.5", lambda: model.downgrade(1.5)),
            ("map is a list, expected a dict", lambda: cameo.merge(model, model, ["y"])),
            ("values is a list", lambda: model.rename(["x"])),
            ("map is a list", lambda: model.import_checkpoint("nothing.pt", map=["x"])),
            ("settings is a list", lambda: model.import_checkpoint("nothing.pt", settings=["x"])),
            ("registry is a int", lambda: cameo.load(LINE, registry=5)),
            ("freeze is a list, expected a regular expression", lambda: model.prepare("mse", freeze=["w"])),
            ("lr is '0.1', expected a number", lambda: model.prepare("mse", lr="0.1")),
            ("lr is nan", lambda: model.prepare("mse", lr=math.nan)),
            ("loss is a int", lambda: model.prepare(5)),
            ("accumulate is 0", lambda: model.prepare("mse", accumulate=0)),
            ("warmup is '1'", lambda: model.prepare("mse", warmup="1")),
            (r"inputs go by name: run\(x=", lambda: model.run(X)),
            (r"inputs go by name", lambda: model.run(5)),
            ("inputs is a list", lambda: model.run(["y"], [X])),
            ("input 'x' is None", lambda: model.run(x=None)),
            ("samples is 0", lambda: model.gradcheck(samples=0)),
            ("seed is -1", lambda: model.gradcheck(seed=-1)),
            ("seed is -1", lambda: model.make_inputs(seed=-1)),
            ("seed is -1", lambda: model.compare(model, seed=-1)),
            ("'N' is 'a'", lambda: model.costs(N="a"))])
        self.assertEqual(model.upgrade(numpy.int64(20)).opsets[""], 20)
        self.assertEqual(list(model.run(iter(["y"]), {"x": X})), ["y"])
        file = io.BytesIO(model.to_bytes())
        file.close()
        with self.assertRaisesRegex(cameo.FileError, "closed"):
            cameo.load(file)

    def test_sessions_and_trainers(self):
        model = cameo.load(LINE)
        run, trainable = trainer(), cameo.load(LINE).prepare("mse")
        self.check([
            ("outputs is a list", lambda: cameo.Session(model).run_into([X], {"x": X})),
            ("inputs is a list", lambda: cameo.Session(model).run_into({"y": X}, [X])),
            ("seed is -1", lambda: cameo.Session(model, seed=-1)),
            ("memory_limit is -1", lambda: cameo.Session(model, memory_limit=-1)),
            ("seed is -1", lambda: cameo.Trainer(trainable, seed=-1)),
            ("memory_limit is -1", lambda: cameo.Trainer(trainable, memory_limit=-1)),
            ("exclude each other", lambda: run.save("nothing.onnx", external=True, inline=True))])
        self.assertEqual(repr(cameo.Session(model)), "<cameo.Session x: float[N,1] -> y: float[N,1]>")
        self.assertRegex(repr(run), r"<cameo.Trainer of x: float\[\?,1\], .* variables, 0 steps>")
        self.assertIn("NodeArg(name='x'", repr(cameo.InferenceSession(model)))

    def test_fit(self):
        run = trainer()
        for part, options in (
                ("resume is 'anywhow'", {"resume": "anywhow"}), ("progress is 'nope'", {"progress": "nope"}),
                ("shuffle is 'no'", {"shuffle": "no"}), ("epochs and steps", {"epochs": 2, "steps": 3}),
                ("target is for data in files", {"target": "zz"}), ("columns is for", {"columns": "a"}),
                ("seed is -1", {"seed": -1}), ("epochs is '3'", {"epochs": "3"})):
            with self.subTest(options), self.assertRaisesRegex(cameo.ArgumentError, part):
                run.fit((X, X), **options)
        self.assertEqual(run.steps, 0)
        seen = []
        look = callbacks.LambdaCallback(on_epoch=lambda state: seen.append(state.epoch))
        run.fit((X, X), epochs=None, keep=None, callbacks=None, progress=False)
        run.fit((X, X), epochs=numpy.int64(2), callbacks=look, progress=False)
        self.assertEqual((run.steps, len(seen)), (3, 2))

    def test_tensors_that_require_gradients(self):
        class Tensor(numpy.ndarray):
            requires_grad = True
        tensor, run = X.view(Tensor), trainer()
        self.check([("'x' is a tensor that requires gradients", lambda: run.fit((tensor, X), progress=False)),
                    ("'target' is a tensor", lambda: run.fit([(X, tensor)], progress=False)),
                    ("'x' is a tensor", lambda: run.fit({"x": tensor, "target": X}, progress=False)),
                    ("'x' is a tensor", lambda: run.step(x=tensor, target=X))])

    def test_backend(self):
        if importlib.util.find_spec("onnx") is None:
            self.skipTest("onnx is not installed")
        model = cameo.load("""<ir_version: 8, opset_import: ["" : 17]>
                           g (int64[N] x, bool[N] b) => (int64[N] y) { y = Where(b, x, x) }""")
        ready = cameo.backend.prepare(model)
        self.assertEqual(ready.run([[1, 2], [True, False]])[0].tolist(), [1, 2])
        self.check([("input 'x' .* float64", lambda: ready.run([[1.7], [True]])),
                    ("input 'b' .* int64", lambda: ready.run([[1], [5]])),
                    ("input 'x'", lambda: ready.run([["3"], [True]]))])

    def test_checkpoints(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.pt")
            cameo.load(LINE).prepare("mse", "adam").export_checkpoint(path, "pytorch")
            model = cameo.load(LINE)
            self.check([("does not say the loss: give loss=", lambda: model.import_checkpoint(path))])
            for part, options in (("^settings=: there is no setting 'zz'", {"settings": {"zz": 1}}),
                                  ("^map=, line 1", {"map": {"zz": "w"}, "loss": "mse"})):
                with self.assertRaisesRegex(cameo.UnsupportedError, part):
                    model.import_checkpoint(path, **options)
            with self.assertRaisesRegex(cameo.NotFoundError, "no tensor 'ww'; there is 'w'"):
                cameo.checkpoint(path).tensors["ww"]

    def test_merge_unites_registries(self):
        parts = []
        for name, value in (("A", 2), ("B", 3), ("A", 5)):
            registry = Registry()
            operator("ex", name, inputs=["x"], registry=registry)(lambda x, value=value: x * numpy.float32(value))
            parts.append(cameo.load(f"""<ir_version: 8, opset_import: ["" : 17, "ex" : 1]>
                                    g (float[N] x) => (float[N] y) {{ y = ex.{name}(x) }}""", registry=registry))
        both = cameo.merge(parts[0], parts[1], {"y": "x"}, prefix1="a_", prefix2="b_")
        self.assertEqual(both.run(a_x=numpy.float32([1]))["b_y"], 6)
        with self.assertRaisesRegex(cameo.ArgumentError, "registries of the two models differ in ex.A"):
            cameo.merge(parts[0], parts[2], {"y": "x"}, prefix1="a_", prefix2="b_")


class ModuleTest(unittest.TestCase):
    def test_small_functions_of_onnx_runtime(self):
        self.assertEqual(cameo.get_version_string(), cameo.__version__)
        self.assertIn(cameo.__version__, cameo.get_build_info())
        self.assertFalse(cameo.has_collective_ops())
        for nothing in (cameo.enable_telemetry_events, cameo.disable_telemetry_events, cameo.preload_dlls):
            self.assertIsNone(nothing())

    def test_modules_are_attributes(self):
        code = """import sys, cameo
assert "numpy" not in sys.modules
cameo.operators.Registry, cameo.capi.onnxruntime_pybind11_state.Fail, cameo.callbacks.Callback, cameo.training.api
for name in ("backend", "torch", "sklearn"):
    try:
        assert getattr(cameo, name).__name__ == "cameo." + name
    except ImportError:
        pass  # of a package that is not installed
try:
    cameo.nothing
except AttributeError:
    print("fine")"""
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.stdout.strip(), "fine")


if __name__ == "__main__":
    unittest.main()
