"""Keras by tf2onnx and by its own export, TensorFlow functions by tf2onnx; trained beside GradientTape."""
# SPDX-License-Identifier: Apache-2.0
import os

import numpy as np
import tensorflow as tf
import tf2onnx
import keras
from keras import layers

import common

tf.get_logger().setLevel("ERROR")
OPTIMIZERS = {  # Cameo's options, the framework's own
    "sgd": ({"lr": 0.05}, lambda: keras.optimizers.SGD(0.05)),
    "momentum": ({"lr": 0.02, "momentum": 0.9}, lambda: keras.optimizers.SGD(0.02, momentum=0.9)),
    # Keras adds epsilon before the correction of the variance, so it is kept small enough not to matter.
    "adam": ({"lr": 0.003, "epsilon": 1e-10}, lambda: keras.optimizers.Adam(0.003, epsilon=1e-10)),
    "adamw": ({"lr": 0.003, "weight_decay": 0.05, "epsilon": 1e-10},
              lambda: keras.optimizers.AdamW(0.003, weight_decay=0.05, epsilon=1e-10)),
}
CONVERTERS = ("keras-tf2onnx", "keras-export")


class Network:
    """A row: build() gives a model, draw(random) a batch of its inputs. loss: None where it is not trained; options are
    those of `cameo prepare`."""

    def __init__(self, name, build, draw, loss=None, optimizer="adam", *, opset=15, training=False, tolerance=1.0,
                 train_tolerance=1.0,
                 **options):
        self.name, self.build, self.draw, self.loss = name, build, draw, loss
        self.optimizer, self.options = optimizer, options
        self.opset, self.training, self.tolerance, self.train_tolerance = opset, training, tolerance, train_tolerance

    def rows(self):
        return [common.Row(converter, self.name, lambda folder, c=converter: self.run(c, folder))
                for converter in CONVERTERS]

    def make(self):
        keras.utils.set_random_seed(0)
        model = self.build()
        random = np.random.default_rng(1)
        # The converter leaves out additions of zeros and writes equal tensors once: no weight stays as it was made.
        for weight in model.trainable_weights:
            weight.assign(np.asarray(weight) + 0.05 * random.standard_normal(weight.shape).astype(np.float32))
        return model

    def export(self, converter, model, arrays, path):
        signature = [tf.TensorSpec((None, *a.shape[1:]), a.dtype, name=f"x{i}") for i, a in enumerate(arrays)]
        if converter == "keras-export":
            common.convert(model.export, path, format="onnx", verbose=False, opset_version=self.opset,
                           input_signature=[signature] if len(signature) > 1 else signature)
            return

        def call(*inputs):
            return model(inputs if len(inputs) > 1 else inputs[0], training=False)

        common.convert(tf2onnx.convert.from_function, tf.function(call), signature, opset=self.opset, output_path=path)

    def run(self, converter, folder):
        model = self.make()
        random = np.random.default_rng(2)
        arrays = self.draw(random)
        path = os.path.join(folder, "model.onnx")
        self.export(converter, model, arrays, path)
        own = model([*map(tf.constant, arrays)] if len(arrays) > 1 else tf.constant(arrays[0]), training=False)
        own = [np.asarray(o) for o in (own if isinstance(own, (list, tuple)) else [own])]
        result = common.check(path, common.feeds_for(path, arrays), own, self.tolerance)
        if self.loss:
            result.update(self.train(model, path, folder))
        return result

    def train(self, model, path, folder):
        random = np.random.default_rng(3)
        batches = []
        for _ in range(common.STEPS):
            arrays = self.draw(random)
            shape = model([*map(tf.constant, arrays)] if len(arrays) > 1 else tf.constant(arrays[0])).shape
            target = (random.integers(0, shape[-1], shape[:-1]) if self.loss == "cross-entropy" else
                      random.standard_normal(shape).astype(np.float32))
            batches.append((arrays, target))
        options, make = OPTIMIZERS[self.optimizer]
        options = {**options, **self.options, **({"class_axis": -1} if self.loss == "cross-entropy" else {})}
        return common.train(path, batches, lambda: own_steps(model, model.trainable_weights, batches, self.loss, make(),
                                                             self.training),
                            loss=self.loss, optimizer=self.optimizer, options=options, folder=folder,
                            tolerance=self.train_tolerance)


