# cameo.jax.export_training against JAX itself.
# SPDX-License-Identifier: Apache-2.0
"""A function is trained by optax for some steps and exported. The next 8 losses of the file are those of JAX."""

import os
import unittest

os.environ["JAX_PLATFORMS"] = "cpu"

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy
import optax

import cameo
import cameo.jax

BATCH, CLASSES, BEFORE, STEPS, TOLERANCE = 8, 5, 5, 8, 1e-5


class Mlp(nn.Module):
    outputs: int = CLASSES

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.outputs)(nn.LayerNorm()(nn.relu(nn.Dense(16)(x))))


class Cnn(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.max_pool(nn.relu(nn.Conv(6, (3, 3))(x)), (2, 2), (2, 2))
        x = nn.avg_pool(nn.relu(nn.Conv(8, (3, 3), padding="VALID", use_bias=False)(x)), (2, 2), (1, 1))
        return nn.Dense(CLASSES)(x.reshape(x.shape[0], -1))


class Transformer(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(30, 16)(tokens) + self.param("place", nn.initializers.normal(0.1), (7, 16))
        x = nn.LayerNorm()(x + nn.MultiHeadDotProductAttention(2)(x, x))
        x = nn.LayerNorm()(x + nn.Dense(16)(nn.gelu(nn.Dense(32)(x))))
        return nn.Dense(CLASSES)(x.mean(1))


def by_hand(params, x):
    """Without flax."""
    for layer in params["layers"][:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ params["layers"][-1]["w"] + params["layers"][-1]["b"]


def floats(*shape):
    return lambda random: random.standard_normal((BATCH, *shape)).astype("float32")


def tokens(random):
    return random.integers(0, 30, (BATCH, 7)).astype("int32")


def classes(random):
    return random.integers(0, CLASSES, BATCH).astype("int64")


def entropy(prediction, target):
    return optax.softmax_cross_entropy_with_integer_labels(prediction, target).mean()


ADAM = {"optimizer": "adam", "lr": 3e-3, "betas": [0.9, 0.999], "epsilon": 1e-8, "weight_decay": 0}


class Losses(unittest.TestCase):
    def check(self, apply, params, draw, labels, loss, optimizer, settings, named=None, **more):
        random = numpy.random.default_rng(3)
        state, losses = optimizer.init(params), []
        batches = [(draw(random), labels(random)) for _ in range(BEFORE + STEPS)]
        if named is None:
            more["example_target"] = batches[0][1]
        for number, (x, y) in enumerate(batches):
            if number == BEFORE:
                model = cameo.jax.export_training(apply, params, x, named or loss, state, settings=settings, step=number, **more)
            value, gradient = jax.value_and_grad(lambda p: loss(apply(p, x), y))(params)
            moves, state = optimizer.update(gradient, state, params)
            params = optax.apply_updates(params, moves)
            losses.append(float(value))
        trainer = cameo.Trainer(model, threads=1)
        got = [trainer.step({"x": x, "target": y}) for x, y in batches[BEFORE:]]
        numpy.testing.assert_allclose(got, losses[BEFORE:], TOLERANCE)
        return model

    def flax(self, network, draw, labels, loss, optimizer, settings, named=None, **more):
        example = draw(numpy.random.default_rng(0))
        params = network.init(jax.random.PRNGKey(2), example)["params"]
        return self.check(lambda p, x: network.apply({"params": p}, x), params, draw, labels, loss, optimizer, settings, named,
                          **more)

    def test_mlp(self):
        self.flax(Mlp(), floats(12), classes, entropy, optax.adam(3e-3), ADAM, "cross-entropy")

    def test_cnn(self):
        self.flax(Cnn(), floats(9, 9, 3), classes, entropy, optax.sgd(0.02, momentum=0.9),
                  {"optimizer": "sgd", "lr": 0.02, "momentum": 0.9, "nesterov": False, "weight_decay": 0}, "cross-entropy")

    def test_transformer_clipped(self):
        self.flax(Transformer(), tokens, classes, entropy,
                  optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(2e-3, weight_decay=0.05)),
                  {**ADAM, "optimizer": "adamw", "lr": 2e-3, "weight_decay": 0.05}, "cross-entropy", clip_norm=0.5)

    def test_a_loss_of_ones_own(self):
        self.flax(Mlp(3), floats(12), floats(3), lambda x, y: jnp.mean(jnp.log1p(jnp.square(x - y))), optax.adam(3e-3), ADAM)

    def test_without_flax(self):
        keys = jax.random.split(jax.random.PRNGKey(1), 2)
        params = {"layers": [{"w": jax.random.normal(keys[0], (12, 9)) * 0.3, "b": jnp.zeros(9)},
                             {"w": jax.random.normal(keys[1], (9, CLASSES)) * 0.3, "b": jnp.zeros(CLASSES)}]}
        self.check(by_hand, params, floats(12), classes, entropy, optax.adam(3e-3), ADAM, "cross-entropy")


class Refusals(unittest.TestCase):
    def test_all_primitives_at_once(self):
        def apply(params, x):
            return jnp.sort(jnp.cumsum(x * params["w"], 1), 1)

        with self.assertRaisesRegex(cameo.UnsupportedError, "'cumsum'.*'sort'"):
            cameo.jax.export_training(apply, {"w": jnp.ones(3)}, numpy.ones((2, 3), "float32"), "mse")

    def test_settings_that_are_missing(self):
        params = {"w": jnp.ones((3, 2))}
        with self.assertRaisesRegex(cameo.Error, "lr"):
            cameo.jax.export_training(lambda p, x: x @ p["w"], params, numpy.ones((2, 3), "float32"), "mse",
                                      optax.adam(1e-3).init(params))

    def test_a_loss_needs_an_example(self):
        with self.assertRaisesRegex(cameo.ArgumentError, "example_target"):
            cameo.jax.export_training(lambda p, x: x @ p["w"], {"w": jnp.ones((3, 2))}, numpy.ones((2, 3), "float32"), entropy)


if __name__ == "__main__":
    unittest.main()
