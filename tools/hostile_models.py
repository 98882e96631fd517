# Models whose operands decide at run time what is read and how large results are; for hostile_compiled.py.
# SPDX-License-Identifier: Apache-2.0
"""CASES: a model for each operator that is given indices, shapes, lengths, axes, pads or counts."""

import numpy as np


def ints(*values):
    return np.array(values, np.int64)


def scalar(value, dtype=np.int64):
    return np.array(value, dtype)


def reals(*shape):
    return (np.arange(np.prod(shape, dtype=np.int64)) % 11 - 5).astype(np.float32).reshape(shape) / 2


class Case:
    """body in the text form; operands with values that are right; hostile: whose numbers are changed too (all of
    whole numbers); results with type and rank."""

    # Compiled code has the checks of function bodies, which broadcast sizes that the operator itself refuses, or
    # take these numbers as they are. Memory is safe all the same.
    SIZES = {"one_hot", "one_hot_list", "nll", "nll_mean_weights", "nll_ignored", "cross_entropy", "lstm", "lstm_state",
             "lstm_bias", "gru", "gru_state", "rnn", "rnn_batch_first", "grid_sample", "affine_grid", "gemm", "stft",
             "attention", "attention_lengths", "rotary"}
    NUMBERS = {"center_crop_pad", "stft", "hann", "attention_lengths"}
    FIXED = {"deform_conv", "multinomial"}  # not compiled with open sizes
    # Refused though the interpreter has an answer: a size of 1 that would be broadcast.
    NARROW = {"einsum"}

    def __init__(self, name, body, operands, results, hostile=None, opset=21, most=2**63):
        self.name, self.body, self.operands, self.opset = name, body, operands, opset
        self.results = {n: (t.split("[")[0], t.count(",") + 1 if "[" in t else 0) for n, t in results.items()}
        whole = [n for n, a in operands.items() if a.dtype.kind == "i"]
        self.hostile = set(whole if hostile is None else hostile)
        self.most = most  # larger numbers are not tried: a loop would go on for years


