"""Models that draw random numbers while they are trained, in ONNX's text form."""
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import onnx

HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'
RATIO = """
  ratio = Constant<value = float {0.3}>()
  no = Constant<value = bool {0}>()
"""

# name: text, shapes of its weights, the shape of a sample, how many classes there are
MODELS = {
    "dropout": ("""g (float[N,6] x) => (float[N,4] y) {""" + RATIO + """
  a = Gemm(x, w1, b1)
  r = Relu(a)
  d = Dropout(r, ratio, no)
  e = Gemm(d, w2, b2)
  f = Dropout<seed = 7>(e)
  y = Gemm(f, w3, b3)
}""", {"w1": (6, 9), "b1": (9,), "w2": (9, 7), "b2": (7,), "w3": (7, 4), "b3": (4,)}, (6,), 4),
    # Each generator, with and without a seed; 15 numbers leave half a pair for the next step.
    "generators": ("""g (float[N,6] x) => (float[N,5] y) {
  h = Gemm(x, w1, b1)
  n = RandomNormalLike<scale = 0.1>(h)
  h1 = Add(h, n)
  m = RandomNormal<shape = [5], scale = 0.1, seed = 3.0>()
  h2 = Add(h1, m)
  u = RandomUniformLike<low = 0.5, high = 1.5>(h2)
  h3 = Mul(h2, u)
  p = Sigmoid(h3)
  b = Bernoulli(p)
  h4 = Add(h3, b)
  bs = Bernoulli<seed = 5.0>(p)
  h5 = Add(h4, bs)
  k = Multinomial<sample_size = 1>(h5)
  kf = Cast<to = 1>(k)
  ks = Multinomial<sample_size = 1, seed = 9.0>(h5)
  ksf = Cast<to = 1>(ks)
  z = RandomUniform<shape = [5]>()
  h6 = Mul(h5, z)
  h7 = Add(h6, kf)
  h8 = Add(h7, ksf)
  y = Gemm(h8, w2, b2)
}""", {"w1": (6, 5), "b1": (5,), "w2": (5, 5), "b2": (5,)}, (6,), 5),
    "scan": ("""g (float[N,4,6] x) => (float[N,6] y) {""" + RATIO + """
  t = Transpose<perm = [1,0,2]>(x)
  none = Constant<value = float {0.0}>()
  first = Constant<value = int64[1] {0}>()
  x0 = ReduceSum<keepdims = 0>(t, first)
  s0 = Mul(x0, none)
  s, all = Scan<num_scan_inputs = 1, body = body (float[N,6] si, float[N,6] xi)
      => (float[N,6] so, float[N,6] o) {
    hi = MatMul(si, w1)
    di = Dropout(hi, ratio, no)
    ai = Add(di, xi)
    so = Tanh(ai)
    o = Identity(so)
  }>(s0, t)
  y = Gemm(s, w2, b2)
}""", {"w1": (6, 6), "w2": (6, 6), "b2": (6,)}, (4, 6), 6),
    "attention": ("""g (float[N,5,8] x) => (float[N,4] y) {""" + RATIO + """
  q = MatMul(x, wq)
  k = MatMul(x, wk)
  v = MatMul(x, wv)
  kt = Transpose<perm = [0,2,1]>(k)
  s = MatMul(q, kt)
  p = Softmax<axis = -1>(s)
  pd = Dropout(p, ratio, no)
  c = MatMul(pd, v)
  cd = Dropout(c, ratio, no)
  r = Add(x, cd)
  l = LayerNormalization(r, g1, b1)
  m = ReduceMean<axes = [1], keepdims = 0>(l)
  y = Gemm(m, w2, b2)
}""", {"wq": (8, 8), "wk": (8, 8), "wv": (8, 8), "g1": (8,), "b1": (8,), "w2": (8, 4),
       "b2": (4,)}, (5, 8), 4),
}

# Two entries draw different numbers from one seed; a Dropout that drops nothing has its number too.
ENTRY = """%(name)s () => (float %(name)s, float[6] %(to)s) {
  yes = Constant<value = bool {1}>()
  half = Constant<value = float {0.5}>()
  %(name)s1 = Dropout(y)
  %(name)s2 = Dropout(%(name)s1, half, yes)
  %(name)s3 = %(operator)s(%(name)s2)
  %(name)s4 = Add(%(name)s2, %(name)s3)
  %(name)s = ReduceSum<keepdims = 0>(%(name)s4)
  %(to)s = Add(%(variable)s, %(name)s4)
}"""


def add_floats(model, rng, shapes):
    for name, shape in shapes.items():
        values = (rng.standard_normal(shape) * 0.3).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))


def make(name, path, rng):
    """Writes the model; gives 24 samples for it."""
    text, shapes, sample, classes = MODELS[name]
    model = onnx.parser.parse_model(HEAD + text)
    add_floats(model, rng, shapes)
    onnx.save(model, path)
    return {"x": rng.standard_normal((24,) + sample).astype(np.float32),
            "target": rng.integers(0, classes, 24)}


def make_entries(path, rng):
    """A model that carries a training of two entries; gives samples for it."""
    model = onnx.parser.parse_model(
        HEAD + "g (float[6] x) => (float[6] y) { d = Dropout(x) y = Mul(d, w) }")
    add_floats(model, rng, {"w": (6,), "v": (6,)})
    for variable, name, operator in (("w", "loss", "RandomNormalLike"),
                                     ("v", "other", "RandomUniformLike")):
        entry = model.training_info.add()
        entry.algorithm.CopyFrom(onnx.parser.parse_graph(ENTRY % {
            "variable": variable, "name": name, "operator": operator, "to": variable + "_new"}))
        binding = entry.update_binding.add()
        binding.key, binding.value = variable, variable + "_new"
    onnx.save(model, path)
    return {"x": rng.standard_normal(24).astype(np.float32)}
