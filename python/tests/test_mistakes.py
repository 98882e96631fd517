# SPDX-License-Identifier: Apache-2.0
"""What a user gets wrong is told where it is given, by an exception of cameo's that says what is expected."""

import math
import os
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


if __name__ == "__main__":
    unittest.main()