X = reals(3, 4)
F2 = {"y": "float[a,b]"}
F1 = {"y": "float[a]"}
F3 = {"y": "float[a,b,c]"}
F4 = {"y": "float[a,b,c,d]"}
CASES = [
    Case("gather", "y = Gather<axis = 1>(x, i)", {"x": X, "i": ints(0, -1, 2)}, F2),
    Case("gather_int32", "y = Gather(x, i)", {"x": X, "i": np.array([0, -1], np.int32)}, F2),
    Case("gather_scalar", "y = Gather(x, i)", {"x": X, "i": scalar(1)}, F1),
    Case("gather_elements", "y = GatherElements<axis = 1>(x, i)", {"x": X, "i": ints([0, -1], [1, 2], [3, 3])}, F2),
    Case("gather_nd", "y = GatherND(x, i)", {"x": X, "i": ints([0, 1], [-1, -1])}, F1),
    Case("gather_nd_batch", "y = GatherND<batch_dims = 1>(x, i)", {"x": reals(2, 3, 4), "i": ints([0], [2])}, F2),
    Case("scatter_elements", "y = ScatterElements<axis = 1>(x, i, u)",
         {"x": X, "i": ints([0, -1], [1, 2], [3, 0]), "u": reals(3, 2)}, F2),
    Case("scatter_add", "y = ScatterElements<reduction = \"add\">(x, i, u)",
         {"x": X, "i": ints([0, -1, 1, 2]), "u": reals(1, 4)}, F2),
    Case("scatter_nd", "y = ScatterND(x, i, u)", {"x": X, "i": ints([0], [-1]), "u": reals(2, 4)}, F2),
    Case("scatter_nd_mul", "y = ScatterND<reduction = \"mul\">(x, i, u)",
         {"x": X, "i": ints([0, 3], [-1, 1]), "u": reals(2)}, F2),
    Case("slice", "y = Slice(x, s, e)", {"x": X, "s": ints(0, 1), "e": ints(2, 4)}, F2),
    Case("slice_axes", "y = Slice(x, s, e, a)", {"x": X, "s": ints(1), "e": ints(3), "a": ints(1)}, F2),
    Case("slice_steps", "y = Slice(x, s, e, a, p)",
         {"x": X, "s": ints(0, -1), "e": ints(3, -9), "a": ints(0, 1), "p": ints(2, -1)}, F2),
    Case("reshape", "y = Reshape(x, s)", {"x": X, "s": ints(2, -1)}, F2),
    Case("reshape_zero", "y = Reshape<allowzero = 1>(x, s)", {"x": X, "s": ints(6, 2)}, F2),
    Case("reshape_three", "y = Reshape(x, s)", {"x": reals(2, 3, 4), "s": ints(0, 0, -1)}, F3),
    Case("expand", "y = Expand(x, s)", {"x": reals(3, 1), "s": ints(3, 4)}, F2),
    Case("expand_rank", "y = Expand(x, s)", {"x": reals(4), "s": ints(2, 1)}, F2),
    Case("tile", "y = Tile(x, r)", {"x": X, "r": ints(2, 1)}, F2),
    Case("pad", "y = Pad(x, p)", {"x": X, "p": ints(1, 0, 0, 2)}, F2),
    Case("pad_axes", "y = Pad(x, p, , a)", {"x": X, "p": ints(1, 2), "a": ints(1)}, F2),
    Case("pad_edge", "y = Pad<mode = \"edge\">(x, p)", {"x": X, "p": ints(1, 0, 0, 2)}, F2),
    Case("pad_reflect", "y = Pad<mode = \"reflect\">(x, p)", {"x": X, "p": ints(1, 0, 0, 2)}, F2),
    Case("pad_wrap", "y = Pad<mode = \"wrap\">(x, p)", {"x": X, "p": ints(1, 0, 0, 2)}, F2),
    Case("split", "y, z = Split<axis = 1>(x, s)", {"x": X, "s": ints(1, 3)}, {"y": "float[a,b]", "z": "float[a,b]"}),
    Case("split_even", "y, z = Split<axis = 1, num_outputs = 2>(x)", {"x": X}, {"y": "float[a,b]", "z": "float[a,b]"}),
    Case("range", "y = Range(a, b, c)", {"a": scalar(2), "b": scalar(9), "c": scalar(3)}, {"y": "int64[n]"}),
    Case("range_int32", "y = Range(a, b, c)", {n: scalar(v, np.int32) for n, v in zip("abc", (9, 2, -2))},
         {"y": "int32[n]"}),
    Case("range_float", "y = Range(a, b, c)", {n: scalar(v, np.float32) for n, v in zip("abc", (1, 4, 0.5))},
         F1, hostile="abc"),
    Case("reverse_sequence", "y = ReverseSequence(x, s)", {"x": X, "s": ints(1, 3, 2, 0)}, F2),
    Case("reverse_sequence_batch", "y = ReverseSequence<batch_axis = 0, time_axis = 1>(x, s)",
         {"x": reals(3, 4, 2), "s": ints(1, 4, 2)}, F3),
    Case("topk", "y, i = TopK<axis = 1>(x, k)", {"x": X, "k": ints(2)}, {"y": "float[a,b]", "i": "int64[a,b]"}),
    Case("topk_smallest", "y, i = TopK<axis = 0, largest = 0>(x, k)", {"x": X, "k": ints(2)},
         {"y": "float[a,b]", "i": "int64[a,b]"}),
    Case("one_hot", "y = OneHot(i, d, v)", {"i": ints(0, -1, 2), "d": scalar(3), "v": reals(2)}, F2),
    Case("one_hot_list", "y = OneHot<axis = 0>(i, d, v)", {"i": ints(0, -1, 2), "d": ints(3), "v": reals(2)}, F2),
    Case("cum_sum", "y = CumSum(x, a)", {"x": X, "a": scalar(1)}, F2),
    Case("cum_sum_int32", "y = CumSum<reverse = 1>(x, a)", {"x": X, "a": scalar(-1, np.int32)}, F2),
    Case("squeeze", "y = Squeeze(x, a)", {"x": reals(3, 1, 2), "a": ints(1)}, F2),
    Case("unsqueeze", "y = Unsqueeze(x, a)", {"x": X, "a": ints(1)}, F3),
    Case("reduce_sum", "y = ReduceSum(x, a)", {"x": X, "a": ints(1)}, F2),
    Case("reduce_max", "y = ReduceMax(x, a)", {"x": X, "a": ints(0)}, F2),
    Case("reduce_mean_two", "y = ReduceMean(x, a)", {"x": X, "a": ints(0, -1)}, F2),
    Case("constant_of_shape", "y = ConstantOfShape(s)", {"s": ints(2, 3)}, F2),
    Case("resize_sizes", "y = Resize<mode = \"nearest\">(x, , , s)", {"x": reals(1, 1, 3, 4), "s": ints(1, 1, 5, 2)}, F4),
    Case("resize_scales", "y = Resize<mode = \"linear\">(x, , s)",
         {"x": reals(1, 1, 3, 4), "s": np.array([1, 1, 2, 0.5], np.float32)}, F4, hostile=["s"]),
    Case("resize_cubic", "y = Resize<mode = \"cubic\">(x, , , s)", {"x": reals(1, 1, 3, 4), "s": ints(1, 1, 5, 2)}, F4),
    Case("trilu", "y = Trilu(x, k)", {"x": X, "k": scalar(1)}, F2),
    Case("compress", "y = Compress<axis = 1>(x, c)", {"x": X, "c": np.array([True, False, True])}, F2),
    Case("compress_flat", "y = Compress(x, c)", {"x": X, "c": np.array([True, False, True])}, F1),
    Case("center_crop_pad", "y = CenterCropPad(x, s)", {"x": X, "s": ints(2, 6)}, F2),
    Case("col2im", "y = Col2Im(x, s, b)", {"x": reals(1, 5, 5), "s": ints(5, 5), "b": ints(1, 5)}, F4),
    Case("max_unpool", "y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, i)",
         {"x": reals(1, 1, 2, 2), "i": np.array([[[[5, 7], [13, 15]]]], np.int64)}, F4),
    Case("max_unpool_shape", "y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, i, s)",
         {"x": reals(1, 1, 2, 2), "i": np.array([[[[5, 7], [13, 15]]]], np.int64), "s": ints(1, 1, 5, 5)}, F4),
    Case("roi_align", "y = RoiAlign<output_height = 2, output_width = 2>(x, r, i)",
         {"x": reals(2, 1, 4, 4), "r": np.array([[0, 0, 2, 2], [1, 1, 3, 3]], np.float32), "i": ints(0, 1)}, F4),
    Case("max_roi_pool", "y = MaxRoiPool<pooled_shape = [2, 2]>(x, r)",
         {"x": reals(2, 1, 4, 4), "r": np.array([[0, 0, 0, 2, 2], [1, 1, 1, 3, 3]], np.float32)}, F4, hostile=["r"]),
    Case("nms", "y = NonMaxSuppression(b, s, m, t)",
         {"b": reals(1, 4, 4), "s": reals(1, 1, 4), "m": ints(2), "t": np.array([0.5], np.float32)},
         {"y": "int64[a,b]"}, hostile=["m", "t"]),
    Case("tensor_scatter", "y = TensorScatter(p, u, i)",
         {"p": reals(2, 1, 4, 2), "u": reals(2, 1, 2, 2), "i": ints(1, 2)}, F4, opset=24),
    Case("tensor_scatter_round", "y = TensorScatter<mode = \"circular\">(p, u, i)",
         {"p": reals(2, 1, 4, 2), "u": reals(2, 1, 2, 2), "i": ints(1, 3)}, F4, opset=24),
    Case("dft", "y = DFT(x, n, a)", {"x": reals(1, 4, 1), "n": scalar(4), "a": scalar(1)}, F3, opset=20),
    Case("dft_length", "y = DFT(x, n)", {"x": reals(1, 4, 1), "n": scalar(6)}, F3, opset=20),
    Case("stft", "y = STFT(x, p, , n)", {"x": reals(1, 16, 1), "p": scalar(4), "n": scalar(8)}, F4, opset=17),
    Case("hann", "y = HannWindow(n)", {"n": scalar(5)}, F1),
    Case("mel", "y = MelWeightMatrix(a, b, c, d, e)",
         {"a": scalar(4), "b": scalar(16), "c": scalar(8000), "d": scalar(100.0, np.float32),
          "e": scalar(3000.0, np.float32)}, F2),
    Case("dequantize_axis", "y = DequantizeLinear<axis = 1>(x, s)",
         {"x": np.arange(12, dtype=np.int8).reshape(3, 4), "s": reals(4)}, F2, hostile=[]),
    Case("nll", "y = NegativeLogLikelihoodLoss<reduction = \"none\">(x, t)", {"x": X, "t": ints(0, 1, 3)}, F1),
    Case("nll_mean_weights", "y = NegativeLogLikelihoodLoss(x, t, w)",
         {"x": X, "t": ints(0, 1, 3), "w": reals(4) + 4}, {"y": "float"}),
    Case("nll_ignored", "y = NegativeLogLikelihoodLoss<reduction = \"sum\", ignore_index = -1>(x, t)",
         {"x": X, "t": ints(0, -1, 3)}, {"y": "float"}),
    Case("cross_entropy", "y = SoftmaxCrossEntropyLoss<reduction = \"none\">(x, t)", {"x": X, "t": ints(0, 1, 3)}, F1),
    Case("lstm", "a, y = LSTM<hidden_size = 2>(x, w, r, , l)",
         {"x": reals(3, 2, 2), "w": reals(1, 8, 2), "r": reals(1, 8, 2), "l": np.array([1, 3], np.int32)}, F3),
    Case("lstm_state", "a, y = LSTM<hidden_size = 2>(x, w, r, , , h, c)",
         {"x": reals(3, 2, 2), "w": reals(1, 8, 2), "r": reals(1, 8, 2), "h": reals(1, 2, 2), "c": reals(1, 2, 2)}, F3),
    Case("lstm_bias", "a, y = LSTM<hidden_size = 2>(x, w, r, b, , , , p)",
         {"x": reals(3, 2, 2), "w": reals(1, 8, 2), "r": reals(1, 8, 2), "b": reals(1, 16), "p": reals(1, 6)}, F3),
    Case("gru", "y = GRU<hidden_size = 2>(x, w, r, , l)",
         {"x": reals(3, 2, 2), "w": reals(1, 6, 2), "r": reals(1, 6, 2), "l": np.array([1, 3], np.int32)}, F4),
    Case("gru_state", "y = GRU<hidden_size = 2, direction = \"reverse\">(x, w, r, , l, h)",
         {"x": reals(3, 2, 2), "w": reals(1, 6, 2), "r": reals(1, 6, 2), "l": np.array([1, 3], np.int32),
          "h": reals(1, 2, 2)}, F4),
    Case("rnn", "a, y = RNN<hidden_size = 2>(x, w, r, , l)",
         {"x": reals(3, 2, 2), "w": reals(1, 2, 2), "r": reals(1, 2, 2), "l": np.array([1, 3], np.int32)}, F3),
    Case("rnn_batch_first", "a, y = RNN<hidden_size = 2, layout = 1>(x, w, r, b, l, h)",
         {"x": reals(2, 3, 2), "w": reals(1, 2, 2), "r": reals(1, 2, 2), "b": reals(1, 4),
          "l": np.array([1, 3], np.int32), "h": reals(2, 1, 2)}, F3),
    Case("dropout_ratio", "y = Dropout(x, r)", {"x": X, "r": scalar(0.5, np.float32)}, F2),
    Case("grid_sample", "y = GridSample(x, g)", {"x": reals(1, 1, 3, 3), "g": reals(1, 2, 2, 2)}, F4, hostile=["g"]),
    Case("affine_grid", "y = AffineGrid(t, s)", {"t": reals(1, 2, 3), "s": ints(1, 1, 2, 3)}, F4),
    Case("einsum", "y = Einsum<equation = \"ij,jk->ik\">(a, b)", {"a": X, "b": reals(4, 2)}, F2),
    Case("matmul", "y = MatMul(a, b)", {"a": X, "b": reals(4, 2)}, F2),
    Case("matmul_batch", "y = MatMul(a, b)", {"a": reals(2, 3, 4), "b": reals(2, 4, 2)}, F3),
    Case("gemm", "y = Gemm<transB = 1>(a, b, c)", {"a": X, "b": reals(2, 4), "c": reals(2)}, F2),
    Case("add", "y = Add(a, b)", {"a": X, "b": reals(3, 1)}, F2),
    Case("where", "y = Where(c, a, b)", {"c": np.array([True, False, True, True]), "a": X, "b": reals(3, 1)}, F2),
    Case("concat", "y = Concat<axis = 1>(a, b)", {"a": X, "b": reals(3, 2)}, F2),
    Case("conv", "y = Conv(x, w, b)", {"x": reals(1, 2, 5, 5), "w": reals(3, 2, 3, 3), "b": reals(3)}, F4),
    Case("conv_pads", "y = Conv<strides = [2, 2], pads = [1, 1, 1, 1], group = 2>(x, w)",
         {"x": reals(1, 2, 5, 5), "w": reals(4, 1, 3, 3)}, F4),
    Case("conv_transpose", "y = ConvTranspose<strides = [2, 2]>(x, w, b)",
         {"x": reals(1, 2, 3, 3), "w": reals(2, 3, 2, 2), "b": reals(3)}, F4),
    Case("max_pool", "y = MaxPool<kernel_shape = [3, 3], strides = [2, 2]>(x)", {"x": reals(1, 2, 5, 5)}, F4),
    Case("average_pool", "y = AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x)", {"x": reals(1, 2, 5, 5)}, F4),
    Case("lp_pool", "y = LpPool<kernel_shape = [2, 2]>(x)", {"x": reals(1, 2, 5, 5)}, F4),
    Case("batch_norm", "y = BatchNormalization(x, s, b, m, v)",
         {"x": reals(2, 3, 2), "s": reals(3), "b": reals(3), "m": reals(3), "v": reals(3) + 4}, F3),
    Case("layer_norm", "y = LayerNormalization(x, s, b)", {"x": X, "s": reals(4), "b": reals(4)}, F2),
    Case("group_norm", "y = GroupNormalization<num_groups = 2>(x, s, b)",
         {"x": reals(2, 4, 3), "s": reals(4), "b": reals(4)}, F3),
    Case("instance_norm", "y = InstanceNormalization(x, s, b)", {"x": reals(2, 3, 4), "s": reals(3), "b": reals(3)}, F3),
    Case("depth_to_space", "y = DepthToSpace<blocksize = 2>(x)", {"x": reals(1, 4, 2, 3)}, F4),
    Case("space_to_depth", "y = SpaceToDepth<blocksize = 2>(x)", {"x": reals(1, 2, 4, 6)}, F4),
    Case("div_int", "y = Div(a, b)", {"a": ints(7, -7, 3), "b": ints(2, 2, -1)}, {"y": "int64[a]"}),
    Case("mod_int", "y = Mod(a, b)", {"a": ints(7, -7, 3), "b": ints(2, 2, -2)}, {"y": "int64[a]"}),
    Case("div_int32", "y = Div(a, b)", {"a": np.array([7, -7], np.int32), "b": np.array([2, -1], np.int32)},
         {"y": "int32[a]"}),
    Case("bit_shift", "y = BitShift<direction = \"LEFT\">(a, b)",
         {"a": np.array([1, 200], np.uint8), "b": np.array([3, 1], np.uint8)}, {"y": "uint8[a]"}, hostile="b"),
    Case("pow_int", "y = Pow(a, b)", {"a": ints(2, -3), "b": ints(5, 3)}, {"y": "int64[a]"}),
    Case("cast_float", "y = Cast<to = 7>(a)", {"a": reals(4)}, {"y": "int64[a]"}, hostile="a"),
    Case("loop", "y = Loop(n, , x) <body = g (int64 i, bool c, float[r,s] v) => (bool d, float[r,s] w) "
         "{ d = Identity(c)\n w = Add(v, v) }>", {"n": scalar(3), "x": X}, F2, most=9),
    Case("loop_scan", "y = Loop(n, \"\") <body = g (int64 i, bool c) => (bool d, int64 w) "
         "{ d = Identity(c)\n w = Add(i, i) }>", {"n": scalar(3)}, {"y": "int64[a]"}, most=9),
    Case("scan", "y, z = Scan<num_scan_inputs = 1, body = g (float[r] s, float[r] v) => (float[r] t, float[r] w) "
         "{ t = Add(s, v)\n w = Identity(t) }>(s, x)", {"s": reals(4), "x": X}, {"y": "float[a]", "z": "float[a,b]"}),
    Case("attention", "y = Attention(q, k, v)",
         {"q": reals(1, 2, 3, 4), "k": reals(1, 2, 5, 4), "v": reals(1, 2, 5, 4)}, F4, opset=23),
    Case("attention_lengths", "y = Attention(q, k, v, , , , l)",
         {"q": reals(2, 1, 3, 4), "k": reals(2, 1, 5, 4), "v": reals(2, 1, 5, 4), "l": ints(3, 5)}, F4, opset=24),
    Case("rotary", "y = RotaryEmbedding(x, c, s, p)",
         {"x": reals(1, 2, 3, 4), "c": reals(5, 2), "s": reals(5, 2), "p": ints([0, 1, 4])}, F4, opset=23),
    Case("embedding_unique", "y, i, j, c = Unique(x)", {"x": ints(2, 1, 2)},
         {"y": "int64[a]", "i": "int64[a]", "j": "int64[a]", "c": "int64[a]"}),
    Case("nonzero", "y = NonZero(x)", {"x": X}, {"y": "int64[a,b]"}),
    Case("argmax", "y = ArgMax<axis = 1>(x)", {"x": X}, {"y": "int64[a,b]"}),
    Case("label_encoder", "y = ai.onnx.ml.LabelEncoder<keys_int64s = [1, 2], values_floats = [0.5, 1.5]>(x)",
         {"x": ints(1, 2, 3)}, F1),
    Case("one_hot_encoder", "y = ai.onnx.ml.OneHotEncoder<cats_int64s = [1, 2], zeros = 0>(x)",
         {"x": ints(1, 2, 2)}, F2),
    Case("array_feature", "y = ai.onnx.ml.ArrayFeatureExtractor(x, i)", {"x": X, "i": ints(0, 2)}, F2),
    Case("deform_conv", "y = DeformConv<kernel_shape = [2, 2]>(x, w, o)",
         {"x": reals(1, 1, 3, 3), "w": reals(1, 1, 2, 2), "o": reals(1, 8, 2, 2)}, F4, hostile=["o"]),
    Case("multinomial", "y = Multinomial<sample_size = 3, seed = 1.0>(x)", {"x": X}, {"y": "int32[a,b]"}, hostile=[]),
    Case("eye_like", "y = EyeLike<k = 1>(x)", {"x": X}, F2),
    Case("shape_chain", "s = Shape(x)\nt = Mul(s, m)\ny = ConstantOfShape(t)", {"x": X, "m": ints(2, 1)}, F2),
]
