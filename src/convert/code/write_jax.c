/* JAX: functions over a nested dict, its tensors as flax's msgpack, a check. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/code/code_files.h"

#include "base/folder_save.h"
#include "bytes/msgpack.h"
#include "convert/code/write_jax_train.h"
#include "convert/format.h"

#include <string.h>

/* Names that the generated files use. */
static const char *const taken[] = {
    "Path", "apply", "batch_stats",   "constants", "init",      "inputs",  "jax",
    "jnp",  "lax",   "main",          "math",      "np",        "outputs", "params",
    "rng",  "re",    "serialization", "training",  "variables", NULL,
};

static const struct cm_code_type types[CM_DTYPE_COUNT] = {
    [CM_FLOAT] = {"jnp.float32", CM_FLOAT},
    [CM_UINT8] = {"jnp.uint8", CM_UINT8},
    [CM_INT8] = {"jnp.int8", CM_INT8},
    [CM_UINT16] = {"jnp.uint16", CM_UINT16},
    [CM_INT16] = {"jnp.int16", CM_INT16},
    [CM_INT32] = {"jnp.int32", CM_INT32},
    [CM_INT64] = {"jnp.int64", CM_INT64},
    [CM_BOOL] = {"jnp.bool_", CM_BOOL},
    [CM_FLOAT16] = {"jnp.float16", CM_FLOAT16},
    [CM_DOUBLE] = {"jnp.float64", CM_DOUBLE},
    [CM_UINT32] = {"jnp.uint32", CM_UINT32},
    [CM_UINT64] = {"jnp.uint64", CM_UINT64},
    [CM_COMPLEX64] = {"jnp.complex64", CM_COMPLEX64},
    [CM_COMPLEX128] = {"jnp.complex128", CM_COMPLEX128},
    [CM_BFLOAT16] = {"jnp.bfloat16", CM_BFLOAT16},
    [CM_FLOAT8E4M3FN] = {"jnp.float8_e4m3fn", CM_FLOAT8E4M3FN},
    [CM_FLOAT8E4M3FNUZ] = {"jnp.float8_e4m3fnuz", CM_FLOAT8E4M3FNUZ},
    [CM_FLOAT8E5M2] = {"jnp.float8_e5m2", CM_FLOAT8E5M2},
    [CM_FLOAT8E5M2FNUZ] = {"jnp.float8_e5m2fnuz", CM_FLOAT8E5M2FNUZ},
    [CM_UINT4] = {"jnp.uint8", CM_UINT8},
    [CM_INT4] = {"jnp.int8", CM_INT8},
    [CM_FLOAT4E2M1] = {"jnp.float32", CM_FLOAT},
    [CM_FLOAT8E8M0] = {"jnp.float32", CM_FLOAT},
    [CM_UINT2] = {"jnp.uint8", CM_UINT8},
    [CM_INT2] = {"jnp.int8", CM_INT8},
    [CM_FLOAT6E2M3] = {"jnp.float32", CM_FLOAT},
    [CM_FLOAT6E3M2] = {"jnp.float32", CM_FLOAT},
};

/* ---- where tensors are ---- */

/* flax's collections: what is trained, what training also updates, what never changes. */
static const char *collection_of(const struct cm_code *code, const struct cm_code_tensor *tensor)
{
    if (tensor->is_parameter)
        return "params";
    return cm_value_get(code->module, tensor->value)->is_state ? "batch_stats" : "constants";
}

static struct cm_str constant_text(const struct cm_code *code, const struct cm_code_tensor *tensor)
{
    const bool is_text = tensor->dtype == CM_STRING;
    const struct cm_str list = cm_code_nested(code->arena, tensor->contents);
    struct cm_str dims = CM_STR_NONE;

    if (cm_tensor_count(tensor->contents))
        return cm_arena_printf(code->arena, "np.array(%.*s, dtype=%s)", CM_STR_ALL(list),
                               is_text ? "object" : cm_code_type(code, tensor->dtype));
    for (int i = 0; i < tensor->shape.rank; i++)
        dims = cm_arena_printf(code->arena, "%.*s%lld, ", CM_STR_ALL(dims),
                               (long long)tensor->shape.dims[i]);
    return cm_arena_printf(code->arena, "np.zeros((%.*s), dtype=%s)", CM_STR_ALL(dims),
                           is_text ? "object" : cm_code_type(code, tensor->dtype));
}

