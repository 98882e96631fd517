#!/usr/bin/env python3
# Which tensors of exported networks are trained by default, compared with the framework's parameters.
# SPDX-License-Identifier: Apache-2.0
"""Lists of parameters beside this file, one for each network and exporter: parameters/CASE.txt.

  parameters.py check CAMEO FOLDER...    compares `cameo prepare --list` with the lists
  parameters.py write FOLDER...          writes the lists; needs torch, torchvision, transformers and diffusers

FOLDER/model.onnx is an export of one of the networks below, FOLDER's name is CASE: NETWORK_EXPORTER, `ts` for PyTorch's
older exporter and `dy` for the newer one. The models themselves are not kept here.

`write` builds the network in the framework and asks the file which tensor holds which of its parameters: by name, or by
what exporters note at each node, its module (ts: the name of the node) or its operands (dy: the text of the framework's
node). It does not look at what cameo does. Lines of a list:

  train TENSOR <- PARAMETER..     TENSOR is to be trained; it holds PARAMETER, transposed, cut or with others folded in
  apart PARAMETER <- TENSOR       PARAMETER was merged into TENSOR, of one repeated value: a tensor of its own is trained
  tied  PARAMETER <- TENSOR       PARAMETER was merged into TENSOR, equal by chance or shared, or written again as its
                                  transpose: it is one with it
  left  TENSOR: REASON            TENSOR holds a parameter, but cannot be trained
  gone  PARAMETER: REASON         no tensor of the file holds it
"""
import collections
import json
import os
import re
import subprocess
import sys

import numpy as np
import onnx
from onnx import numpy_helper

LISTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "parameters")
FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)
# Nodes that hand a tensor on, or compute something from it alone.
PASSING = {"Unsqueeze", "Reshape", "Transpose", "Squeeze", "Expand", "Cast", "Slice", "Pad", "Exp", "Neg", "Resize", "Concat"}
RECURRENT = {"LSTM", "GRU", "RNN"}


# Tensors that the notes of the exporters do not reach: what they hold was seen by their values and by the source of the network.
BY_HAND = {
    "deberta_v2_ts14": {"onnx::MatMul_779": ["m.encoder.rel_embeddings.weight"]},
    "dinov2_ts14": {"onnx::Reshape_379": ["m.embeddings.position_embeddings"]},
    "mamba_dy18": {
        "unsqueeze_1": ["m.backbone.layers.0.mixer.dt_proj.bias"],
        "unsqueeze_18": ["m.backbone.layers.1.mixer.dt_proj.bias"],
        "unsqueeze_16": ["m.backbone.layers.0.mixer.D", "m.backbone.layers.1.mixer.D"],
    },
    "whisper_dy18": {"embedding": ["m.model.encoder.embed_positions.weight"]},
}
# Parameters that no gradient reaches in the framework either.
WITHOUT_GRADIENT = {"vits": (r"^m\.duration_predictor\.", "durations are rounded to whole frames, no gradient passes")}


# ---- networks, as the framework builds them ----