def own_steps(model, weights, batches, kind, optimizer, training=True):
    names = {id(w): getattr(w, "path", w.name) for w in weights}
    before, losses = {names[id(w)]: np.array(w) for w in weights}, []
    for arrays, target in batches:
        with tf.GradientTape() as tape:
            inputs = [*map(tf.constant, arrays)]
            out = model(inputs if len(inputs) > 1 else inputs[0], training=training) if isinstance(model,
                                                                      keras.Model) else model(*inputs)
            if kind == "cross-entropy":
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=out))
            else:
                loss = tf.reduce_mean(tf.square(out - target))
        # Dense, for embeddings too: on rows alone Adam of Keras leaves the momentum of the other rows out.
        gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, weights)]
        optimizer.apply_gradients(zip(gradients, weights))
        losses.append(float(loss))
    return losses, before, {names[id(w)]: np.array(w) for w in weights}


def floats(*shape):
    return lambda random: [random.standard_normal(shape).astype(np.float32)]


def ids(high, *shape):
    return lambda random: [random.integers(0, high, shape).astype(np.int32)]


def stack(*parts, shape, dtype="float32"):
    return lambda: keras.Sequential([keras.Input(shape, dtype=dtype), *(part() for part in parts)])


def dense(units, **named):
    return lambda: layers.Dense(units, **named)


def pictures(*parts):
    return stack(*parts, layers.GlobalAveragePooling2D, dense(5), shape=(12, 12, 3))


def conv(*arguments, **named):
    return lambda: layers.Conv2D(*arguments, **named)


def functional(make):
    """A model of the functional interface: make() gives inputs and outputs."""
    return lambda: keras.Model(*make())


def two_inputs():
    a, b = keras.Input((6,)), keras.Input((4,))
    return [a, b], layers.Dense(3)(layers.concatenate([layers.Dense(8, "relu")(a), layers.Dense(8, "tanh")(b)]))


def two_outputs():
    a = keras.Input((6,))
    h = layers.Dense(8, "relu")(a)
    return a, [layers.Dense(3)(h), layers.Dense(2, "sigmoid")(h)]


def residual():
    x = keras.Input((8, 8, 4))
    y = layers.Conv2D(4, 3, padding="same", activation="relu")(x)
    y = layers.add([x, layers.Conv2D(4, 3, padding="same")(y)])
    return x, layers.Dense(3)(layers.GlobalAveragePooling2D()(layers.ReLU()(y)))


def shared():
    a, b = keras.Input((6,)), keras.Input((6,))
    tower = layers.Dense(8, "tanh")
    return [a, b], layers.Dense(1)(layers.subtract([tower(a), tower(b)]))


def attention():
    x = keras.Input((5, 8))
    return x, layers.Dense(3)(layers.GlobalAveragePooling1D()(layers.MultiHeadAttention(2, 4)(x, x)))


def dot_attention():
    x = keras.Input((5, 8))
    q, v = layers.Dense(6)(x), layers.Dense(6)(x)
    return x, layers.Dense(3)(layers.GlobalMaxPooling1D()(layers.Attention()([q, v])))


def transformer():
    x = keras.Input((5, 8))
    y = layers.LayerNormalization()(layers.add([x, layers.MultiHeadAttention(2, 4)(x, x)]))
    y = layers.LayerNormalization()(layers.add([y, layers.Dense(8)(layers.Dense(16, "gelu")(y))]))
    return x, layers.Dense(3)(layers.GlobalAveragePooling1D()(y))