/* params["layers"]["0"]["weight"]; a constant of a few elements stands where it is read. */
static struct cm_str tensor_place(const struct cm_code *code, size_t i)
{
    const struct cm_code_tensor *tensor = &code->tensors.items[i];
    struct cm_str out = cm_str(collection_of(code, tensor));

    if (tensor->is_inside || (code->is_function && tensor->contents))
        return constant_text(code, tensor);
    for (size_t at = 0; at < tensor->path.size;) {
        const struct cm_str part = cm_code_part(tensor->path, &at);
        out = cm_arena_printf(code->arena, "%.*s[\"%.*s\"]", CM_STR_ALL(out), CM_STR_ALL(part));
    }
    return out;
}

/* Is there a tensor in the collection? */
static bool has(const struct cm_code *code, const char *collection)
{
    for (size_t i = 0; i < code->tensors.count; i++) {
        const struct cm_code_tensor *tensor = &code->tensors.items[i];
        if (tensor->is_used && tensor->saved &&
            cm_str_is(cm_str(collection_of(code, tensor)), collection))
            return true;
    }
    return false;
}

/* ---- weights.msgpack ---- */

void cm_jax_plant(struct cm_code *code, struct cm_map *made, struct cm_item *tree,
                  struct cm_str path, const struct cm_item *leaf)
{
    struct cm_item *map = tree;

    for (size_t at = 0; at < path.size;) {
        const struct cm_item *part = cm_item_text(code->arena, cm_code_part(path, &at));
        bool added;

        if (at == path.size) {
            cm_item_set(code->arena, map, part, leaf);
            return;
        }
        uint64_t *known = cm_map_insert(made, code->arena, (struct cm_str){path.data, at}, &added);
        if (added) {
            struct cm_item *inner = cm_item_new(code->arena, CM_ITEM_MAP);
            cm_item_set(code->arena, map, part, inner);
            *known = (uint64_t)(uintptr_t)inner;
        }
        map = (struct cm_item *)(uintptr_t)*known;
    }
}

static const struct cm_item *weights_tree(struct cm_code *code)
{
    struct cm_item *tree = cm_item_new(code->arena, CM_ITEM_MAP);
    struct cm_map made = {0};

    for (size_t i = 0; i < code->tensors.count; i++) {
        const struct cm_code_tensor *tensor = &code->tensors.items[i];

        if (tensor->is_used && tensor->saved)
            cm_jax_plant(code, &made, tree,
                         cm_arena_printf(code->arena, "%s.%.*s", collection_of(code, tensor),
                                         CM_STR_ALL(tensor->path)),
                         cm_item_tensor(code->arena, tensor->saved));
    }
    return tree;
}

static enum cm_status write_tree(void *tree, struct cm_save *save, struct cm_error *err)
{
    return cm_msgpack_write(save, tree, err);
}

/* ---- model.py ---- */

static void line(struct cm_code *code, struct cm_code_text *out, const char *text)
{
    cm_code_putf(code, out, "    %s\n", text);
}

static void put_init(struct cm_code *code, struct cm_code_text *out)
{
    cm_code_putf(code, out, "\n\ndef init(path=None):\n");
    line(code, out, "\"\"\"The variables as flax has them; those of params are trained.\"\"\"");
    if (!code->saved->entries.count) {
        line(code, out, "return {\"params\": {}}");
        return;
    }
    line(code, out, "path = Path(path or Path(__file__).parent / \"weights.msgpack\")");
    line(code, out, "variables = serialization.msgpack_restore(path.read_bytes())");
    line(code, out,
         has(code, "params") ? "return jax.tree.map(jnp.asarray, variables)"
                             : "return {\"params\": {}, **jax.tree.map(jnp.asarray, variables)}");
}

static void put_inputs(struct cm_code *code, struct cm_code_text *out)
{
    struct cm_code_text names = {0};

    if (!code->inputs.count)
        return;
    for (size_t i = 0; i < code->inputs.count; i++) {
        cm_code_putf(code, &names, i ? ", " : "");
        cm_code_put(code, &names, code->vars.items[code->inputs.items[i]].name);
    }
    cm_code_statement(
        code, out, 4,
        cm_arena_printf(code->arena, code->inputs.count == 1 ? "(%.*s,) = inputs" : "%.*s = inputs",
                        CM_STR_ALL(cm_code_text_str(&names))));
}

