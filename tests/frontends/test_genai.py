#!/usr/bin/env python3
"""Language models that ONNX Runtime GenAI's model builder wrote: Cameo generates the tokens of ONNX Runtime.

The networks are those of Transformers with random weights. A prompt and then single tokens go through the file with its
cache of keys and values; the largest logit is the next token. Tokens must be equal, and logits too but for 1e-5 of the
largest. In quantized models activations are rounded to int8, so that the last bit of a float can become a step of that:
their logits may differ by a fiftieth of the largest, and a sequence is compared up to the first token whose two largest
logits are closer than this.
"""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import os
import sys

import numpy as np
import onnx
import onnxruntime
import onnxruntime_genai
import tokenizers
import torch
import transformers
from onnxruntime_genai.models.builder import create_model, parse_extra_options

import cameo
import common

WORDS, PROMPT, STEPS = 512, 12, 24
WINDOW = 8
EXACT, ROUNDED = 1e-5, 2e-2
COMMON = {"vocab_size": WORDS, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "bos_token_id": 1,
          "eos_token_id": 2, "pad_token_id": 0}
NETWORKS = {
    "llama": lambda: transformers.LlamaConfig(**COMMON),
    "llama_tied": lambda: transformers.LlamaConfig(**{**COMMON, "num_key_value_heads": 4}, tie_word_embeddings=True),
    "qwen3": lambda: transformers.Qwen3Config(**COMMON, head_dim=16),
    "gemma2": lambda: transformers.Gemma2Config(**COMMON, head_dim=16, query_pre_attn_scalar=16, sliding_window=WINDOW),
    "mistral": lambda: transformers.MistralConfig(**COMMON, sliding_window=WINDOW),
    # ONNX Runtime turns pairs in groups of 8.
    "phi": lambda: transformers.PhiConfig(**{**COMMON, "hidden_size": 128, "num_key_value_heads": 4},
                                          partial_rotary_factor=0.5),
    "phi3": lambda: transformers.Phi3Config(**COMMON, original_max_position_embeddings=128, sliding_window=WINDOW),
}
TYPES = {"tensor(float)": np.float32, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8, "tensor(int64)": np.int64}


def save_network(name, folder):
    """The network with weights that are large enough for logits to differ, and a tokenizer of words w0, w1, .."""
    torch.manual_seed(7)
    network = transformers.AutoModelForCausalLM.from_config(NETWORKS[name]()).float()
    with torch.no_grad():
        for key, weight in network.named_parameters():
            if weight.dim() > 1:
                weight.normal_(0, 1 if "embed" in key else weight.shape[1] ** -0.5)
            else:
                weight.add_(0.1 * torch.randn(weight.shape))
    network.save_pretrained(folder)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(WORDS)}, unk_token="w0"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, bos_token="w1", eos_token="w2", pad_token="w0",
                                         unk_token="w0").save_pretrained(folder)


def write_scales(path, layers):
    scales = {key: [0.02 * (layer + 1) for layer in range(layers)] for key in ("k_scales", "v_scales")}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"scales": scales, "qmax": 128}, file)


