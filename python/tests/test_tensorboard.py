# SPDX-License-Identifier: Apache-2.0
"""Event files, read back by TensorBoard's own reader."""

import os
import tempfile
import threading
import unittest

import numpy

import cameo

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
