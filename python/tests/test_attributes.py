# SPDX-License-Identifier: Apache-2.0
"""No object of the package takes an attribute that nothing reads, and the learning rate can be set or says why not."""

import unittest

import numpy

import cameo

LINE = """<ir_version: 8, opset_import: ["" : 17]>
line (float[N,3] x) => (float[N,3] y) <float[3,3] w = {0,1,2,3,4,5,6,7,8}, float r = {0.5}> {
   a = MatMul(x, w) y = Dropout(a, r) }"""
DECAYING = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]>
line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {0}> { y = MatMul(x, w) }
training {
   algorithm: step (float[N,1] target) => (float loss, float[1,1] next, float less) <float lr = {0.5}, float half = {0.5}> {
      d = Sub(y, target) s = Mul(d, d) loss = ReduceMean<keepdims = 0>(s)
      g = ai.onnx.preview.training.Gradient<xs = ["w"], zs = ["x", "target"], y = "loss">(w, x, target)
      move = Mul(lr, g) next = Sub(w, move) less = Mul(lr, half) },
   update_binding: ["w": "next", "lr": "less"]
}"""
X = numpy.ones((4, 3), numpy.float32)


def trainer(**options):
    model = cameo.load(LINE).prepare(loss="mse", optimizer="adam", lr=0.5, **options)
    return cameo.Trainer(model, seed=3, gradients=False)


class AttributeTest(unittest.TestCase):
    def objects(self):
        model = cameo.load(LINE)
        trained = trainer()
        yield from (model, model.initializers, model.graph, cameo.Session(model), trained, trained.variables,
                    trained.history, trained.model.training[0], cameo.callbacks.EarlyStopping(),
                    cameo.callbacks.ProgressBar(), cameo.Registry(), cameo.InferenceSession(model.to_bytes()),
                    cameo.SessionOptions(), cameo.RunOptions(), model.inputs[0], model.graph.nodes[0], model.summary,
                    cameo.OrtValue.ortvalue_from_numpy(X))

    def test_unknown_ones_are_refused(self):
        for made in self.objects():
            with self.subTest(type(made).__name__):
                with self.assertRaisesRegex(AttributeError, "learning"):
                    made.learning = 1
                self.assertFalse(hasattr(made, "learning"))

    def test_the_nearest_one_is_named(self):
        with self.assertRaisesRegex(AttributeError, "cameo.Trainer has no attribute 'gradient'; there is 'gradients'"):
            trainer().gradient = {}

    def test_classes_of_users_have_what_they_like(self):
        class Mine(cameo.callbacks.Callback):
            def on_step(self, state):
                self.seen = getattr(self, "seen", 0) + 1

        mine = Mine()
        trainer().fit((X, X), epochs=1, batch_size=2, progress=False, callbacks=mine)
        self.assertEqual(mine.seen, 2)


class RateTest(unittest.TestCase):
    def test_is_that_of_the_steps_that_follow(self):
        made = trainer()
        self.assertIsNone(made.lr)
        made.step(x=X, target=X)
        self.assertEqual(made.lr, 0.5)
        made.lr = 0.0
        before = made.variables["w"]
        made.step(x=X, target=X)
        self.assertEqual((made.lr, made.scalars["lr"], made.steps), (0.0, 0.0, 2))
        numpy.testing.assert_array_equal(made.variables["w"], before)

    def test_changes_nothing_else(self):
        def losses(at):
            made, got = trainer(), []
            for i in range(6):
                if i == at:
                    made.lr = 0.5
                got.append(made.step(x=X, target=X))
            return got
        self.assertEqual(losses(3), losses(None))

    def test_of_a_variable(self):
        made = cameo.Trainer(cameo.load(DECAYING))
        x = numpy.ones((2, 1), numpy.float32)
        self.assertEqual(made.lr, 0.5)
        made.step(x=x, target=x)
        self.assertEqual(made.lr, 0.25)
        made.lr = 0.0
        before = made.variables["w"]
        made.step(x=x, target=3 * x)
        numpy.testing.assert_array_equal(made.variables["w"], before)

    def test_of_a_schedule_raises(self):
        with self.assertRaisesRegex(cameo.UnsupportedError, "schedule= and warmup= of Model.prepare"):
            trainer(schedule="cosine", schedule_steps=10).lr = 0.1

    def test_falls_on_a_plateau(self):
        made = trainer(schedule="plateau", schedule_patience=0, schedule_factor=0.5)
        for loss, rate in ((1.0, 0.5), (0.9, 0.5), (0.9, 0.25)):
            made.add_validation(loss)
            made.step(x=X, target=X)
            self.assertEqual(made.lr, rate)
        with self.assertRaisesRegex(cameo.ArgumentError, "schedule 'plateau'"):
            trainer().add_validation(1)

    def test_must_be_a_number_and_no_run_be_on(self):
        made = trainer()
        with self.assertRaisesRegex(cameo.ArgumentError, "lr is nan"):
            made.lr = float("nan")
        failures = []

        def change(state):
            try:
                state.trainer.lr = 0.1
            except cameo.Error as error:
                failures.append(str(error))
        made.fit((X, X), steps=1, batch_size=4, progress=False, callbacks=cameo.callbacks.LambdaCallback(on_step=change))
        self.assertIn("while fit runs", failures[0])


if __name__ == "__main__":
    unittest.main()