class Files:
    """What a model's cache looks like: its inputs, and the rows of window caches."""

    def __init__(self, path, session):
        with open(os.path.join(os.path.dirname(path), "genai_config.json"), encoding="utf-8") as file:
            decoder = json.load(file)["model"]["decoder"]
        self.heads, self.size = decoder["num_key_value_heads"], decoder["head_size"]
        self.inputs = {value.name: TYPES[value.type] for value in session.get_inputs()}
        self.outputs = [value.name for value in session.get_outputs()]
        self.windows = {}
        for node in onnx.load(path, load_external_data=False).graph.node:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            if attributes.get("sliding_window_cache"):
                self.windows.update(dict.fromkeys(node.input[3:5], attributes["local_window_size"]))

    def empty_cache(self, batch, room, slack):
        """room: 0 for a cache that grows; slack: rows of window caches past the window."""
        return {name: np.zeros((batch, self.heads, self.windows[name] + slack if name in self.windows else room,
                                self.size // 2 if dtype == np.uint8 else self.size), dtype)
                for name, dtype in self.inputs.items() if name.startswith("past")}


def generate(run, files, prompt, cache):
    """Tokens and their logits, (batch, steps) and (steps, batch, words)."""
    batch, total = prompt.shape
    ids, tokens, logits = prompt, [], []
    for _ in range(STEPS):
        length = ids.shape[1]
        given = {"input_ids": ids, "attention_mask": np.ones((batch, total), np.int64),
                 "position_ids": np.tile(np.arange(total - length, total, dtype=np.int64), (batch, 1))}
        results = dict(zip(files.outputs, run({**cache, **{n: x for n, x in given.items() if n in files.inputs}})))
        logits.append(results["logits"][:, -1])
        tokens.append(logits[-1].argmax(-1))
        cache = {name: results[name.replace("past_key_values", "present")] for name in cache}
        ids, total = tokens[-1][:, None].astype(np.int64), total + 1
    return np.array(tokens).T, np.array(logits)


def difference(tokens, logits, wanted, wanted_logits, tolerance):
    """None or a sentence, for one sequence. The tolerance is a part of the largest logit."""
    step = int((tokens != wanted).argmax()) if (tokens != wanted).any() else STEPS - 1
    limit = tolerance * np.abs(wanted_logits).max()
    worst = np.abs(logits - wanted_logits)[:step + 1].max()
    gap = wanted_logits[step, wanted[step]] - wanted_logits[step, tokens[step]]
    if not worst <= limit:
        return f"logits differ by up to {worst:.3g}, more than {limit:.3g}"
    if not gap <= limit:
        return f"token {step} is {tokens[step]}, not {wanted[step]}, whose logit is larger by {gap:.3g}"
    return None


def compare(path, tolerance):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")  # as the file says, not int8
    peer = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    files = Files(path, peer)
    try:
        own = cameo.Session(cameo.load(path), threads=1)
    except cameo.Error as error:
        raise common.Stopped("cameo", common.one_line(error)) from error
    draw = np.random.default_rng(1)
    for batch in (1, 2):
        for room, slack in ((0, 0), (PROMPT + STEPS + 3, 5)):
            prompt = draw.integers(3, WORDS, (batch, PROMPT))
            wanted, wanted_logits = generate(lambda feeds: peer.run(files.outputs, feeds), files, prompt,
                                             files.empty_cache(batch, room, slack))
            tokens, logits = generate(lambda feeds: own.run(files.outputs, feeds), files, prompt,
                                      files.empty_cache(batch, room, slack))
            where = f"batch {batch}, cache of {room or 'growing'} rows"
            for i in range(batch):
                differs = difference(tokens[i], logits[:, i], wanted[i], wanted_logits[:, i], tolerance)
                if differs:
                    raise common.Stopped("cameo", f"{where}: {differs}")
    return {"opset": common.opset_of(path)}


def build(folder, name, precision, options):
    network, to, scales = (os.path.join(folder, part) for part in ("network", "model", "scales.json"))
    save_network(name, network)
    write_scales(scales, COMMON["num_hidden_layers"])
    words = [f"{key}={value}" for key, value in options.items()]
    if "kv_cache_quant_scheme" in options:
        words.append(f"kv_cache_scale_file={scales}")
    call = "", network, to, precision, "cpu", os.path.join(folder, "cache")
    with contextlib.redirect_stdout(sys.stderr):
        common.convert(lambda: create_model(*call, **parse_extra_options(*call, words)))
    return os.path.join(to, "model.onnx")


def row(name, label, precision, **options):
    """options: as for --extra_options of the builder's command."""
    def run(folder):
        tolerance = EXACT if precision == "fp32" and not options else ROUNDED
        return compare(build(folder, name, precision, options), tolerance)
    return common.Row("genai", f"{name}_{label}", run)


ROWS = [row(name, precision, precision) for name in NETWORKS for precision in ("fp32", "int4")]
ROWS += [row("llama", "int8", "int8"),
         row("llama", "int4_asymmetric", "int4", is_symmetric="false"),
         row("llama", "int4_blocks_of_16", "int4", block_size=16),
         row("llama", "int4_level_1", "int4", accuracy_level=1),
         row("llama", "int4_mixed", "int4", matmul_mixed_precision="last_matmul:int8"),
         row("llama", "int4_qdq", "int4", use_qdq="true"),
         row("llama", "fp32_cache_int8", "fp32", kv_cache_quant_scheme="int8_per_tensor"),
         row("llama", "fp32_cache_int4", "fp32", kv_cache_quant_scheme="int4_per_tensor"),
         row("gemma2", "int4_cache_int8", "int4", kv_cache_quant_scheme="int8_per_tensor")]

if __name__ == "__main__":
    common.main(ROWS, {"onnxruntime-genai": onnxruntime_genai.__version__, "transformers": transformers.__version__})
