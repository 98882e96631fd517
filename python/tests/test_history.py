# SPDX-License-Identifier: Apache-2.0
"""Histories and their pictures."""

import math
import os
import re
import tempfile
import unittest
import xml.etree.ElementTree

import cameo

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
        curves = [path for group in root.findall(SVG + "g") for path in group.findall(SVG + "path")]
        self.assertEqual(len(curves), 4)
        width, height = float(root.get("width")), float(root.get("height"))
        for curve in curves:
            points = re.findall(r"[ML]([^ ML]+) ([^ ML]+)", curve.get("d"))
            self.assertEqual(len(points), 5)
            for x, y in points:
                self.assertTrue(0 <= float(x) <= width and 0 <= float(y) <= height)
        texts = [(text.text or "").strip() for text in root.iter(SVG + "text")]
        for name in ("loss", "val_loss", "accuracy", "val_accuracy", "lr", "epoch"):
            self.assertIn(name, texts)
        self.assertEqual(len(root.findall(SVG + "clipPath")), 3)  # loss, accuracy, lr
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
        self.assertIn('<loss> & "more"', [(text.text or "").strip() for text in root.iter(SVG + "text")])
        history = cameo.History()
        history.add_step(1, {"loss": 1.0})
        self.assertEqual(len(xml.etree.ElementTree.fromstring(history.plot()).findall(f"{SVG}g/{SVG}circle")), 1)


if __name__ == "__main__":
    unittest.main()
