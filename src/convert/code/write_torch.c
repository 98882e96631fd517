/* PyTorch: an nn.Module, its state_dict, a check. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/code/code_files.h"
#include "convert/code/write_torch_train.h"

#include "base/folder_save.h"
#include "convert/frameworks/torch/torch_file.h"
#include "convert/frameworks/torch/torch_state.h"

#include <string.h>

/* Attributes of nn.Module, and names that the generated files use. */
static const char *const taken[] = {
    "F",
    "Model",
    "T_destination",
    "_apply",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_buffers",
    "_call_impl",
    "_compiled_call_impl",
    "_forward_hooks",
    "_forward_hooks_always_called",
    "_forward_hooks_with_kwargs",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_get_backward_hooks",
    "_get_backward_pre_hooks",
    "_get_name",
    "_is_full_backward_hook",
    "_load_from_state_dict",
    "_load_state_dict_post_hooks",
    "_load_state_dict_pre_hooks",
    "_maybe_warn_non_full_backward_hook",
    "_modules",
    "_named_members",
    "_non_persistent_buffers_set",
    "_parameters",
    "_register_load_state_dict_pre_hook",
    "_register_state_dict_hook",
    "_replicate_for_data_parallel",
    "_save_to_state_dict",
    "_slow_forward",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_version",
    "_wrapped_call_impl",
    "abs",
    "add_module",
    "all",
    "any",
    "append",
    "apply",
    "bfloat16",
    "bool",
    "buffers",
    "call_super_init",
    "children",
    "clear",
    "compile",
    "complex",
    "cpu",
    "cuda",
    "dict",
    "double",
    "dump_patches",
    "enumerate",
    "eval",
    "extend",
    "extra_repr",
    "float",
    "forward",
    "get_buffer",
    "get_extra_state",
    "get_parameter",
    "get_submodule",
    "half",
    "insert",
    "int",
    "ipu",
    "isinstance",
    "items",
    "keys",
    "len",
    "list",
    "load",
    "load_state_dict",
    "map",
    "math",
    "max",
    "min",
    "modules",
    "mtia",
    "named_buffers",
    "named_children",
    "named_modules",
    "named_parameters",
    "nn",
    "np",
    "object",
    "parameters",
    "pop",
    "range",
    "register_backward_hook",
    "register_buffer",
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_load_state_dict_post_hook",
    "register_load_state_dict_pre_hook",
    "register_module",
    "register_parameter",
    "register_state_dict_post_hook",
    "register_state_dict_pre_hook",
    "requires_grad_",
    "reversed",
    "round",
    "set",
    "set_extra_state",
    "set_submodule",
    "share_memory",
    "slice",
    "sorted",
    "state_dict",
    "str",
    "sum",
    "super",
    "to",
    "to_empty",
    "torch",
    "train",
    "training",
    "tuple",
    "type",
    "update",
    "values",
    "xpu",
    "zero_grad",
    "zip",
    NULL,
};

static const struct cm_code_type types[CM_DTYPE_COUNT] = {
    [CM_FLOAT] = {"torch.float32", CM_FLOAT},
    [CM_UINT8] = {"torch.uint8", CM_UINT8},
    [CM_INT8] = {"torch.int8", CM_INT8},
    [CM_UINT16] = {"torch.int32", CM_INT32},
    [CM_INT16] = {"torch.int16", CM_INT16},
    [CM_INT32] = {"torch.int32", CM_INT32},
    [CM_INT64] = {"torch.int64", CM_INT64},
    [CM_BOOL] = {"torch.bool", CM_BOOL},
    [CM_FLOAT16] = {"torch.float16", CM_FLOAT16},
    [CM_DOUBLE] = {"torch.float64", CM_DOUBLE},
    [CM_UINT32] = {"torch.int64", CM_INT64},
    [CM_UINT64] = {"torch.int64", CM_INT64},
    [CM_COMPLEX64] = {"torch.complex64", CM_COMPLEX64},
    [CM_COMPLEX128] = {"torch.complex128", CM_COMPLEX128},
    [CM_BFLOAT16] = {"torch.bfloat16", CM_BFLOAT16},
    [CM_FLOAT8E4M3FN] = {"torch.float8_e4m3fn", CM_FLOAT8E4M3FN},
    [CM_FLOAT8E4M3FNUZ] = {"torch.float8_e4m3fnuz", CM_FLOAT8E4M3FNUZ},
    [CM_FLOAT8E5M2] = {"torch.float8_e5m2", CM_FLOAT8E5M2},
    [CM_FLOAT8E5M2FNUZ] = {"torch.float8_e5m2fnuz", CM_FLOAT8E5M2FNUZ},
    [CM_UINT4] = {"torch.uint8", CM_UINT8},
    [CM_INT4] = {"torch.int8", CM_INT8},
    [CM_FLOAT4E2M1] = {"torch.float32", CM_FLOAT},
    [CM_FLOAT8E8M0] = {"torch.float32", CM_FLOAT},
    [CM_UINT2] = {"torch.uint8", CM_UINT8},
    [CM_INT2] = {"torch.int8", CM_INT8},
    [CM_FLOAT6E2M3] = {"torch.float32", CM_FLOAT},
    [CM_FLOAT6E3M2] = {"torch.float32", CM_FLOAT},
};

