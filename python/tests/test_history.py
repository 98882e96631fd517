# SPDX-License-Identifier: Apache-2.0
"""Histories and their pictures."""

import math
import os
import tempfile
import unittest
import xml.etree.ElementTree

import cameo
from cameo._history import ticks

SVG = "{http://www.w3.org/2000/svg}"


class HistoryTest(unittest.TestCase):
    def history(self):
        history = cameo.History()
        for epoch in range(1, 6):
            for step in range(4):
                history.add_step(4 * epoch - 3 + step, {"loss": 1 / epoch, "lr": 0.1})
            history.add_epoch(epoch, {"loss": 1 / epoch, "lr": 0.1}, {"samples": 9, "loss": 2 / epoch, "accuracy": 0.5})
        return history

    def test_lists_by_name(self):
        history = self.history()
        self.assertEqual(list(history), ["loss", "lr", "val_loss", "val_accuracy"])
        self.assertEqual(history["val_loss"], [2 / epoch for epoch in range(1, 6)])
        self.assertEqual(len(history.steps["loss"]), 20)
        self.assertEqual(history.epochs, [1, 2, 3, 4, 5])

    def test_pictures(self):
        history = self.history()
        root = xml.etree.ElementTree.fromstring(history.plot())
        lines = root.findall(SVG + "polyline")
        self.assertEqual(len(lines), 4)
        self.assertEqual({len(line.get("points").split()) for line in lines}, {5})
        width, height = float(root.get("width")), float(root.get("height"))
        for line in lines:
            for point in line.get("points").split():
                x, y = map(float, point.split(","))
                self.assertTrue(0 <= x <= width and 0 <= y <= height)
        texts = [text.text for text in root.findall(SVG + "text")]
        for name in ("loss", "val_loss", "accuracy", "val_accuracy", "lr"):
            self.assertIn(name, texts)
        self.assertEqual(history._repr_svg_(), history.plot())
        self.assertEqual(history._repr_html_(), history.plot())

    def test_written_to_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "curves.svg")
            svg = self.history().plot(path)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), svg)

    def test_odd_numbers_and_names(self):
        history = cameo.History()
        self.assertTrue(history.plot().startswith("<svg"))
        for epoch, value in enumerate((math.nan, 1.0, math.inf, 2.0, 3.0, -math.inf, 1e300), 1):
            history.add_epoch(epoch, {"<loss> & \"more\"": value, "same": 0.0, "one": 7.5})
        root = xml.etree.ElementTree.fromstring(history.plot())
        self.assertIn('<loss> & "more"', [text.text for text in root.findall(SVG + "text")])
        history = cameo.History()
        history.add_step(1, {"loss": 1.0})
        self.assertEqual(len(xml.etree.ElementTree.fromstring(history.plot()).findall(SVG + "circle")), 1)

    def test_ticks(self):
        for low, high in ((0, 1), (-3, 7), (1e-9, 2e-9), (5, 5), (1e300, 2e300), (0.1234, 0.1235)):
            marks = ticks(low, high)
            self.assertTrue(1 <= len(marks) <= 6, (low, high, marks))
            self.assertTrue(all(low - 1e-6 * abs(low) <= mark <= high + 1e-6 * abs(high) for mark in marks))


if __name__ == "__main__":
    unittest.main()