def networks():
    import diffusers
    import torch.nn as nn
    import torchvision.models as vision
    import transformers
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    from torchvision.models.regnet import BlockParams, RegNet
    from torchvision.models.swin_transformer import SwinTransformer

    text = dict(vocab_size=64, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
                max_position_embeddings=32)

    def within(module):
        outer = nn.Module()
        outer.m = module
        return outer

    def hub(model, config, **options):
        return lambda: within(getattr(transformers, model)(getattr(transformers, config)(**options)))

    def sequence(**layers):
        outer, inner = nn.Module(), nn.Sequential()
        for place, layer in layers.items():
            inner.add_module(place.lstrip("_"), layer)
        outer.s = inner
        return outer

    def parts(**modules):
        outer = nn.Module()
        for name, module in modules.items():
            setattr(outer, name, module)
        return outer

    return {
        "mlp": lambda: sequence(_0=nn.Linear(10, 16), _1=nn.BatchNorm1d(16), _4=nn.Linear(16, 3)),
        "cnn": lambda: sequence(_0=nn.Conv2d(1, 8, 3), _1=nn.BatchNorm2d(8), _4=nn.Conv2d(8, 16, 3, groups=4),
                                _7=nn.Linear(256, 10)),
        "conv3d": lambda: sequence(_0=nn.Conv3d(2, 4, 3), _1=nn.BatchNorm3d(4), _4=nn.ConvTranspose3d(4, 2, 2),
                                   _7=nn.Linear(2, 3)).s,
        "dynshape_ext": lambda: parts(c=nn.Conv1d(3, 8, 3), l=nn.Linear(8, 5)),
        "embeddingbag": lambda: parts(e=nn.EmbeddingBag(10, 4), f=nn.Embedding(10, 4)),
        "encoder_layer": lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32), 2),
        "lstm_bi2": lambda: nn.LSTM(8, 12, 2, bidirectional=True),
        "albert": hub("AlbertModel", "AlbertConfig", embedding_size=8, **text),
        "bert": hub("BertModel", "BertConfig", **text),
        "bigbird": hub("BigBirdModel", "BigBirdConfig", attention_type="original_full", **text),
        "bloom": hub("BloomForCausalLM", "BloomConfig", vocab_size=64, hidden_size=16, n_layer=2, n_head=2),
        "deberta_v2": hub("DebertaV2Model", "DebertaV2Config", relative_attention=True, pos_att_type=["p2c", "c2p"], **text),
        "dinov2": hub("Dinov2Model", "Dinov2Config", hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                      mlp_ratio=2, image_size=32, patch_size=8),
        "electra": hub("ElectraForPreTraining", "ElectraConfig", embedding_size=8, **text),
        "gpt_neox": hub("GPTNeoXForCausalLM", "GPTNeoXConfig", **text),
        "layoutlm": hub("LayoutLMModel", "LayoutLMConfig", max_2d_position_embeddings=64, **text),
        "mamba": hub("MambaForCausalLM", "MambaConfig", vocab_size=64, hidden_size=16, num_hidden_layers=2, state_size=4,
                     time_step_rank=1, conv_kernel=4),
        "mpnet": hub("MPNetModel", "MPNetConfig", **text),
        "phi3": hub("Phi3ForCausalLM", "Phi3Config", pad_token_id=0, num_key_value_heads=1, **text),
        "qwen2_past": hub("Qwen2ForCausalLM", "Qwen2Config", num_key_value_heads=1, **text),
        "resnet": hub("ResNetForImageClassification", "ResNetConfig", embedding_size=8, hidden_sizes=[8, 16, 16, 32],
                      depths=[1, 1, 1, 1], num_labels=5),
        "rwkv": hub("RwkvForCausalLM", "RwkvConfig", vocab_size=64, hidden_size=16, num_hidden_layers=2, context_length=16),
        "sd_vae_enc": lambda: within(diffusers.AutoencoderKL(
            down_block_types=("DownEncoderBlock2D", "DownEncoderBlock2D"), up_block_types=("UpDecoderBlock2D",) * 2,
            block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4)),
        "t5": hub("T5ForConditionalGeneration", "T5Config", vocab_size=64, d_model=16, d_kv=8, d_ff=32, num_layers=2,
                  num_heads=2),
        "vits": hub("VitsModel", "VitsConfig", vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                    window_size=2, ffn_dim=16, flow_size=16, spectrogram_bins=9, upsample_initial_channel=16,
                    upsample_rates=[2, 2], upsample_kernel_sizes=[4, 4], resblock_kernel_sizes=[3],
                    resblock_dilation_sizes=[[1, 3]], prior_encoder_num_flows=1, prior_encoder_num_wavenet_layers=2,
                    posterior_encoder_num_wavenet_layers=2, duration_predictor_num_flows=1),
        "wav2vec2": hub("Wav2Vec2ForCTC", "Wav2Vec2Config", vocab_size=32, hidden_size=16, num_hidden_layers=2,
                        num_attention_heads=2, intermediate_size=32, conv_dim=(8, 8, 8), conv_stride=(5, 2, 2),
                        conv_kernel=(10, 3, 3), num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2),
        "whisper": hub("WhisperForConditionalGeneration", "WhisperConfig", vocab_size=64, d_model=16, encoder_layers=2,
                       decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32,
                       decoder_ffn_dim=32, num_mel_bins=8, max_source_positions=20, max_target_positions=16,
                       pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1),
        "xlnet": hub("XLNetModel", "XLNetConfig", vocab_size=64, d_model=16, n_layer=2, n_head=2, d_inner=32),
        # Widths of these differ from the files'; names do not.
        "resnet18": lambda: within(vision.resnet18(num_classes=10)),
        "resnext50": lambda: within(vision.resnext50_32x4d(num_classes=10)),
        "inception_v3": lambda: within(vision.inception_v3(num_classes=10, init_weights=False)),
        "lraspp": lambda: within(vision.segmentation.lraspp_mobilenet_v3_large(weights_backbone=None, num_classes=1)),
        "mobilenet_v3_small": lambda: vision.mobilenet_v3_small(num_classes=10),
        "regnet": lambda: RegNet(BlockParams([1, 3, 2], [8, 16, 24], [8] * 3, [1.0] * 3, [2] * 3, 0.25)),
        "convnext": lambda: ConvNeXt([CNBlockConfig(8, 16, 1), CNBlockConfig(16, 24, 1), CNBlockConfig(24, 32, 2),
                                      CNBlockConfig(32, None, 1)], num_classes=10),
        "swin": lambda: SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=10),
    }


