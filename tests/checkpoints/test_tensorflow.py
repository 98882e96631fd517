"""TensorFlow and Keras: tf.train.Checkpoint, .weights.h5."""
# SPDX-License-Identifier: Apache-2.0
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import onnx
import tensorflow as tf

import common

keras.utils.set_random_seed(3)


def mlp():
    return keras.Sequential([keras.Input((12,)), keras.layers.Dense(16, "relu", name="fc1"),
                             keras.layers.Dense(8, "relu", name="fc2"),
                             keras.layers.Dense(common.CLASSES, name="logits")], name="mlp")


def cnn():
    return keras.Sequential([keras.Input((8, 8, 1)),
                             keras.layers.Conv2D(4, 3, padding="same", name="conv1"),
                             keras.layers.BatchNormalization(name="bn1"), keras.layers.ReLU(),
                             keras.layers.MaxPool2D(2), keras.layers.Flatten(),
                             keras.layers.Dense(common.CLASSES, name="logits")], name="cnn")


def weights(net):
    return {v.path: v.numpy() for v in net.weights if "seed" not in v.path}


def mlp_onnx(net):
    names = [(f"{layer.kernel.path}", f"{layer.bias.path}") for layer in net.layers]
    return common.mlp(weights(net), names)


def cnn_onnx(net):
    found = weights(net)
    conv, norm, dense = (net.get_layer(n) for n in ("conv1", "bn1", "logits"))
    found[conv.kernel.path] = found[conv.kernel.path].transpose(3, 2, 0, 1)
    return common.cnn(found, [conv.kernel.path, conv.bias.path, norm.gamma.path, norm.beta.path,
                              norm.moving_mean.path, norm.moving_variance.path, dense.kernel.path,
                              dense.bias.path, norm.epsilon, norm.momentum])


def run(net, optimizer, steps):
    criterion = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    losses = []
    for x, y in steps:
        if x.ndim == 4:
            x = x.transpose(0, 2, 3, 1)
        with tf.GradientTape() as tape:
            loss = criterion(y, net(x, training=True))
        optimizer.apply(tape.gradient(loss, net.trainable_variables), net.trainable_variables)
        losses.append(float(loss))
    return losses


def check(folder, make, to_onnx, shape, make_optimizer, settings):
    path = lambda name: os.path.join(folder, name)
    before, first, second = common.all_batches(shape)
    net = make()
    onnx.save(to_onnx(net), path("net.onnx"))
    optimizer = make_optimizer()
    run(net, optimizer, before)
    saved = tf.train.Checkpoint(model=net, optimizer=optimizer).save(path("saved/ckpt"))
    continued = run(net, optimizer, first)

    def fresh():
        net, optimizer = make(), make_optimizer()
        optimizer.build(net.trainable_variables)
        return net, optimizer

    def from_bundle(written, steps):
        net, optimizer = fresh()
        prefix = tf.train.latest_checkpoint(written) or written
        status = tf.train.Checkpoint(model=net, optimizer=optimizer).restore(prefix)
        status.assert_existing_objects_matched()
        return run(net, optimizer, steps)

    def from_weights(written, steps):
        net, optimizer = fresh()
        net.compile(optimizer=optimizer)
        net.load_weights(written)
        return run(net, optimizer, steps)

    given = ("--set", common.write_json(folder, "settings.json", settings))
    return common.round_trip(folder, path("net.onnx"), os.path.dirname(saved), (first, second),
                             continued,
                             {"tensorflow": ("out.tf", from_bundle, ()),
                              "keras-weights": ("out.weights.h5", from_weights, ())},
                             flags=given)


def mlp_adam(folder):
    return check(folder, mlp, mlp_onnx, (12,), lambda: keras.optimizers.Adam(4e-3),
                 {"optimizer": "adam", "groups": [{"lr": 4e-3, "betas": [0.9, 0.999],
                                                   "epsilon": 1e-7, "weight_decay": 0}]})


def mlp_adagrad(folder):
    return check(folder, mlp, mlp_onnx, (12,), lambda: keras.optimizers.Adagrad(0.03),
                 {"optimizer": "adagrad", "groups": [{"lr": 0.03, "epsilon": 1e-7,
                                                      "weight_decay": 0}]})


def cnn_sgd_momentum(folder):
    return check(folder, cnn, cnn_onnx, (1, 8, 8),
                 lambda: keras.optimizers.SGD(0.02, momentum=0.9, nesterov=True),
                 {"optimizer": "sgd", "groups": [{"lr": 0.02, "momentum": 0.9, "nesterov": True,
                                                  "weight_decay": 0}]})


if __name__ == "__main__":
    common.main([mlp_adam, mlp_adagrad, cnn_sgd_momentum])