/* ---- where tensors are ---- */

/* The numbers below a module are those of a list if none is missing; otherwise they are keys. */
static bool is_list(const struct cm_code *code, struct cm_str module)
{
    struct cm_map seen = {0};
    size_t most = 0, count = 0;
    bool added;
    uint64_t *known = cm_map_insert(code->lists, code->arena, module, &added);

    if (!added)
        return *known == 1;

    for (size_t i = 0; i < code->tensors.count; i++) {
        const struct cm_code_tensor *tensor = &code->tensors.items[i];
        const struct cm_str path = tensor->path;
        size_t at = module.size + 1;

        if (!tensor->is_used || path.size <= at || path.data[module.size] != '.' ||
            memcmp(path.data, module.data, module.size) != 0)
            continue;
        const struct cm_str part = cm_code_part(path, &at);
        int64_t number = 0;
        if (cm_str_to_int64(part, &number) && cm_map_add(&seen, code->arena, part)) {
            count++;
            most = (size_t)number > most ? (size_t)number : most;
        }
    }
    known = cm_map_find(code->lists, module);
    *known = count && most + 1 == count ? 1 : 2;
    return *known == 1;
}

/* "self.layers[0].fc" for the first `end` bytes of a path. */
static struct cm_str place_of(const struct cm_code *code, struct cm_str path)
{
    struct cm_str out = CM_STR("self");
    const struct cm_str prefix = code->within ? code->within->prefix : CM_STR_NONE;
    const bool is_inside =
        prefix.size && path.size >= prefix.size && memcmp(path.data, prefix.data, prefix.size) == 0;

    for (size_t at = is_inside ? prefix.size : 0; at < path.size;) {
        const size_t begin = at;
        const struct cm_str part = cm_code_part(path, &at);
        const struct cm_str around = {path.data, begin ? begin - 1 : 0};

        if (!cm_code_is_number(part))
            out = cm_arena_printf(code->arena, "%.*s.%.*s", CM_STR_ALL(out), CM_STR_ALL(part));
        else if (is_list(code, around))
            out = cm_arena_printf(code->arena, "%.*s[%.*s]", CM_STR_ALL(out), CM_STR_ALL(part));
        else
            out = cm_arena_printf(code->arena, "%.*s[\"%.*s\"]", CM_STR_ALL(out), CM_STR_ALL(part));
    }
    return out;
}

static struct cm_str layer_place(const struct cm_code *code, struct cm_str path)
{
    return place_of(code, path);
}

static struct cm_str tensor_place(const struct cm_code *code, size_t i)
{
    const struct cm_code_tensor *tensor = &code->tensors.items[i];

    if (code->is_function && tensor->contents) {
        const struct cm_str list = cm_code_nested(code->arena, tensor->contents);
        return cm_arena_printf(code->arena, "torch.tensor(%.*s, dtype=%s)", CM_STR_ALL(list),
                               cm_code_type(code, tensor->dtype));
    }
    return place_of(code, code->tensors.items[i].path);
}

/* ---- __init__ ---- */

static void put(struct cm_code *code, struct cm_code_text *out, struct cm_str line)
{
    cm_code_statement(code, out, 8, line);
}