static bool is_text(const struct cm_type *type)
{
    while (type && type->elem)
        type = type->elem;
    return type && type->dtype == CM_STRING;
}

/* Does the text of helpers call one, apart from its definition? */
static bool is_called(const struct cm_code_text *helpers, const char *name)
{
    const size_t size = strlen(name), def = strlen("def ");

    for (size_t i = def; i + size < helpers->count; i++)
        if (memcmp(helpers->items + i, name, size) == 0 &&
            memcmp(helpers->items + i - def, "def ", def) != 0)
            return true;
    return false;
}

/* Does the code read elements of arrays, or texts? The helper `concrete` is how it does. */
static bool reads_elements(struct cm_code *code, const struct cm_code_text *body)
{
    struct cm_code_text helpers = {0};

    for (size_t i = 0; i < code->vars.count; i++)
        if (code->vars.items[i].value && code->vars.items[i].is_live &&
            is_text(cm_code_type_of(code, code->vars.items[i].value)))
            return true;
    cm_code_helpers(code, &helpers);
    return cm_code_uses(body, "concrete(") || is_called(&helpers, "concrete(");
}

/* The last line, "return a, b", gives the running statistics too where the model trains. */
static void put_result(struct cm_code *code)
{
    for (size_t i = code->lines.count; i-- > 0;) {
        struct cm_code_line *last = &code->lines.items[i];
        if (last->is_gone || !cm_str_starts(last->text, "return ") || last->indent)
            continue;
        last->text = cm_arena_printf(code->arena, "outputs = %.*s",
                                     CM_STR_ALL(cm_str_from(last->text, strlen("return "))));
        return;
    }
}

/* *is_eager: jax.jit cannot trace it. */
static void put_apply(struct cm_code *code, struct cm_code_text *out, bool *is_eager)
{
    struct cm_code_text body = {0};

    put_inputs(code, &body);
    put_result(code);
    cm_code_put_lines(code, &body, 4);
    const bool has_state = has(code, "batch_stats");
    cm_code_putf(code, out, "\n\ndef apply(variables, inputs, training=False, rng=None):\n");
    *is_eager = reads_elements(code, &body);
    if (*is_eager)
        line(code, out,
             "\"\"\"The outputs; it runs eagerly, as it reads elements of arrays.\"\"\"");
    else
        line(code, out, "\"\"\"The outputs; where it trains, new running statistics too.\"\"\"");
    if (has(code, "params"))
        line(code, out, "params = variables[\"params\"]");
    if (has(code, "constants"))
        line(code, out, "constants = variables[\"constants\"]");
    if (has_state)
        line(code, out, "batch_stats = jax.tree.map(lambda x: x, variables[\"batch_stats\"])");
    cm_code_put(code, out, cm_code_text_str(&body));
    line(code, out,
         has_state ? "return (outputs, {\"batch_stats\": batch_stats}) if training else "
                     "outputs"
                   : "return (outputs, {}) if training else outputs");
}

static bool is_wide(const struct cm_type *type)
{
    while (type && type->elem)
        type = type->elem;
    return type && type->dtype != CM_STRING && cm_dtype_size(type->dtype) == 8 &&
           type->dtype != CM_COMPLEX64;
}

/* Does the model compute with elements of 64 bits? JAX makes 32 of them by default. */
static bool needs_x64(const struct cm_code *code, const struct cm_code_text *body)
{
    static const char *const names[] = {"jnp.int64", "jnp.uint64", "jnp.float64", "jnp.complex128"};

    for (size_t i = 0; i < CM_COUNT(names); i++)
        if (cm_code_uses(body, names[i]))
            return true;
    for (size_t i = 0; i < code->vars.count; i++)
        if (code->vars.items[i].value && code->vars.items[i].is_live &&
            is_wide(cm_code_type_of(code, code->vars.items[i].value)))
            return true;
    for (size_t i = 0; i < code->tensors.count; i++)
        if (code->tensors.items[i].is_used && code->tensors.items[i].saved &&
            is_wide(cm_code_type_of(code, code->tensors.items[i].value)))
            return true;
    return false;
}

static struct cm_str model_text(struct cm_code *code, bool *is_eager)
{
    const struct cm_str name =
        cm_code_comment(code->arena, cm_str_after_last(code->file->path, '/'));
    const bool has_file = code->saved->entries.count;
    struct cm_code_text functions = {0}, body = {0}, out = {0};

