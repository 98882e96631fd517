"""JAX: flax networks with optax, saved as msgpack and by Orbax."""
# SPDX-License-Identifier: Apache-2.0
import os

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import onnx
import optax
import orbax.checkpoint as orbax
from flax import serialization, traverse_util

import common


class Mlp(nn.Module):
    @nn.compact
    def __call__(self, x, train=True):
        x = nn.relu(nn.Dense(16, name="fc1")(x))
        x = nn.relu(nn.Dense(8, name="fc2")(x))
        return nn.Dense(common.CLASSES, name="logits")(x)


class Cnn(nn.Module):
    @nn.compact
    def __call__(self, x, train=True):
        x = nn.Conv(4, (3, 3), name="conv1")(x)
        x = nn.relu(nn.BatchNorm(use_running_average=not train, momentum=0.9, name="bn1")(x))
        x = nn.max_pool(x, (2, 2), (2, 2))
        return nn.Dense(common.CLASSES, name="logits")(x.reshape(x.shape[0], -1))


def flat(variables):
    return {"/".join(k): np.asarray(v) for k, v in
            traverse_util.flatten_dict(variables).items()}


def mlp_onnx(variables):
    names = [(f"params/{n}/kernel", f"params/{n}/bias") for n in ("fc1", "fc2", "logits")]
    return common.mlp(flat(variables), names)


def cnn_onnx(variables):
    found = flat(variables)
    found["params/conv1/kernel"] = found["params/conv1/kernel"].transpose(3, 2, 0, 1)
    return common.cnn(found, ["params/conv1/kernel", "params/conv1/bias", "params/bn1/scale",
                              "params/bn1/bias", "batch_stats/bn1/mean", "batch_stats/bn1/var",
                              "params/logits/kernel", "params/logits/bias", 1e-5, 0.9])


def run(net, optimizer, state, steps):
    """Losses, and the state after them: variables, the optimizer's state, the step."""
    def loss_of(params, others, x, y):
        logits, changed = net.apply({"params": params, **others}, x, mutable=list(others))
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), changed

    losses = []
    for x, y in steps:
        if x.ndim == 4:
            x = x.transpose(0, 2, 3, 1)
        others = {k: state[k] for k in state if k == "batch_stats"}
        (loss, changed), gradient = jax.value_and_grad(loss_of, has_aux=True)(
            state["params"], others, jnp.asarray(x), jnp.asarray(y))
        moves, kept = optimizer.update(gradient, state["opt_state"], state["params"])
        state = {**state, **changed, "params": optax.apply_updates(state["params"], moves),
                 "opt_state": kept, "step": state["step"] + 1}
        losses.append(float(loss))
    return losses, state


def begin(net, optimizer, shape):
    sample = jnp.zeros((1, *(shape[1:] + shape[:1] if len(shape) == 3 else shape)))
    variables = net.init(jax.random.PRNGKey(4), sample)
    return {**variables, "opt_state": optimizer.init(variables["params"]), "step": 0}, variables


def check(folder, net, to_onnx, shape, optimizer, settings, steps=common.STEPS,
          tolerance=common.TOLERANCE):
    path = lambda name: os.path.join(folder, name)
    before, first, second = common.all_batches(shape, steps)
    state, variables = begin(net, optimizer, shape)
    onnx.save(to_onnx(variables), path("net.onnx"))
    _, state = run(net, optimizer, state, before)
    with open(path("saved.msgpack"), "wb") as to:
        to.write(serialization.to_bytes(state))
    continued, _ = run(net, optimizer, state, first)

    def from_msgpack(written, steps):
        fresh, _ = begin(net, optimizer, shape)
        with open(written, "rb") as bytes_of:
            loaded = serialization.from_bytes(fresh, bytes_of.read())
        return run(net, optimizer, loaded, steps)[0]

    def from_orbax(written, steps):
        fresh, _ = begin(net, optimizer, shape)
        loaded = orbax.PyTreeCheckpointer().restore(
            os.path.abspath(written), item=fresh,
            restore_args=orbax.checkpoint_utils.construct_restore_args(fresh))
        return run(net, optimizer, loaded, steps)[0]

    given = ("--set", common.write_json(folder, "settings.json", settings))
    return common.round_trip(folder, path("net.onnx"), path("saved.msgpack"), (first, second),
                             continued, {"flax": ("out.msgpack", from_msgpack, ()),
                                         "orbax": ("out.orbax", from_orbax, ())}, flags=given,
                             tolerance=tolerance)


def mlp_adam(folder):
    return check(folder, Mlp(), mlp_onnx, (12,), optax.adam(4e-3),
                 {"optimizer": "adam", "groups": [{"lr": 4e-3, "betas": [0.9, 0.999],
                                                   "epsilon": 1e-8, "weight_decay": 0}]})


def mlp_adamw(folder):
    return check(folder, Mlp(), mlp_onnx, (12,), optax.adamw(4e-3, weight_decay=0.05),
                 {"optimizer": "adamw", "groups": [{"lr": 4e-3, "betas": [0.9, 0.999],
                                                    "epsilon": 1e-8, "weight_decay": 0.05}]})


def mlp_lion(folder):
    return check(folder, Mlp(), mlp_onnx, (12,), optax.lion(1e-3, weight_decay=0.05),
                 {"groups": [{"lr": 1e-3, "betas": [0.9, 0.99], "weight_decay": 0.05}]}, 24, 1e-5)


def mlp_lamb(folder):
    return check(folder, Mlp(), mlp_onnx, (12,), optax.lamb(4e-3, weight_decay=0.01),
                 {"groups": [{"lr": 4e-3, "betas": [0.9, 0.999], "epsilon": 1e-6,
                              "weight_decay": 0.01}]}, 24, 1e-5)


def cnn_sgd_momentum(folder):
    return check(folder, Cnn(), cnn_onnx, (1, 8, 8), optax.sgd(0.02, momentum=0.9),
                 {"optimizer": "sgd", "groups": [{"lr": 0.02, "momentum": 0.9, "nesterov": False,
                                                  "weight_decay": 0}]})


if __name__ == "__main__":
    common.main([mlp_adam, mlp_adamw, mlp_lion, mlp_lamb, cnn_sgd_momentum])