/* A module in the one around it, "nn.Linear(4, 3)". */
static void put_module(struct cm_code *code, struct cm_code_text *out, struct cm_str path,
                       struct cm_str made)
{
    const struct cm_str around = cm_str_before_last(path, '.');

    if (cm_code_is_number(cm_str_after_last(path, '.')) && around.size && is_list(code, around))
        put(code, out,
            cm_arena_printf(code->arena, "%.*s.append(%.*s)", CM_STR_ALL(place_of(code, around)),
                            CM_STR_ALL(made)));
    else
        put(code, out,
            cm_arena_printf(code->arena, "%.*s = %.*s", CM_STR_ALL(place_of(code, path)),
                            CM_STR_ALL(made)));
}

/* The modules that a tensor is in, each once, outer ones first. */
static void put_modules(struct cm_code *code, struct cm_code_text *out, struct cm_map *made,
                        struct cm_str path)
{
    for (size_t at = code->within ? code->within->prefix.size : 0; at < path.size;) {
        (void)cm_code_part(path, &at);
        const struct cm_str module = {path.data, at ? at - 1 : 0};
        size_t next = at;

        if (at >= path.size || !cm_map_add(made, code->arena, module))
            continue;
        const bool has_numbers = cm_code_is_number(cm_code_part(path, &next));
        const char *what = !has_numbers            ? "nn.Module()"
                           : is_list(code, module) ? "nn.ModuleList()"
                                                   : "nn.ModuleDict()";
        put_module(code, out, module, cm_str(what));
    }
}

static struct cm_str dims_text(struct cm_code *code, const struct cm_shape *shape)
{
    struct cm_code_text out = {0};

    for (int i = 0; i < shape->rank; i++)
        cm_code_putf(code, &out, "%s%lld", i ? ", " : "", (long long)shape->dims[i]);
    if (!shape->rank)
        cm_code_putf(code, &out, "()");
    return cm_code_text_str(&out);
}

static void put_tensor(struct cm_code *code, struct cm_code_text *out, size_t i)
{
    const struct cm_code_tensor *tensor = &code->tensors.items[i];
    const struct cm_str place = tensor_place(code, i), path = tensor->path,
                        name = cm_str_after_last(path, '.'),
                        module = place_of(code, cm_str_before_last(path, '.'));
    const char *type = cm_code_type(code, tensor->dtype);

    if (tensor->dtype == CM_STRING) {
        const struct cm_str list = cm_code_nested(code->arena, tensor->contents);
        put(code, out,
            cm_arena_printf(code->arena, "%.*s = np.array(%.*s, dtype=object)", CM_STR_ALL(place),
                            CM_STR_ALL(list)));
        return;
    }
    if (tensor->is_inside) {
        const struct cm_str list = cm_code_nested(code->arena, tensor->contents);
        const bool needs = tensor->dtype != CM_FLOAT && tensor->dtype != CM_BOOL;
        const bool is_empty = !cm_tensor_count(tensor->contents);
        const struct cm_str made =
            is_empty ? cm_arena_printf(code->arena, "torch.empty(%.*s, dtype=%s)",
                                       CM_STR_ALL(dims_text(code, &tensor->shape)), type)
            : needs ? cm_arena_printf(code->arena, "torch.tensor(%.*s, dtype=%s)", CM_STR_ALL(list),
                                      type)
                    : cm_arena_printf(code->arena, "torch.tensor(%.*s)", CM_STR_ALL(list));
        put(code, out,
            cm_arena_printf(code->arena, "%.*s.register_buffer(\"%.*s\", %.*s, persistent=False)",
                            CM_STR_ALL(module), CM_STR_ALL(name), CM_STR_ALL(made)));
        return;
    }
    const struct cm_str dims = dims_text(code, &tensor->shape);
    const struct cm_str made =
        tensor->dtype == CM_FLOAT
            ? cm_arena_printf(code->arena, "torch.empty(%.*s)", CM_STR_ALL(dims))
            : cm_arena_printf(code->arena, "torch.empty(%.*s, dtype=%s)", CM_STR_ALL(dims), type);
    if (tensor->is_parameter)
        put(code, out,
            cm_arena_printf(code->arena, "%.*s = nn.Parameter(%.*s)", CM_STR_ALL(place),
                            CM_STR_ALL(made)));
    else
        put(code, out,
            cm_arena_printf(code->arena, "%.*s.register_buffer(\"%.*s\", %.*s)", CM_STR_ALL(module),
                            CM_STR_ALL(name), CM_STR_ALL(made)));
}

