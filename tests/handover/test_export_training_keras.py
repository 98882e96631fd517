# cameo.keras.export_training against Keras itself, with its torch backend.
# SPDX-License-Identifier: Apache-2.0
"""A model is trained by Keras for some steps and exported. The next 8 losses of the file are those of Keras."""

import logging
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy
import torch
from keras import layers, losses, optimizers

import cameo
import cameo.keras

warnings.filterwarnings("ignore")
logging.getLogger("torch").setLevel(logging.CRITICAL)
torch.set_num_threads(1)
BATCH, CLASSES, BEFORE, STEPS, TOLERANCE = 8, 5, 5, 8, 2e-5
SPARSE = losses.SparseCategoricalCrossentropy(from_logits=True)


def mlp(last=None, outputs=CLASSES):
    return keras.Sequential([keras.Input((12,), name="x"), layers.Dense(16, activation="tanh"), layers.LayerNormalization(),
                             layers.Dense(outputs, activation=last)])


def cnn(dropout=0.0):
    x = keras.Input((8, 8, 3), name="x")
    h = layers.BatchNormalization(momentum=0.9)(layers.Conv2D(6, 3, padding="same", activation="relu")(x))
    h = layers.MaxPooling2D()(layers.BatchNormalization()(layers.Conv2D(8, 3, strides=1)(h)))
    return keras.Model(x, layers.Dense(CLASSES)(layers.Dropout(dropout)(layers.GlobalAveragePooling2D()(h))))


def transformer():
    tokens = keras.Input((7,), dtype="int32", name="x")
    h = layers.Embedding(30, 16)(tokens)
    h = layers.LayerNormalization()(h + layers.MultiHeadAttention(2, 8)(h, h))
    h = layers.LayerNormalization()(h + layers.Dense(16)(layers.Dense(32, activation="gelu")(h)))
    return keras.Model(tokens, layers.Dense(CLASSES)(layers.GlobalAveragePooling1D()(h)))


def floats(random, *shape):
    return random.standard_normal((BATCH, *shape)).astype("float32")


def classes(random):
    return random.integers(0, CLASSES, BATCH).astype("int64")


class Losses(unittest.TestCase):
    def check(self, model, draw, labels, loss, optimizer, before=BEFORE):
        random = numpy.random.default_rng(2)
        model.compile(optimizer, loss)
        batches = [(draw(random), labels(random)) for _ in range(before + STEPS)]
        for x, y in batches[:before]:
            model.train_on_batch(x, y)
        made = cameo.keras.export_training(model, batches[0][0], example_target=batches[0][1])
        own = []
        for x, y in batches[before:]:
            model.reset_metrics()
            own.append(float(model.train_on_batch(x, y)))
        trainer = cameo.Trainer(made, threads=1)
        got = [trainer.step({"x": x, "target": y}) for x, y in batches[before:]]
        numpy.testing.assert_allclose(got, own, TOLERANCE)
        return made

    def setUp(self):
        keras.utils.set_random_seed(4)

    def images(self, random):
        return floats(random, 8, 8, 3)

    def rows(self, random):
        return floats(random, 12)

    def test_mlp_adam(self):
        self.check(mlp(), self.rows, classes, SPARSE, optimizers.Adam(3e-3))

    def test_mlp_fresh(self):
        self.check(mlp(), self.rows, classes, SPARSE, optimizers.Adam(3e-3), before=0)

    def test_cnn_sgd_nesterov(self):
        self.check(cnn(), self.images, classes, SPARSE, optimizers.SGD(0.02, momentum=0.9, nesterov=True))

    def test_transformer_adamw_clipped(self):
        self.check(transformer(), lambda random: random.integers(0, 30, (BATCH, 7)).astype("int32"), classes, SPARSE,
                   optimizers.AdamW(2e-3, weight_decay=0.02, global_clipnorm=0.5))

    def test_cosine(self):
        self.check(mlp(), self.rows, classes, SPARSE,
                   optimizers.Adam(optimizers.schedules.CosineDecay(3e-3, 20, warmup_target=5e-3, warmup_steps=6)))

    def test_probabilities(self):
        self.check(mlp("softmax"), self.rows, classes, "sparse_categorical_crossentropy", optimizers.RMSprop(1e-3))

    def test_softmax_under_a_loss_of_scores(self):
        self.check(mlp("softmax"), self.rows, classes, SPARSE, optimizers.Adam(3e-3))

    def test_one_hot(self):
        self.check(mlp(), self.rows, lambda random: numpy.eye(CLASSES, dtype="float32")[classes(random)],
                   losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1), optimizers.Adam(3e-3))

    def test_mse(self):
        self.check(mlp(outputs=3), self.rows, lambda random: floats(random, 3), "mse", optimizers.SGD(0.05))

    def test_huber(self):
        self.check(mlp(outputs=3), self.rows, lambda random: floats(random, 3), losses.Huber(0.4), optimizers.Adam(3e-3))

    def test_binary(self):
        self.check(mlp("sigmoid", 1), self.rows, lambda random: random.integers(0, 2, (BATCH, 1)).astype("float32"),
                   "binary_crossentropy", optimizers.Adam(3e-3))

    def test_frozen_layers(self):
        model = cnn()
        model.layers[1].trainable = False
        model.layers[2].trainable = False
        self.check(model, self.images, classes, SPARSE, optimizers.Adam(3e-3))


class Models(unittest.TestCase):
    def test_dropout_is_there_and_the_file_is_whole(self):
        model = cnn(0.3)
        model.compile("adam", SPARSE)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            made = cameo.keras.export_training(model, numpy.zeros((1, 8, 8, 3), "float32"), path)
            self.assertEqual(sum(node.op_type == "Dropout" for node in made.nodes), 1)
            self.assertEqual(sum(node.op_type == "BatchNormalization" for node in made.nodes), 2)
            self.assertEqual(len(cameo.load(path).training), 1)
        numpy.testing.assert_allclose(made.run(None, {"x": numpy.ones((3, 8, 8, 3), "float32")})[made.outputs[0].name],
                                      model.predict(numpy.ones((3, 8, 8, 3)), verbose=0), 1e-4, 1e-5)

    def test_all_reasons_at_once(self):
        model = keras.Sequential([keras.Input((3,)), layers.Dense(2, kernel_regularizer="l2", bias_constraint="non_neg")])
        model.compile(optimizers.Adam(use_ema=True), "mse")
        with self.assertRaisesRegex(cameo.UnsupportedError, r"for 3 reasons(.|\n)*regularizers(.|\n)*constraint(.|\n)*use_ema"):
            cameo.keras.export_training(model, numpy.zeros((2, 3), "float32"))
        with self.assertRaisesRegex(cameo.ArgumentError, "not a compiled model"):
            cameo.keras.export_training(mlp(), numpy.zeros((2, 12), "float32"))

    def test_another_backend_is_told_what_to_do(self):
        code = ("import keras.backend as b; b.backend = lambda: 'jax'\nimport cameo\n"
                "try:\n    cameo.keras\nexcept ImportError as error:\n    print(error)")
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn("the backend 'jax': set KERAS_BACKEND=torch", done.stdout, done.stderr)


if __name__ == "__main__":
    unittest.main()