# ---- what the file says ----


def module_of(name):
    return name.rpartition(".")[0]


class File:
    """An exported model: its float tensors, and who reads them."""

    def __init__(self, folder):
        self.model = onnx.load(os.path.join(folder, "model.onnx"))
        graph = self.model.graph
        self.arrays = {t.name: numpy_helper.to_array(t) for t in graph.initializer if t.data_type in FLOATS and t.dims}
        self.copies = {}  # what copies of an initializer are called: the older exporter's mark of merged tensors
        self.readers = collections.defaultdict(list)
        self.is_newer = any(n.metadata_props for n in graph.node)
        self.walk(graph)
        for node in graph.node: # a copy of anything else is of one tensor that the network uses twice
            if node.op_type == "Identity" and node.input[0] in self.arrays and self.is_constant(node.input[0]):
                self.copies[node.output[0]] = node.input[0]

    def walk(self, graph):
        for node in graph.node:
            for index, name in enumerate(node.input):
                self.readers[name].append((node, index))
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    self.walk(attribute.g)

    def is_constant(self, tensor):
        array = self.arrays[self.copies.get(tensor, tensor)]
        return array.size > 0 and bool(np.all(array == array.flat[0])) and sum(d != 1 for d in array.shape) <= 1

    def uses(self, name, depth=8):
        """Nodes that do something with a tensor, and as which operand."""
        for node, index in self.readers[name]:
            if node.op_type == "Identity" and node.output[0] in self.copies:
                continue
            if depth and (node.op_type in PASSING or node.op_type == "Identity"):
                yield from self.uses(node.output[0], depth - 1)
            yield node, index

    def tensors(self):
        return list(self.arrays) + list(self.copies)


def scope(node):
    """The module that a node of the older exporter is named after: /a/b.0/Conv is of a.b.0."""
    path = []
    for part in node.name.strip("/").split("/")[:-1]:
        if path and part.startswith(path[-1] + "."):
            path[-1] = part
        else:
            path.append(part)
    return ".".join(path)