/* Names in the order of their first tensor; numbers in their own, as lists are appended to. */
struct order {
    const struct cm_code *code;
    struct cm_map first; /* of a path of a module or tensor: its first tensor, plus 1 */
};

static bool comes_before(const struct order *order, size_t a, size_t b)
{
    const struct cm_str x = order->code->tensors.items[a].path,
                        y = order->code->tensors.items[b].path;
    size_t i = 0, k = 0;

    while (i < x.size && k < y.size) {
        const struct cm_str p = cm_code_part(x, &i), q = cm_code_part(y, &k);
        int64_t m = 0, n = 0;
        if (cm_str_equal(p, q))
            continue;
        if (cm_code_is_number(p) && cm_code_is_number(q) && cm_str_to_int64(p, &m) &&
            cm_str_to_int64(q, &n))
            return m < n;
        const struct cm_str to = {x.data, (size_t)(p.data - x.data) + p.size},
                            from = {y.data, (size_t)(q.data - y.data) + q.size};
        return cm_map_get(&order->first, to, 0) < cm_map_get(&order->first, from, 0);
    }
    return false;
}

static bool is_in(struct cm_str path, struct cm_str prefix)
{
    return path.size > prefix.size &&
           (!prefix.size || memcmp(path.data, prefix.data, prefix.size) == 0);
}

/* The outermost layer that holds a tensor, in the class or the model that is printed. */
static const struct cm_code_layer *layer_of(const struct cm_code *code, size_t tensor)
{
    const struct cm_str prefix = code->within ? code->within->prefix : CM_STR_NONE;
    const struct cm_code_layer *found = NULL;

    for (size_t l = 0; l < code->layers.count; l++) {
        const struct cm_code_layer *layer = &code->layers.items[l];
        if (!layer->is_used || !is_in(layer->path, prefix) ||
            (found && found->path.size <= layer->path.size))
            continue;
        for (size_t t = 0; t < layer->n_tensors; t++)
            if (layer->tensors[t] == tensor)
                found = layer;
    }
    return found;
}

/* How a layer is made, in a class with the names of its arguments. */
static struct cm_str how_made(const struct cm_code *code, const struct cm_code_layer *layer)
{
    for (size_t i = 0; code->within && i < code->within->n_made; i++)
        if (&code->layers.items[code->within->made[i].layer] == layer)
            return code->within->made[i].how;
    return layer->made;
}

static size_t *order_tensors(struct cm_code *code, size_t *count)
{
    size_t *list = CM_NEW_ARRAY(code->arena, size_t, code->tensors.count + 1);
    struct order order = {.code = code};

    *count = 0;
    for (size_t i = 0; i < code->tensors.count; i++) {
        const struct cm_str path = code->tensors.items[i].path;
        size_t at = *count;
        if (!code->tensors.items[i].is_used ||
            !is_in(path, code->within ? code->within->prefix : CM_STR_NONE))
            continue;
        for (size_t end = 0; end < path.size;) {
            bool added;
            (void)cm_code_part(path, &end);
            const struct cm_str module = {path.data, end < path.size ? end - 1 : end};
            uint64_t *first = cm_map_insert(&order.first, code->arena, module, &added);
            if (added)
                *first = i + 1;
        }
        while (at && comes_before(&order, i, list[at - 1]))
            at--;
        memmove(list + at + 1, list + at, (*count - at) * sizeof *list);
        list[at] = i;
        ++*count;
    }
    return list;
}

/* All modules of a list are made alike: "Layer()" of [Layer() for _ in range(12)]; *count: how
 * many. Empty: they are not. */
static struct cm_str all_alike(const struct cm_code *code, struct cm_str list, size_t *count)
{
    struct cm_str made = CM_STR_NONE;

    *count = 0;
    for (size_t l = 0; l < code->layers.count; l++) {
        const struct cm_code_layer *layer = &code->layers.items[l];
        if (!layer->is_block || !layer->n_tensors ||
            !cm_str_equal(cm_str_before_last(layer->path, '.'), list))
            continue;
        if (*count && !cm_str_equal(layer->made, made))
            return CM_STR_NONE;
        made = layer->made;
        ++*count;
    }
    return made;
}

