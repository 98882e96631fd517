# SPDX-License-Identifier: Apache-2.0
"""Data in its forms: files, arrays, iterables; evaluating and predicting over it."""

import collections
import os
import resource
import tempfile
import unittest

import numpy

import cameo
from test_trainer import mlp, samples


class FormTest(unittest.TestCase):
    def setUp(self):
        self.x, self.y = samples(40)
        self.model = mlp("adam", lr=0.01)

    def fit(self, data, **options):
        trainer = cameo.Trainer(self.model, threads=1)
        trainer.fit(data, shuffle=False, batch_size=10, **{"epochs": 2, **options})
        return {name: value.tobytes() for name, value in trainer.variables.items()}

    def batches(self, form=lambda x, y: (x, y)):
        return [form(self.x[i:i + 10], self.y[i:i + 10]) for i in range(0, 40, 10)]

    def test_all_forms_train_alike(self):
        pair = collections.namedtuple("pair", "x target")
        expected = self.fit({"x": self.x, "target": self.y})
        wide = numpy.zeros((40, 7), numpy.float32)
        wide[:, :4] = self.x
        big = self.x.astype(">f4")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "data.npz")
            numpy.savez(path, x=self.x, target=self.y)
            forms = {
                "path": path, "tuple": (self.x, self.y), "any name": {"x": self.x, "labels": self.y},
                "fortran": (numpy.asfortranarray(self.x), self.y), "strides": (wide[:, :4], self.y),
                "backwards": (self.x[::-1].copy()[::-1], self.y), "big-endian": (big, self.y),
                "other types": (self.x.astype(numpy.float64), self.y.astype(numpy.int8)),
                "list of tuples": self.batches(), "list of lists": self.batches(lambda x, y: [x, y]),
                "list of dicts": self.batches(lambda x, y: {"target": y, "x": x, "more": 1}),
                "objects": self.batches(pair), "function": lambda epoch: iter(self.batches()),
                "other types in batches": self.batches(lambda x, y: (x.astype(float), y.astype(numpy.int32))),
            }
            for name, data in forms.items():
                with self.subTest(name):
                    self.assertEqual(self.fit(data), expected)
        self.assertEqual(self.fit(iter(self.batches()), epochs=1), self.fit((self.x, self.y), epochs=1))

    def test_memory_is_not_copied(self):
        rows = 6_000_000
        x, y = numpy.ones((rows, 4), numpy.float32), numpy.zeros(rows, numpy.int64)
        trainer = cameo.Trainer(self.model, threads=1)
        trainer.fit((self.x, self.y), steps=1)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        trainer.fit((x, y), steps=3)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # kilobytes
        self.assertLess(grown * 1024, (x.nbytes + y.nbytes) // 4)

    def test_arrays_live_as_long_as_they_are_needed(self):
        def batches(epoch):
            for i in range(0, 40, 10):
                yield numpy.array(self.x[i:i + 10]), numpy.array(self.y[i:i + 10])
        self.assertEqual(self.fit(batches), self.fit((self.x, self.y)))

    def test_refusals(self):
        bad = [(5, "expected a path, arrays"), ("nowhere.npz", "there is no such file"),
               ({"x": self.x}, "no array for input 'target'"), ((self.x, self.y[:7]), "samples"),
               ((self.x, self.y, self.y), "3 arrays, but there are 2 inputs"), ({}, "no arrays"),
               (({"x": 1}, self.y), ""), ((numpy.float32(3), self.y), "single number"),
               ((self.x[:0], self.y[:0]), "no samples"), ((self.x, self.y + 50), "label|class"),
               ((numpy.array(["a"] * 40), self.y), "text"), ((self.x[:, :2], self.y), "takes"),
               ([], "no batches"), ([()], "0 arrays"), ([(self.x, self.y, 1)], "3 arrays"), ([5], "a batch is a int"),
               ([(self.x[:0], self.y[:0])], "no rows"), ([(self.x, self.y[:3])], ""), ([{"x": self.x}], "missing"),
               (iter(self.batches()), "read only once")]
        for data, reason in bad:
            with self.subTest(str(data)[:60]), self.assertRaisesRegex((cameo.Error, TypeError), reason):
                self.fit(data)

    def test_a_generator_is_good_for_one_epoch_only(self):
        trainer = cameo.Trainer(self.model, threads=1)
        with self.assertRaisesRegex(cameo.ArgumentError, "epoch 2 has no batches"):
            trainer.fit(iter(self.batches()), epochs=2)
        self.assertEqual(trainer.steps, 4)

    def test_samplers_hear_of_the_epoch(self):
        class Loader(list):
            heard = []

            def set_epoch(self, epoch):
                self.heard.append(epoch)
        self.fit(Loader(self.batches()), epochs=3)
        self.assertEqual(Loader.heard, [0, 1, 2])

    def test_steps_of_an_iterable(self):
        trainer = cameo.Trainer(self.model, threads=1)
        seen = []
        trainer.fit(self.batches(), steps=6, validate=self.batches(),
                    callbacks=[cameo.callbacks.LambdaCallback(on_step=lambda state: seen.append(state.steps))])
        # Four batches are an epoch: it is validated after the first and where the steps end.
        self.assertEqual((trainer.steps, seen[0], trainer.history.epochs), (6, 6, [1, 2]))
        trainer.fit(self.batches(), steps=4, validate=self.batches())
        self.assertEqual(trainer.history.epochs, [1])


class StreamTest(unittest.TestCase):
    def setUp(self):
        self.x, self.y = samples(41)
        self.model = mlp()

    def test_evaluate(self):
        scores = self.model.run(x=self.x)["y"]
        accuracy = float((scores.argmax(1) == self.y).mean())
        for data in ((self.x, self.y), {"x": self.x, "anything": self.y}):
            found = self.model.evaluate(data, metrics=["accuracy", "confusion"], batch_size=10)
            self.assertAlmostEqual(found["accuracy"], accuracy)
            self.assertEqual(found.samples, 41)
            self.assertEqual(int(found.confusion.trace()), round(accuracy * 41))
            self.assertEqual(int(found.confusion.sum()), 41)
        self.assertIn("loss", self.model.evaluate((self.x, self.y)))
        with self.assertRaises(cameo.Error):
            self.model.evaluate((self.x, self.y), metrics="nothing")
        with self.assertRaises(cameo.Error):
            self.model.evaluate([(self.x, self.y)])

    def test_predict(self):
        expected = self.model.run(x=self.x)["y"]
        for data in (self.x, (self.x,), {"x": self.x}, {"x": self.x, "unused": self.y}):
            got = self.model.predict(data, batch_size=10)
            self.assertEqual(list(got), ["y"])
            numpy.testing.assert_allclose(got["y"], expected, rtol=1e-5, atol=1e-6)
        self.assertEqual(list(self.model.predict(self.x, outputs=["y"])), ["y"])
        with self.assertRaisesRegex(cameo.NotFoundError, "no output 'z'"):
            self.model.predict(self.x, outputs="z")
        with self.assertRaises(cameo.Error):
            self.model.predict({"z": self.y})


if __name__ == "__main__":
    unittest.main()