def unet():
    x = keras.Input((8, 8, 3))
    a = layers.Conv2D(6, 3, padding="same", activation="relu")(x)
    b = layers.Conv2D(8, 3, padding="same", activation="relu")(layers.MaxPooling2D()(a))
    c = layers.Conv2DTranspose(6, 2, 2)(b)
    return x, layers.Conv2D(4, 1)(layers.concatenate([a, c]))


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.a, self.b = layers.Dense(8), layers.Dense(3)

    def call(self, x, training=False):
        h = self.a(x)
        return self.b(h * keras.ops.sigmoid(h))


def subclassed():
    model = Subclassed()
    model(np.zeros((1, 6), np.float32))
    return model


def recurrent(kind, **named):
    return stack(lambda: kind(8, **named), dense(4), shape=(7, 6))


def bidirectional(kind):
    return stack(lambda: layers.Bidirectional(kind(6)), dense(4), shape=(7, 6))


NETWORKS = [
    Network("dense", stack(dense(3), shape=(6,)), floats(8, 6), "mse", "sgd"),
    Network("mlp", stack(dense(24, activation="relu"), dense(5), shape=(10,)), floats(16, 10), "cross-entropy", "adam"),
    Network("mlp_adamw", stack(dense(24, activation="tanh"), dense(5), shape=(10,)), floats(16, 10), "cross-entropy",
            "adamw"),
    Network("mlp_opset12", stack(dense(24, activation="relu"), dense(5), shape=(10,)), floats(16, 10), "mse",
            "momentum", opset=12),
    Network("mlp_opset18", stack(dense(24, activation="relu"), dense(5), shape=(10,)), floats(16, 10), "mse",
            "momentum", opset=18),
    Network("no_bias", stack(dense(8, use_bias=False), dense(3), shape=(6,)), floats(8, 6), "mse", "sgd"),
    Network("autoencoder", stack(dense(6, activation="elu"), dense(3, activation="selu"), dense(10), shape=(10,)),
            floats(8, 10), "mse", "adam"),
    Network("softmax_output", stack(dense(8), dense(4, activation="softmax"), shape=(6,)), floats(8, 6), "mse", "sgd"),
    Network("functional_two_inputs", functional(two_inputs), lambda r: [*floats(8, 6)(r), *floats(8, 4)(r)], "mse",
            "adam"),
    Network("functional_two_outputs", functional(two_outputs), floats(8, 6)),
    Network("functional_residual", functional(residual), floats(3, 8, 8, 4), "cross-entropy", "momentum"),
    Network("functional_shared", functional(shared), lambda r: [*floats(8, 6)(r), *floats(8, 6)(r)], "mse", "adam"),
    Network("subclassed", subclassed, floats(8, 6), "mse", "sgd"),
    Network("cnn", pictures(conv(8, 3, activation="relu"), layers.MaxPooling2D, conv(8, 3, activation="relu")),
            floats(4, 12, 12, 3), "cross-entropy", "adam"),
    Network("cnn_same_stride", pictures(conv(8, 3, 2, padding="same", activation="relu"),
                                        conv(8, 5, 3, padding="same")), floats(4, 12, 12, 3), "cross-entropy",
                                        "momentum"),
    Network("cnn_dilation", pictures(conv(8, 3, dilation_rate=2, activation="relu")), floats(4, 12, 12, 3),
            "cross-entropy", "sgd"),
    Network("cnn_groups", pictures(conv(6, 3, groups=3, activation="relu")), floats(4, 12, 12, 3), "cross-entropy",
            "sgd"),
    Network("cnn_depthwise", pictures(lambda: layers.DepthwiseConv2D(3, depth_multiplier=2, activation="relu"),
                                      conv(8, 1)), floats(4, 12, 12, 3), "cross-entropy", "sgd"),
    Network("cnn_separable", pictures(lambda: layers.SeparableConv2D(8, 3, padding="same", activation="relu")),
            floats(4, 12, 12, 3), "cross-entropy", "adam"),
    Network("cnn_transposed", stack(lambda: layers.Conv2DTranspose(6, 3, 2, padding="same", activation="relu"),
                                    lambda: layers.Conv2DTranspose(2, 4, 2), shape=(5, 5, 3)),
            floats(2, 5, 5, 3), "mse", "adam"),
    Network("cnn_average_pool", pictures(conv(8, 3), lambda: layers.AveragePooling2D(3, 2, padding="same")),
            floats(4, 12, 12, 3), "cross-entropy", "adam"),
    Network("cnn_flatten", stack(conv(4, 3, activation="relu"), layers.Flatten, dense(5), shape=(8, 8, 3)),
            floats(4, 8, 8, 3), "cross-entropy", "adam"),
    Network("cnn_pad_crop", stack(lambda: layers.ZeroPadding2D(2), conv(4, 3), lambda: layers.Cropping2D(1),
                                  layers.GlobalMaxPooling2D, dense(3), shape=(8, 8, 3)),
            floats(4, 8, 8, 3), "mse", "sgd"),
    Network("cnn_upsample", stack(conv(4, 3, padding="same"), lambda: layers.UpSampling2D(2), shape=(6, 6, 3)),
            floats(2, 6, 6, 3), "mse", "sgd"),
    Network("cnn_upsample_bilinear", stack(lambda: layers.UpSampling2D(2, interpolation="bilinear"), shape=(6, 6, 3)),
            floats(2, 6, 6, 3)),
    Network("cnn_1d", stack(lambda: layers.Conv1D(8, 3, activation="relu"), lambda: layers.MaxPooling1D(2),
                            layers.Flatten, dense(4), shape=(10, 4)), floats(4, 10, 4), "cross-entropy", "adam"),
    Network("cnn_1d_causal", stack(lambda: layers.Conv1D(8, 3, padding="causal", dilation_rate=2),
                                   layers.GlobalAveragePooling1D, dense(4), shape=(10, 4)), floats(4, 10, 4),
                                   "cross-entropy", "adam"),
    Network("cnn_3d", stack(lambda: layers.Conv3D(4, 3, activation="relu"), layers.GlobalAveragePooling3D, dense(3),
                            shape=(6, 6, 6, 2)), floats(2, 6, 6, 6, 2), "cross-entropy", "adam"),
    Network("unet", functional(unet), floats(2, 8, 8, 3), "cross-entropy", "adam"),
    Network("batch_norm", stack(dense(8), layers.BatchNormalization, dense(3), shape=(6,)), floats(16, 6)),
    Network("batch_norm_conv", pictures(conv(8, 3), layers.BatchNormalization, layers.ReLU), floats(4, 12, 12, 3)),
    Network("layer_norm", stack(dense(8), layers.LayerNormalization, dense(3), shape=(6,)), floats(8, 6), "mse", "sgd"),
    Network("group_norm", pictures(conv(8, 3), lambda: layers.GroupNormalization(4)), floats(4, 12, 12, 3),
            "cross-entropy", "sgd"),
    Network("unit_norm", stack(dense(8), layers.UnitNormalization, dense(3), shape=(6,)), floats(8, 6), "mse", "sgd"),
    Network("dropout_inference", stack(dense(8), lambda: layers.Dropout(0.5), lambda: layers.GaussianNoise(0.1),
                                       dense(3), shape=(6,)), floats(8, 6)),
    Network("embedding", stack(lambda: layers.Embedding(20, 8), layers.GlobalAveragePooling1D, dense(4), shape=(6,),
                               dtype="int32"), ids(20, 8, 6), "cross-entropy", "adam"),
    Network("embedding_lstm", stack(lambda: layers.Embedding(20, 8), lambda: layers.LSTM(8), dense(4), shape=(6,),
                                    dtype="int32"), ids(20, 8, 6), "cross-entropy", "adam"),
    Network("embedding_masked", stack(lambda: layers.Embedding(20, 8, mask_zero=True), lambda: layers.GRU(8), dense(4),
                                      shape=(6,), dtype="int32"), ids(20, 8, 6)),
    Network("lstm", recurrent(layers.LSTM), floats(4, 7, 6), "cross-entropy", "adam"),
    Network("lstm_sequences", stack(lambda: layers.LSTM(8, return_sequences=True), lambda: layers.LSTM(6), dense(4),
                                    shape=(7, 6)), floats(4, 7, 6), "cross-entropy", "adam"),
    # Where the layer has no bias, the converter writes one of zeros.
    Network("lstm_no_bias", recurrent(layers.LSTM, use_bias=False), floats(4, 7, 6), "cross-entropy", "adam",
            freeze="^B[0-9]"),
    Network("lstm_backwards", recurrent(layers.LSTM, go_backwards=True), floats(4, 7, 6), "cross-entropy", "adam"),
    Network("gru", recurrent(layers.GRU), floats(4, 7, 6), "cross-entropy", "adam"),
    Network("gru_before", recurrent(layers.GRU, reset_after=False), floats(4, 7, 6), "cross-entropy", "adam"),
    Network("simple_rnn", recurrent(layers.SimpleRNN), floats(4, 7, 6), "cross-entropy", "adam"),
    Network("bidirectional_lstm", bidirectional(layers.LSTM), floats(4, 7, 6), "cross-entropy", "adam"),
    Network("bidirectional_gru", bidirectional(layers.GRU), floats(4, 7, 6), "cross-entropy", "adam"),
    Network("time_distributed", stack(lambda: layers.TimeDistributed(layers.Dense(5, "relu")), layers.Flatten, dense(3),
                                      shape=(4, 6)), floats(4, 4, 6), "mse", "adam"),
    Network("conv_lstm", stack(lambda: layers.ConvLSTM2D(4, 3), layers.GlobalAveragePooling2D, dense(3),
                               shape=(3, 6, 6, 2)), floats(2, 3, 6, 6, 2)),
    Network("attention", functional(attention), floats(3, 5, 8), "mse", "sgd"),
    Network("dot_attention", functional(dot_attention), floats(3, 5, 8), "mse", "sgd"),
    Network("transformer", functional(transformer), floats(3, 5, 8), "mse", "sgd"),
    Network("einsum_dense", stack(lambda: layers.EinsumDense("abc,cd->abd", (None, 4), bias_axes="d"), shape=(5, 6)),
            floats(3, 5, 6), "mse", "sgd"),
    Network("reshape_permute", stack(dense(12), lambda: layers.Reshape((3, 4)), lambda: layers.Permute((2, 1)),
                                     layers.Flatten, dense(2),
                                     shape=(6,)), floats(4, 6), "mse", "sgd"),
    Network("rescaling", stack(lambda: layers.Rescaling(0.5, 1.0), dense(3), shape=(6,)), floats(4, 6), "mse", "sgd"),
    *(Network(f"activation_{name}", stack(dense(8, activation=name), dense(3), shape=(6,)), floats(8, 6), "mse",
              "momentum")
      for name in ("gelu", "silu", "mish", "softplus", "softsign", "hard_sigmoid", "hard_silu", "leaky_relu", "relu6",
                   "celu", "log_softmax", "sigmoid")),
    Network("prelu", stack(dense(8), lambda: layers.PReLU(alpha_initializer="ones"), dense(3), shape=(6,)),
            floats(8, 6), "mse", "sgd"),
    *(Network(f"application_{make.__name__.lower()}",
              lambda make=make, alpha=alpha: make(weights=None, input_shape=(32, 32, 3), classes=6, alpha=alpha),
              floats(1, 32, 32, 3))
      for make, alpha in ((keras.applications.MobileNet, 0.25), (keras.applications.MobileNetV2, 0.35))),
]


