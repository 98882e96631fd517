"""PyTorch: networks of torchvision and transformers in small sizes, with random weights."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torchvision
import transformers
from torch import nn
from torchvision import models, ops

import common
from pytorch_export import Network, floats, integers, versions

transformers.logging.set_verbosity_error()


def vision(make, **named):
    def build():
        model = make(weights=None, num_classes=6, **named)
        for module in model.modules():
            if isinstance(module, (nn.Dropout, ops.StochasticDepth)):
                module.p = 0.0
        return model
    return build


def images(n, size):
    return lambda more=0: (floats(n, 3, size, size),)


class First(nn.Module):
    """The first output of a model of transformers."""

    def __init__(self, model, *names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *arguments):
        return self.model(**dict(zip(self.names, arguments)), return_dict=False)[0]


SIZES = {"vocab_size": 60, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
         "max_position_embeddings": 24, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def text(model, config, *names, attention="eager", **settings):
    def build():
        made = config(**{**SIZES, **settings})
        for name in dir(made):
            if "drop" in name and isinstance(getattr(made, name, None), float):
                setattr(made, name, 0.0)
        made._attn_implementation = attention
        if hasattr(made, "use_cache"):
            made.use_cache = False
        return First(model(made), *(names or ("input_ids", "attention_mask")))
    return build


def ids(more=0):
    mask = torch.ones(2, 10, dtype=torch.int64)
    mask[1, 7:] = 0
    return integers(3, 60, 2, 10), mask


class Detect(nn.Module):
    """Boxes with scores, the best kept: as detectors end."""

    def forward(self, boxes, scores):
        corners = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:].abs() + 0.1], 1)
        kept = ops.nms(corners, scores, 0.4)
        return corners[kept], scores[kept], kept


class Pooled(nn.Module):
    def __init__(self, pool):
        super().__init__()
        self.pool = pool

    def forward(self, x, boxes):
        return self.pool(x, [boxes.sort(1).values * 3])


class BatchedDetect(nn.Module):
    def forward(self, boxes, scores, classes):
        return ops.batched_nms(torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:].abs()], 1), scores, classes, 0.5)


BOXES = lambda more=0: (torch.rand(30, 4) * 4, torch.rand(30))  # noqa: E731
NETWORKS = [
    Network("torchvision_resnet18", vision(models.resnet18), images(4, 40), "cross-entropy", "sgd_slow", train_mode=True,
            train_tolerance=10.0),
    Network("torchvision_mobilenet_v3", vision(models.mobilenet_v3_small, width_mult=0.5), images(4, 48)),
    Network("torchvision_squeezenet", vision(models.squeezenet1_1), images(2, 40), "cross-entropy", "sgd"),
    Network("torchvision_shufflenet", vision(models.shufflenet_v2_x0_5), images(2, 48)),
    Network("torchvision_convnext", lambda: models.ConvNeXt([models.convnext.CNBlockConfig(8, 16, 1),
                                                             models.convnext.CNBlockConfig(16, None, 1)],
                                                             num_classes=6),
            images(2, 32)),
    Network("torchvision_vit", lambda: models.VisionTransformer(16, 8, 2, 2, 24, 32, num_classes=6), images(2, 16),
            "cross-entropy", "sgd"),
    Network("torchvision_swin", lambda: models.SwinTransformer([4, 4], 12, [1, 1], [2, 2], [2, 2],
                                                               stochastic_depth_prob=0.0,
                                                               num_classes=6), images(1, 32)),
    Network("torchvision_fcn_head", lambda: models.segmentation.fcn.FCNHead(16, 5),
            lambda more=0: (floats(2, 16, 6, 6),)),
    Network("torchvision_nms", Detect, BOXES),
    Network("torchvision_batched_nms", BatchedDetect, lambda more=0: (*BOXES(), integers(0, 3, 30))),
    Network("torchvision_roi_align", lambda: Pooled(ops.RoIAlign(3, 0.5, 2)),
            lambda more=0: (floats(1, 4, 16, 16), torch.rand(5, 4) * 4)),
    Network("torchvision_roi_align_aligned", lambda: Pooled(ops.RoIAlign(3, 0.5, 2, aligned=True)),
            lambda more=0: (floats(1, 4, 16, 16), torch.rand(5, 4) * 4)),
    Network("torchvision_roi_pool", lambda: Pooled(ops.RoIPool(3, 0.5)),
            lambda more=0: (floats(1, 4, 16, 16), torch.rand(5, 4) * 4)),
    Network("torchvision_deform_conv", lambda: ops.DeformConv2d(3, 4, 3),
            lambda more=0: (floats(1, 3, 6, 6), floats(1, 18, 4, 4)), opset=19),
    Network("bert", text(transformers.BertModel, transformers.BertConfig), ids, "mse", "sgd"),
    Network("bert_sdpa", text(transformers.BertModel, transformers.BertConfig, attention="sdpa"), ids),
    Network("distilbert", text(transformers.DistilBertModel, transformers.DistilBertConfig, dim=24, hidden_dim=32,
                               n_heads=2,
                               n_layers=2), ids, "mse", "sgd"),
    Network("albert", text(transformers.AlbertModel, transformers.AlbertConfig, embedding_size=12), ids, "mse", "sgd"),
    Network("gpt2", text(transformers.GPT2LMHeadModel, transformers.GPT2Config, n_embd=24, n_layer=2, n_head=2,
                         n_positions=24),
            ids, "mse", "sgd"),
    Network("llama", text(transformers.LlamaForCausalLM, transformers.LlamaConfig, num_key_value_heads=1), ids, "mse",
            "sgd"),
    Network("qwen2", text(transformers.Qwen2ForCausalLM, transformers.Qwen2Config, num_key_value_heads=1), ids, "mse",
            "sgd"),
    Network("gpt_neox", text(transformers.GPTNeoXForCausalLM, transformers.GPTNeoXConfig), ids),
    Network("t5_encoder", text(transformers.T5EncoderModel, transformers.T5Config, d_model=24, d_kv=12, d_ff=32,
                               num_layers=2,
                               num_heads=2), ids, "mse", "sgd"),
    Network("vit", lambda: First(transformers.ViTModel(transformers.ViTConfig(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=8,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)), "pixel_values"), images(2, 16), "mse", "sgd"),
]

if __name__ == "__main__":
    common.main([row for network in NETWORKS for row in network.rows()],
                {**versions(), "torchvision": torchvision.__version__.split("+")[0],
                 "transformers": transformers.__version__})