def operands(node, mangled):
    """The parameters that the framework's node read, in their order."""
    text = next((e.value for e in node.metadata_props if e.key == "pkg.torch.onnx.fx_node"), "")
    return [mangled[t] for t in re.findall(r"%(p_\w+)", text) if t in mangled]


def fits(array, shape, sizes_known):
    if sizes_known:
        return array.size == int(np.prod(shape))
    return (sum(d != 1 for d in array.shape) > 1) == (len(shape) > 1)


def read_by(file, node, array, parameters, mangled, sizes_known):
    """The parameters that a node may have read: those of its module, else of a part of it that is not called itself."""
    if file.is_newer:
        return operands(node, mangled)
    names = {scope(node), re.sub(r"_\d+(?=\.|$)", "", scope(node))}
    names |= {"m." + n for n in names}
    own = [p for p in parameters if module_of(p) in names]
    if any(fits(array, parameters[p], sizes_known) for p in own):
        return own
    return own + [p for p in parameters if module_of(module_of(p)) in names]


def of_node(file, node, index, array, parameters, mangled, sizes_known):
    read = read_by(file, node, array, parameters, mangled, sizes_known)
    text = next((e.value for e in node.metadata_props if e.key == "pkg.torch.onnx.fx_node"), "")
    if node.op_type == "BatchNormalization" and index > 2 or node.op_type == "InstanceNormalization" and "group_norm" in text:
        return [] # running statistics; ones and zeros of the exporter's
    if node.op_type in RECURRENT:
        read = [p for p in read if ("weight_ih", "weight_hh", "bias")[min(index, 3) - 1] in p]
        return ["|".join(read)] if read and index in (1, 2, 3) else []
    found = [p for p in read if fits(array, parameters[p], sizes_known)]
    if node.op_type in ("Add", "Sub"): # what is added has the parameter's shape
        found = [p for p in found if [d for d in parameters[p] if d != 1] == [d for d in array.shape if d != 1]]
    if len(found) > 1 and node.op_type in ("Add", "Mul", "Sub", "LayerNormalization", "InstanceNormalization"):
        shifts = node.op_type in ("Add", "Sub") or index == 2
        found = [p for p in found if p.endswith("bias") == shifts] or found
    if not found and read and node.op_type == "Conv" and index in (1, 2): # what was folded into it keeps its place
        module, leaf = module_of(read[0]), "weight" if index == 1 else "bias"
        found = [p for p in parameters if p.startswith(module + ".") and leaf in p[len(module):]] or [module + "." + leaf]
    return ["|".join(found)] if found else []


def holds(file, parameters, sizes_known):
    """Which parameters each tensor of the file holds."""
    mangled = {"p_" + re.sub(r"\W", "_", p).lower(): p for p in parameters}
    result = {}
    for tensor in file.tensors():
        array = file.arrays[file.copies.get(tensor, tensor)]
        read = []
        for node, index in file.uses(tensor):
            read += [p for p in of_node(file, node, index, array, parameters, mangled, sizes_known) if p not in read]
        if tensor in parameters:
            read = [tensor] + [p for p in read if p != tensor and file.is_newer and "|" not in p]
        if read:
            result[tensor] = read
    return result


def same(module, a, b):
    return module.get_parameter(a) is module.get_parameter(b)