/* Does the list hold modules that are no blocks? */
static bool has_others(const struct cm_code *code, struct cm_str list)
{
    for (size_t t = 0; t < code->tensors.count; t++) {
        const struct cm_code_tensor *tensor = &code->tensors.items[t];
        if (!tensor->is_used || !is_in(tensor->path, list) || tensor->path.data[list.size] != '.')
            continue;
        const struct cm_code_layer *layer = layer_of(code, t);
        if (!layer || !layer->is_block)
            return true;
    }
    return false;
}

/* A list whose modules are alike is made at once; true: it was. */
static bool put_list(struct cm_code *code, struct cm_code_text *out, struct cm_map *made,
                     const struct cm_code_layer *layer)
{
    const struct cm_str list = cm_str_before_last(layer->path, '.');
    size_t count;
    const struct cm_str how = layer->is_block ? all_alike(code, list, &count) : CM_STR_NONE;

    if (!how.size || count < 2 || !is_list(code, list) || has_others(code, list))
        return false;
    if (!cm_map_add(made, code->arena, list))
        return true;
    put_modules(code, out, made, list);
    put_module(code, out, list,
               cm_arena_printf(code->arena, "nn.ModuleList(%.*s for _ in range(%zu))",
                               CM_STR_ALL(how), count));
    return true;
}

static void put_head(struct cm_code *code, struct cm_code_text *out)
{
    struct cm_code_text head = {0};

    cm_code_putf(code, &head, "def __init__(self");
    for (size_t i = 0; code->within && i < code->within->args.count; i++)
        cm_code_putf(code, &head, ", %.*s", CM_STR_ALL(code->within->args.items[i]));
    cm_code_putf(code, &head, "):");
    cm_code_statement(code, out, 4, cm_code_text_str(&head));
    put(code, out, CM_STR("super().__init__()"));
}

static void put_init(struct cm_code *code, struct cm_code_text *out)
{
    struct cm_map made = {0};
    size_t count;
    const size_t *order = order_tensors(code, &count);

    if (!count)
        return;
    put_head(code, out);
    for (size_t i = 0; i < count; i++) {
        const struct cm_code_layer *layer = layer_of(code, order[i]);
        if (layer && put_list(code, out, &made, layer))
            continue;
        put_modules(code, out, &made, layer ? layer->path : code->tensors.items[order[i]].path);
        if (!layer)
            put_tensor(code, out, order[i]);
        else if (cm_map_add(&made, code->arena, layer->path))
            put_module(code, out, layer->path, how_made(code, layer));
    }
    cm_code_putf(code, out, "\n");
}

/* ---- files ---- */

static void put_forward(struct cm_code *code, struct cm_code_text *out, const size_t *inputs,
                        size_t n_inputs)
{
    struct cm_code_text head = {0};

    cm_code_putf(code, &head, "def forward(self");
    for (size_t i = 0; i < n_inputs; i++) {
        cm_code_putf(code, &head, ", ");
        cm_code_put(code, &head, cm_code_named(code, cm_code_ref(code, CM_CODE_VAR, inputs[i])));
    }
    cm_code_putf(code, &head, "):");
    cm_code_statement(code, out, 4, cm_code_text_str(&head));
    cm_code_put_lines(code, out, 8);
}

/* Variables of a class have names of their own. */
static void put_class(struct cm_code *code, struct cm_code_text *out,
                      const struct cm_code_class *class)
{
    const struct cm_code_lines lines = code->lines;
    const struct cm_map names = code->names;

    code->names = (struct cm_map){0};
    cm_code_reserve_names(code);
    code->within = class;
    code->lines = class->lines;
    cm_code_putf(code, out, "\n\nclass %.*s(nn.Module):\n", CM_STR_ALL(class->name));
    put_init(code, out);
    put_forward(code, out, class->inputs.items, class->inputs.count);
    code->lines = lines;
    code->within = NULL;
    code->names = names;
}

static struct cm_str model_text(struct cm_code *code)
{
    const struct cm_str name =
        cm_code_comment(code->arena, cm_str_after_last(code->file->path, '/'));
    struct cm_code_text body = {0}, out = {0};