# ---- TensorFlow ----


class Function:
    """A tf.function; variables of a network are trained."""

    def __init__(self, name, make, draw, loss=None, optimizer="sgd", opset=15, fixed=False):
        self.name, self.make, self.draw, self.loss = name, make, draw, loss
        self.optimizer, self.opset, self.fixed = optimizer, opset, fixed

    def row(self):
        return common.Row("tensorflow", self.name, self.run)

    def run(self, folder):
        tf.random.set_seed(0)
        call, variables = self.make() if self.loss else (self.make, [])
        arrays = self.draw(np.random.default_rng(2))
        signature = [tf.TensorSpec(a.shape if self.fixed or not a.ndim else (None, *a.shape[1:]), a.dtype,
                                   name=f"x{i}") for i, a in enumerate(arrays)]
        path = os.path.join(folder, "model.onnx")
        common.convert(tf2onnx.convert.from_function, tf.function(call), signature, opset=self.opset, output_path=path)
        own = call(*map(tf.constant, arrays))
        own = [np.asarray(o) for o in (own if isinstance(own, (list, tuple)) else [own])]
        result = common.check(path, common.feeds_for(path, arrays), own)
        if self.loss:
            random = np.random.default_rng(3)
            batches = []
            for _ in range(common.STEPS):
                arrays = self.draw(random)
                batches.append((arrays,
                                random.standard_normal(call(*map(tf.constant, arrays)).shape).astype(np.float32)))
            options, make = OPTIMIZERS[self.optimizer]
            result.update(common.train(path, batches, lambda: own_steps(call, variables, batches, self.loss, make()),
                                       loss=self.loss,
                                       optimizer=self.optimizer, options=options, folder=folder))
        return result