    put_init(code, &functions);
    put_apply(code, &functions, is_eager);
    cm_code_helpers(code, &body);
    cm_code_put(code, &body, cm_code_text_str(&functions));
    const bool has_math = cm_code_uses(&body, "math."), has_re = cm_code_uses(&body, "re.");
    cm_code_putf(code, &out, "\"\"\"%.*s as functions of JAX, written by Cameo.\"\"\"\n\n",
                 CM_STR_ALL(name));
    if (has_math)
        cm_code_putf(code, &out, "import math\n");
    if (has_re)
        cm_code_putf(code, &out, "import re\n");
    if (has_file)
        cm_code_putf(code, &out, "from pathlib import Path\n");
    if (has_math || has_re || has_file)
        cm_code_putf(code, &out, "\n");
    const bool is_64 = needs_x64(code, &body);
    if (is_64 || cm_code_uses(&body, "jax."))
        cm_code_putf(code, &out, "import jax\n");
    if (cm_code_uses(&body, "jnp."))
        cm_code_putf(code, &out, "import jax.numpy as jnp\n");
    if (cm_code_uses(&body, "np."))
        cm_code_putf(code, &out, "import numpy as np\n");
    if (has_file)
        cm_code_putf(code, &out, "from flax import serialization\n");
    if (cm_code_uses(&body, "lax."))
        cm_code_putf(code, &out, "from jax import lax\n");
    if (is_64)
        cm_code_putf(code, &out,
                     "\n# The model computes with elements of 64 bits.\n"
                     "jax.config.update(\"jax_enable_x64\", True)\n");
    cm_code_put(code, &out, cm_code_text_str(&body));
    return cm_code_text_str(&out);
}

static struct cm_str model_alone(struct cm_code *code)
{
    bool is_eager;

    return model_text(code, &is_eager);
}

/* ---- files ---- */

static enum cm_status write_readme(struct cm_code *code, struct cm_folder_save *folder,
                                   struct cm_error *err)
{
    struct cm_code_text out = {0};
    const struct cm_str name =
        cm_code_comment(code->arena, cm_str_after_last(code->file->path, '/'));

    cm_code_putf(code, &out, "# %.*s for JAX\n\nWritten by Cameo from an ONNX model.\n\n",
                 CM_STR_ALL(name));
    cm_code_putf(code, &out,
                 "- `model.py`: `init()` gives the variables, "
                 "`apply(variables, inputs, training, rng)` the outputs\n");
    if (code->saved->entries.count)
        cm_code_putf(code, &out, "- `weights.msgpack`: the variables, as flax writes them\n");
    if (code->options->sample)
        cm_code_putf(code, &out,
                     "- `check.py`: exits 0 if the functions compute what Cameo "
                     "recorded in `check.npz`\n");
    if (code->has_training)
        cm_code_putf(code, &out,
                     "- `train.py`: goes on with the training, from `training.msgpack`: "
                     "`python train.py --data FILE.npz --steps 100`\n");
    cm_code_put_notes(code, &out);
    return cm_folder_put(folder, code->arena, "README.md", cm_code_text_str(&out), err);
}

static enum cm_status write_jax(struct cm_code *code, struct cm_folder_save *folder,
                                struct cm_error *err)
{
    const char *path;
    bool is_eager;

    CM_TRY(cm_folder_put(folder, code->arena, "model.py", model_text(code, &is_eager), err));
    if (is_eager)
        cm_saved_note(code->arena, &code->notes,
                      "the model reads elements of arrays, so apply runs eagerly: jax.jit cannot "
                      "trace it");
    if (code->saved->entries.count) {
        CM_TRY(cm_folder_file(folder, code->arena, "weights.msgpack", &path, err));
        CM_TRY(cm_saved_write_file(code->saved, path, write_tree, (void *)weights_tree(code), err));
    }
    if (code->options->sample)
        CM_TRY(cm_code_write_check(code, folder, err));
    CM_TRY(cm_jax_write_training(code, folder, is_eager, err));
    return write_readme(code, folder, err);
}

const struct cm_code_framework cm_code_jax = {
    .name = "jax-code",
    .folder = "jax",
    .system = "JAX",
    .what = "functions as code, their variables as flax msgpack, a check",
    .taken = taken,
    .types = types,
    .size_format = "%s.shape[%d]",
    .tensor = tensor_place,
    .model = model_alone,
    .write = write_jax,
};
