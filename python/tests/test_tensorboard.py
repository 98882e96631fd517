# SPDX-License-Identifier: Apache-2.0
"""Event files, read back by TensorBoard's own reader."""

import os
import tempfile
import threading
import unittest

import numpy

import cameo
import cameo.callbacks

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
except ImportError:
    EventAccumulator = None


def read(folder):
    """Scalars by tag, as (step, value); texts by tag."""
    found = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
    found.Reload()
    tags = found.Tags()
    return ({tag: [(event.step, event.value) for event in found.Scalars(tag)] for tag in tags["scalars"]},
            {tag: [event.tensor_proto.string_val[0].decode() for event in found.Tensors(tag)]
             for tag in tags["tensors"]})


@unittest.skipIf(EventAccumulator is None, "tensorboard is not installed")
class ReaderTest(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = os.path.join(place.name, "runs", "a")

    def test_scalars_and_texts(self):
        with cameo.EventWriter(self.folder) as events:
            for step in range(300):
                events.scalar("train/loss", 1 / (step + 1), step)
            events.scalar("train/größe", float("nan"), 1)
            events.text("settings", "| lr | 0.1 |\n" * 100, 2)
        scalars, texts = read(self.folder)
        self.assertEqual(scalars["train/loss"],
                         [(step, float(numpy.float32(1 / (step + 1)))) for step in range(300)])
        self.assertTrue(numpy.isnan(scalars["train/größe"][0][1]))
        self.assertEqual(texts, {"settings": ["| lr | 0.1 |\n" * 100]})

    def test_wall_times_and_version(self):
        with cameo.EventWriter(self.folder) as events:
            events.scalar("a", 1, 5, time=1234.5)
        loaded = list(EventFileLoader(events.path).Load())
        self.assertEqual(loaded[0].file_version, "brain.Event:2")
        self.assertEqual((loaded[1].wall_time, loaded[1].step), (1234.5, 5))
        self.assertEqual(loaded[1].summary.value[0].metadata.plugin_data.plugin_name, "scalars")

    def test_points_are_there_at_once(self):
        events = cameo.EventWriter(self.folder)
        events.scalar("a", 1, 1)
        self.assertEqual(read(self.folder)[0], {"a": [(1, 1.0)]})
        events.scalar("a", 2, 2)
        self.assertEqual(read(self.folder)[0], {"a": [(1, 1.0), (2, 2.0)]})

    def test_a_file_that_was_cut(self):
        with cameo.EventWriter(self.folder) as events:
            events.scalar("a", 1, 1)
            events.scalar("a", 2, 2)
        with open(events.path, "r+b") as file:
            file.truncate(os.path.getsize(events.path) - 3)
        self.assertEqual(read(self.folder)[0], {"a": [(1, 1.0)]})

    def test_going_on_replaces_later_points(self):
        with cameo.EventWriter(self.folder) as events:
            for step in range(1, 9):
                events.scalar("a", step, step)
        with cameo.EventWriter(self.folder) as events:
            events.resume(5)
            for step in range(5, 8):
                events.scalar("a", -step, step)
        self.assertEqual(read(self.folder)[0]["a"],
                         [(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0), (5, -5.0), (6, -6.0), (7, -7.0)])

    def test_threads(self):
        events = cameo.EventWriter(self.folder)

        def write(tag):
            for step in range(500):
                events.scalar(tag, step, step)

        threads = [threading.Thread(target=write, args=(f"t{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        events.close()
        scalars = read(self.folder)[0]
        self.assertEqual({tag: len(points) for tag, points in scalars.items()}, {f"t{i}": 500 for i in range(4)})


NET = """<ir_version: 8, opset_import: ["" : 17]>
net (float[N, 2] x) => (float[N, 3] y) <float[2, 3] w = {1, 0, 0, 0, 1, 0}> { y = MatMul(x, w) }"""


@unittest.skipIf(EventAccumulator is None, "tensorboard is not installed")
class CallbackTest(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder, self.checkpoints = os.path.join(place.name, "a"), os.path.join(place.name, "ck")
        rng = numpy.random.default_rng(0)
        self.x = rng.normal(size=(12, 2)).astype("float32")
        self.labels = rng.integers(0, 3, 12)

    def fit(self, epochs, callbacks, **more):
        model = cameo.load(NET).prepare(loss="cross-entropy", optimizer="sgd", lr=0.1)
        trainer = cameo.Trainer(model, threads=1)
        trainer.fit((self.x, self.labels), epochs=epochs, batch_size=4, validate=(self.x, self.labels), progress=False,
                    callbacks=callbacks, **more)
        return trainer

    def test_curves_of_fit(self):
        callback = cameo.callbacks.TensorBoard(self.folder, settings={"lr": 0.1})
        watched = self.fit(3, [callback])
        scalars, texts = read(self.folder)
        self.assertEqual([step for step, _ in scalars["train/loss"]], list(range(1, 10)))
        for tag in ("epoch/loss", "val/loss", "val/accuracy"):
            self.assertEqual([step for step, _ in scalars[tag]], [3, 6, 9], tag)
        history = watched.history
        numpy.testing.assert_allclose([value for _, value in scalars["val/loss"]], history["val_loss"], rtol=1e-6)
        self.assertIn("| lr | 0.1 |", texts["settings"][0])
        plain = self.fit(3, [])
        self.assertEqual(plain.variables["w"].tobytes(), watched.variables["w"].tobytes())

    def test_every_so_many_steps(self):
        self.fit(3, [cameo.callbacks.TensorBoard(self.folder, every=4)])
        self.assertEqual([step for step, _ in read(self.folder)[0]["train/loss"]], [4, 8, 9])

    def test_a_run_that_is_resumed(self):
        self.fit(1, [cameo.callbacks.TensorBoard(self.folder)], checkpoint=self.checkpoints)
        self.fit(3, [cameo.callbacks.TensorBoard(self.folder)], checkpoint=self.checkpoints, resume=True)
        self.assertEqual(len(os.listdir(self.folder)), 2)
        self.assertEqual([step for step, _ in read(self.folder)[0]["train/loss"]], list(range(1, 10)))

    def test_a_folder_that_cannot_be_written(self):
        with open(self.folder, "w"):
            pass
        with self.assertRaisesRegex(cameo.FileError, "Not a directory"):
            self.fit(1, [cameo.callbacks.TensorBoard(self.folder)])


class RefusalTest(unittest.TestCase):
    def test_what_cannot_be_written(self):
        with tempfile.TemporaryDirectory() as folder:
            events = cameo.EventWriter(folder)
            with self.assertRaisesRegex(cameo.ArgumentError, "tag"):
                events.scalar("", 1, 1)
            with self.assertRaisesRegex(cameo.ArgumentError, "step -1"):
                events.scalar("a", 1, -1)
            with self.assertRaises(TypeError):
                events.scalar("a", 1, "x")
            with self.assertRaises(ValueError):
                events.scalar("a\0b", 1, 1)
            with self.assertRaisesRegex(cameo.FileError, "Not a directory"):
                cameo.EventWriter(events.path)
            events.close()
            events.close()
            with self.assertRaisesRegex(ValueError, "closed"):
                events.scalar("a", 1, 1)


if __name__ == "__main__":
    unittest.main()