def linear():
    w, b = tf.Variable(tf.random.normal((6, 3)), name="w"), tf.Variable(tf.random.normal((3,)), name="b")
    return lambda x: x @ w + b, [w, b]


def two_layers():
    w, v = tf.Variable(tf.random.normal((6, 8)), name="w"), tf.Variable(tf.random.normal((8, 3)), name="v")
    return lambda x: tf.nn.relu(x @ w) @ v, [w, v]


def convolution():
    w, b = tf.Variable(tf.random.normal((3, 3, 2, 4)), name="w"), tf.Variable(tf.random.normal((4,)), name="b")
    return lambda x: tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(x, w, 1, "SAME") + b), [1, 2]), [w, b]


def branch(x):
    if tf.reduce_sum(x) > 0:
        return x * 2.0
    return x - 1.0


def while_loop(x):
    i = tf.constant(0)
    while tf.reduce_sum(tf.abs(x)) < 100.0 and i < 30:
        x = x * 1.3
        i += 1
    return x, i


def accumulate(x):
    out = tf.TensorArray(tf.float32, size=tf.shape(x)[0])
    total = tf.zeros_like(x[0])
    for i in tf.range(tf.shape(x)[0]):
        total = total * 0.5 + x[i]
        out = out.write(i, total)
    return out.stack()