def write(folder, build):
    import torch.nn as nn

    case = os.path.basename(folder.rstrip("/"))
    network = re.sub(r"_(ts|dy)\d+$", "", case)
    if network not in build:
        return False
    module = build[network]()
    parameters = {n: tuple(p.shape) for n, p in module.named_parameters(remove_duplicate=False)}
    file = File(folder)
    named = [t for t in file.tensors() if t in parameters]
    sizes_known = all(fits(file.arrays[file.copies.get(t, t)], parameters[t], True) for t in named)
    lines, seen, holders = [], set(), {}
    pattern, why = WITHOUT_GRADIENT.get(network, ("^$", ""))
    for tensor, read in {**holds(file, parameters, sizes_known), **BY_HAND.get(case, {})}.items():
        if re.search(pattern, read[0]):
            lines.append(f"left  {tensor}: {why}")
            seen.update(read)
            continue
        holder = holders.setdefault(id(module.get_parameter(read[0])) if "|" not in read[0] else tensor, tensor)
        lines.append(f"train {tensor} <- {' '.join(read[:1])}" if holder == tensor else f"tied  {read[0]} <- {holder}")
        seen.update(read[0].split("|"))
        for other in read[1:]:
            seen.add(other)
            lines.append(f"{'apart' if file.is_constant(tensor) else 'tied '} {other} <- {tensor}")
    for parameter in parameters:
        if parameter in seen:
            continue
        owner = module.get_submodule(module_of(parameter)) if module_of(parameter) else module
        twin = next((p for p in seen if p in parameters and same(module, p, parameter)), None)
        if twin:
            reason = "the framework's own tie to " + twin
        elif isinstance(owner, nn.modules.batchnorm._BatchNorm):
            reason = "folded into the layer before it"
        elif parameter.endswith(".bias") and module_of(parameter) + ".weight" in seen:
            reason = "a bias of zeros, which the exporter leaves out"
        elif isinstance(owner, nn.Embedding):
            reason = "an embedding looked up with constant indices, or not used"
        else:
            reason = "folded into a constant, or no output depends on it"
        lines.append(f"gone  {parameter}: {reason}")
    with open(os.path.join(LISTS, case + ".txt"), "w") as out:
        out.write("\n".join(lines) + "\n")
    return True


# ---- what cameo does ----


def trained(cameo, folder, file):
    """What is trained, whichever output the loss reads."""
    names, complaints = set(), []
    outputs = [o.name for o in file.model.graph.output if o.type.tensor_type.elem_type in FLOATS]
    for output in outputs:
        done = subprocess.run([cameo, "prepare", os.path.join(folder, "model.onnx"), "--loss", "output:" + output,
                               "--optimizer", "sgd", "--json"], capture_output=True, text=True)
        if done.returncode == 0:
            names.update(c["name"] for c in json.loads(done.stdout)["initializers"] if c["trained"])
        else:
            complaints.append(done.stderr.strip())
    return names, complaints


def check(cameo, folder):
    case = os.path.basename(folder.rstrip("/"))
    path = os.path.join(LISTS, case + ".txt")
    if not os.path.exists(path):
        return None
    file = File(folder)
    names, complaints = trained(cameo, folder, file)
    tensors = set(file.tensors())
    have = collections.Counter(n if n in tensors else module_of(n) for n in names)
    want = collections.Counter()
    with open(path) as lines:
        for line in lines:
            kind, name = line.split()[:2]
            if kind == "train":
                want[name] += 1
            elif kind == "apart":
                want[module_of(name)] += 1
    for name in list((want - have).elements()): # a module may be part of the one that runs it
        near = [n for n in (have - want) if n and name.startswith(n + ".")]
        if near:
            have[near[0]] -= 1
            have[name] += 1
    wrong = [f"{case}: not trained: {n}" for n in (want - have).elements()]
    wrong += [f"{case}: trained, no parameter: {n}" for n in (have - want).elements()]
    return wrong + ([f"{case}: {c}" for c in complaints] if not names else [])


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("check", "write"):
        sys.exit(__doc__)
    failed = done = 0
    build = networks() if sys.argv[1] == "write" else None
    for folder in sys.argv[2 if build else 3:]:
        if build:
            done += write(folder, build)
            continue
        wrong = check(sys.argv[2], folder)
        if wrong is not None:
            done += 1
            failed += bool(wrong)
            print("\n".join(wrong) if wrong else f"{os.path.basename(folder)}: as listed")
    print(f"{done} lists" + ("" if build else f", {failed} not as listed"))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