    cm_code_helpers(code, &body);
    for (size_t i = 0; i < code->classes.count; i++)
        put_class(code, &body, &code->classes.items[i]);
    cm_code_putf(code, &body, "\n\nclass Model(nn.Module):\n");
    put_init(code, &body);
    put_forward(code, &body, code->inputs.items, code->inputs.count);
    cm_code_putf(code, &body, "\n\ndef load(path=None):\n");
    cm_code_putf(code, &body, "    \"\"\"The model with its tensors, ready to predict.\"\"\"\n");
    cm_code_putf(code, &body, "    model = Model()\n");
    if (code->saved->entries.count)
        cm_code_putf(code, &body,
                     "    path = path or Path(__file__).parent / \"weights.pt\"\n"
                     "    model.load_state_dict(torch.load(path, weights_only=True))\n");
    cm_code_putf(code, &body, "    return model.eval()\n");
    cm_code_putf(code, &out, "\"\"\"%.*s as a PyTorch module, written by Cameo.\"\"\"\n\n",
                 CM_STR_ALL(name));
    const bool has_math = cm_code_uses(&body, "math."), has_re = cm_code_uses(&body, "re."),
               has_path = code->saved->entries.count;
    if (has_math)
        cm_code_putf(code, &out, "import math\n");
    if (has_re)
        cm_code_putf(code, &out, "import re\n");
    if (has_path)
        cm_code_putf(code, &out, "from pathlib import Path\n");
    if (has_math || has_path || has_re)
        cm_code_putf(code, &out, "\n");
    if (cm_code_uses(&body, "np."))
        cm_code_putf(code, &out, "import numpy as np\n");
    if (cm_code_uses(&body, "torch."))
        cm_code_putf(code, &out, "import torch\n");
    if (cm_code_uses(&body, "F."))
        cm_code_putf(code, &out, "import torch.nn.functional as F\n");
    cm_code_putf(code, &out, "from torch import nn\n");
    cm_code_put(code, &out, cm_code_text_str(&body));
    return cm_code_text_str(&out);
}

static enum cm_status write_readme(struct cm_code *code, struct cm_folder_save *folder,
                                   struct cm_error *err)
{
    struct cm_code_text out = {0};
    const struct cm_str name =
        cm_code_comment(code->arena, cm_str_after_last(code->file->path, '/'));

    cm_code_putf(code, &out, "# %.*s for PyTorch\n\nWritten by Cameo from an ONNX model.\n\n",
                 CM_STR_ALL(name));
    cm_code_putf(code, &out, "- `model.py`: the module; `load()` gives it with its tensors\n");
    if (code->saved->entries.count)
        cm_code_putf(code, &out, "- `weights.pt`: its `state_dict`\n");
    if (code->options->sample)
        cm_code_putf(code, &out,
                     "- `check.py`: exits 0 if the module computes what Cameo "
                     "recorded in `check.npz`\n");
    if (code->has_training)
        cm_code_putf(code, &out,
                     "- `train.py`: goes on with the training, from `training.pt`: "
                     "`python train.py --data FILE.npz --steps 100`\n");
    cm_code_put_notes(code, &out);
    return cm_folder_put(folder, code->arena, "README.md", cm_code_text_str(&out), err);
}

static enum cm_status write_torch(struct cm_code *code, struct cm_folder_save *folder,
                                  struct cm_error *err)
{
    const char *path;

    CM_TRY(cm_folder_put(folder, code->arena, "model.py", model_text(code), err));
    if (code->saved->entries.count) {
        CM_TRY(cm_folder_file(folder, code->arena, "weights.pt", &path, err));
        CM_TRY(cm_torch_save_item(code->saved, path, "weights",
                                  cm_torch_weights_item(code->arena, code->saved), err));
    }
    if (code->options->sample)
        CM_TRY(cm_code_write_check(code, folder, err));
    CM_TRY(cm_torch_write_training(code, folder, err));
    return write_readme(code, folder, err);
}

const struct cm_code_framework cm_code_torch = {
    .name = "pytorch-code",
    .folder = "torch",
    .system = "PyTorch",
    .what = "a module as code, its state_dict, a check",
    .taken = taken,
    .types = types,
    .size_format = "%s.shape[%d]",
    .turned_format = "%s.T",
    .tensor = tensor_place,
    .layer = layer_place,
    .model = model_text,
    .write = write_torch,
};