def gathers(x, i):
    return (tf.gather(x, i), tf.gather(x, i, axis=1), tf.gather_nd(x, tf.stack([i, i], 1)), tf.one_hot(i, 4),
            tf.boolean_mask(x, x[:, 0] > 0))


def reductions(x):
    return (tf.reduce_mean(x, 1), tf.reduce_max(x, 0), tf.math.reduce_std(x, 1), tf.argmax(x, 1), tf.cumsum(x, 1),
            tf.reduce_logsumexp(x, 1), tf.norm(x, axis=1), tf.reduce_prod(x, 1))


def tops(x):
    values, where = tf.math.top_k(x, 3)
    return values, where, tf.sort(x, 1), tf.argsort(x, 1)


def maths(x):
    return (tf.exp(x), tf.math.erf(x), tf.sin(x), tf.floor(x), tf.round(x), tf.math.rsqrt(tf.abs(x)), tf.nn.softmax(x),
            tf.math.floormod(x, 0.7), tf.clip_by_value(x, -1, 1), tf.where(x > 0, x, -x), tf.sign(x))


def slices(x):
    return (x[:, 1:3], x[::2], x[..., -1], tf.reverse(x, [1]), tf.roll(x, 1, 1), tf.pad(x, [[1, 0], [0, 2]]),
            tf.pad(x, [[0, 0], [1, 1]], "REFLECT"), tf.tile(x, [2, 1]), tf.split(x, 2, 1)[1])


def resizes(x):
    return (tf.image.resize(x, (9, 7)), tf.image.resize(x, (9, 7), "nearest"), tf.nn.space_to_depth(x, 2),
            tf.nn.depth_to_space(x, 2))


FUNCTIONS = [
    Function("linear", linear, floats(8, 6), "mse", "sgd"),
    Function("two_layers", two_layers, floats(8, 6), "mse", "adam"),
    Function("two_layers_momentum", two_layers, floats(8, 6), "mse", "momentum"),
    Function("convolution", convolution, floats(2, 6, 6, 2), "mse", "sgd"), Function("branch", branch, floats(3, 4)),
    Function("while_loop", while_loop, floats(3, 4)), Function("tensor_array", accumulate, floats(5, 4)),
    Function("map_fn", lambda x: tf.map_fn(lambda r: tf.reduce_sum(r) * r, x), floats(5, 4)),
    Function("scan", lambda x: tf.scan(lambda a, r: a * 0.5 + r, x), floats(5, 4), fixed=True),
    Function("gathers", gathers, lambda r: [*floats(5, 4)(r), np.array([2, 0, 3], np.int32)]),
    Function("reductions", reductions, floats(5, 4)), Function("tops", tops, floats(5, 6)),
    Function("maths", maths, floats(5, 4)), Function("slices", slices, floats(6, 4)),
    Function("resizes", resizes, floats(2, 6, 6, 4)),
    Function("einsum", lambda x: tf.einsum("bij,bkj->bik", x, x), floats(2, 3, 4)),
    Function("scatter", lambda x: (tf.tensor_scatter_nd_update(x, [[0, 1], [2, 3]], [5.0, 6.0]),
                                   tf.scatter_nd([[1], [3]], x[:2], [6, 4])), floats(5, 4), fixed=True),
    Function("segments", lambda x: tf.math.unsorted_segment_sum(x, tf.constant([0, 1, 0, 2, 1]), 3), floats(5, 4),
             fixed=True),
    Function("matrix_band", lambda x: (tf.linalg.band_part(x, 1, 0), tf.linalg.diag_part(x),
                                       tf.linalg.matmul(x, x, transpose_b=True)), floats(2, 4, 4)),
    Function("unique", lambda x: tf.unique(x), lambda r: [r.integers(0, 5, 12).astype(np.int32)]),
    Function("non_max_suppression", lambda b, s: tf.image.non_max_suppression(b, s, 5, 0.5),
             lambda r: [np.sort(r.random((20, 2, 2)), 1).reshape(20, 4).astype(np.float32),
                        r.random(20).astype(np.float32)]),
    Function("strings", lambda x: tf.strings.lower(x), lambda r: [np.array([["Ab", "cD"]], object)]),
    Function("casts", lambda x: (tf.cast(x, tf.int32), tf.cast(x, tf.float64), tf.cast(x > 0, tf.float32)),
             floats(5, 4)),
]

if __name__ == "__main__":
    common.main([row for network in NETWORKS for row in network.rows()] + [f.row() for f in FUNCTIONS],
                {"tensorflow": tf.__version__, "keras": keras.__version__, "tf2onnx": tf2onnx.__version__})
