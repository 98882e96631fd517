/* The header of a compiled model: all that a person needs to call it. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/lowering/glue_text.h"

#include "mlir/runtime/compiled.h"

#include <string.h>

static struct cm_str upper(struct cm_arena *arena, struct cm_str text)
{
    char *to = cm_arena_alloc(arena, text.size + 1);

    for (size_t i = 0; i < text.size; i++)
        to[i] = text.data[i] >= 'a' && text.data[i] <= 'z' ? (char)(text.data[i] - 'a' + 'A')
                                                           : text.data[i];
    return (struct cm_str){to, text.size};
}

/* What one element is in C. */
static const char *c_type(enum cm_dtype type)
{
    static const struct {
        enum cm_dtype type;
        const char *name;
    } rows[] = {
        {CM_FLOAT, "float"},       {CM_DOUBLE, "double"},      {CM_INT8, "int8_t"},
        {CM_INT16, "int16_t"},     {CM_INT32, "int32_t"},      {CM_INT64, "int64_t"},
        {CM_UINT8, "uint8_t"},     {CM_UINT16, "uint16_t"},    {CM_UINT32, "uint32_t"},
        {CM_UINT64, "uint64_t"},   {CM_BOOL, "uint8_t"},       {CM_FLOAT16, "uint16_t"},
        {CM_BFLOAT16, "uint16_t"}, {CM_COMPLEX64, "float[2]"}, {CM_COMPLEX128, "double[2]"},
        {CM_INT4, "int8_t"},       {CM_INT2, "int8_t"},
    };

    for (size_t i = 0; i < CM_COUNT(rows); i++)
        if (rows[i].type == type)
            return rows[i].name;
    return "uint8_t";
}

/* The prototype, with the struct of the header or with that of the source. */
static struct cm_str prototype(struct cm_glue_writer *w, const char *tensor, const char *inputs,
                               const char *outputs)
{
    const struct cm_glue_options *o = w->options;
    struct cm_glue_text t = {.arena = w->arena};

    cm_glue_put(&t, "int %s_%s(", o->name, o->state ? "step" : "run");
    if (o->weights != CM_GLUE_INSIDE)
        cm_glue_put(&t, "const void *weights, ");
    if (o->state)
        cm_glue_put(&t, "void *state, ");
    cm_glue_put(&t, "const struct %s *%s, struct %s *%s, void *arena, size_t arena_bytes)", tensor,
                inputs, tensor, outputs);
    return (struct cm_str){t.data, t.size};
}

struct cm_str cm_glue_prototype(struct cm_glue_writer *w)
{
    return prototype(w, "cm_compiled_tensor", "inputs_", "outputs_");
}

/* Numbers of ports by their names, as far as names differ as identifiers. */
static void put_numbers(struct cm_glue_writer *w, const struct cm_glue_ports *ports,
                        const char *kind)
{
    struct cm_str *names = CM_NEW_ARRAY(w->arena, struct cm_str, ports->count);
    struct cm_glue_text *t = &w->header;
    const struct cm_str big = upper(w->arena, cm_str(w->options->name));

    cm_glue_put(t, "enum {\n");
    for (size_t i = 0; i < ports->count; i++) {
        const struct cm_mlir_port *port = ports->items[i];

        names[i] = upper(w->arena, cm_glue_name(w->arena, port->name));
        for (size_t j = 0; j < i; j++)
            if (cm_str_equal(names[i], names[j])) {
                names[i] = cm_arena_printf(w->arena, "%.*s_%zu", CM_STR_FMT(names[i]), i);
                j = SIZE_MAX; /* from the start */
            }
        cm_glue_put(t, "    %s_%s_%s = %zu, /* ", cm_str_text(big), kind, cm_str_text(names[i]), i);
        cm_glue_put_comment(t, port->name);
        cm_glue_put(t, ": ");
        cm_glue_put_comment(t, cm_mlir_port_type(w->arena, port));
        cm_glue_put(t, ", %s", c_type(port->type));
        if (port->is_fixed)
            cm_glue_put(t, ", %zu bytes", port->bytes);
        cm_glue_put(t, " */\n");
    }
    cm_glue_put(t, "    %s_%sPUTS = %zu\n};\n\n", cm_str_text(big),
                strcmp(kind, "IN") == 0 ? "IN" : "OUT", ports->count);
}

static void put_tensor(struct cm_glue_writer *w)
{
    const char *name = w->options->name;

    cm_glue_put(
        &w->header,
        "/* Memory of the caller's: elements in row-major order, aligned for their type; types of\n"
        " * less than a byte take a byte each. shape may be NULL where all sizes are known. An\n"
        " * output whose sizes are not known needs a shape, which is set, also where its memory\n"
        " * turns out to be too small. Outputs may overlap neither inputs nor each other. */\n"
        "struct %s_tensor {\n"
        "    void *data;\n"
        "    int64_t *shape;\n"
        "    size_t size; /* of data, in bytes */\n"
        "};\n\n",
        name);
}

static void put_codes(struct cm_glue_writer *w, const char *big)
{
    cm_glue_put(&w->header,
                "/* What a run gives: 0, or one of these. Behind the last three the number of the\n"
                " * input, the output or the check is added; %s_error has the sentence. */\n"
                "enum {\n"
                "    %s_OK = 0,\n"
                "    %s_ARENA_TOO_SMALL = %d,\n",
                w->options->name, big, big, CM_COMPILED_ARENA);
    if (w->options->weights != CM_GLUE_INSIDE)
        cm_glue_put(&w->header, "    %s_BAD_WEIGHTS = %d,\n", big, CM_COMPILED_WEIGHTS);
    if (w->options->state)
        cm_glue_put(&w->header, "    %s_BAD_STATE = %d,\n", big, CM_COMPILED_STATE);
    cm_glue_put(&w->header,
                "    %s_BAD_INPUT = %d,\n"
                "    %s_BAD_OUTPUT = %d,\n"
                "    %s_CHECK_FAILED = %d\n"
                "};\n\n",
                big, CM_COMPILED_INPUT, big, CM_COMPILED_OUTPUT, big, CM_COMPILED_CHECK);
}

static void put_arena(struct cm_glue_writer *w, const char *big)
{
    const size_t bytes = w->out->arena_bytes;

    if (w->options->arena_is_fixed)
        cm_glue_put(&w->header,
                    "/* The memory that a run works in: any address, nothing is kept in it. */\n"
                    "#define %s_ARENA_BYTES %zu\n\n",
                    big, bytes);
    else
        cm_glue_put(
            &w->header,
            "/* The memory that a run works in: any address, nothing is kept in it. How much "
            "is\n * needed depends on the sizes of the inputs: start with what you have, "
            "and give more\n * where the result is %s_ARENA_TOO_SMALL. */\n"
            "#define %s_LEAST_ARENA_BYTES %zu\n\n",
            big, big, bytes);
}

static void put_place(struct cm_glue_writer *w)
{
    cm_glue_put(&w->header,
                "struct %s_place {\n"
                "    const char *name; /* NULL after the last */\n"
                "    size_t offset, bytes;\n"
                "    const char *type; /* \"float[8,3]\": elements in row-major order */\n"
                "};\n\n",
                w->options->name);
}

struct cm_str cm_glue_weight_type(struct cm_arena *arena, const struct cm_mlir_weight *weight)
{
    const struct cm_tensor *tensor = weight->tensor;
    struct cm_glue_text t = {.arena = arena};

    cm_glue_put(&t, "%s%s", cm_dtype_name(tensor->type), tensor->shape.rank ? "[" : "");
    for (int d = 0; d < tensor->shape.rank; d++)
        cm_glue_put(&t, "%s%lld", d ? "," : "", (long long)tensor->shape.dims[d]);
    cm_glue_put(&t, "%s", tensor->shape.rank ? "]" : "");
    return (struct cm_str){t.data, t.size};
}

struct cm_str cm_glue_variable_type(struct cm_glue_writer *w, const struct cm_glue_variable *v)
{
    const struct cm_mlir_program *p = w->program;

    if (v->is_random)
        return cm_arena_printf(w->arena, "int64[%zu]", p->n_random);
    if (v->input < 0 && v->output < 0)
        return CM_STR("");
    return cm_mlir_port_type(w->arena,
                             v->input >= 0 ? &p->inputs[v->input] : &p->outputs[v->output]);
}

/* "at 64: w, float[8,3], 96 bytes" */
static void put_place_comment(struct cm_glue_writer *w, size_t offset, struct cm_str name,
                              struct cm_str type, size_t bytes)
{
    struct cm_glue_text *t = &w->header;

    cm_glue_put(t, "/* at %zu: ", offset);
    cm_glue_put_comment(t, name);
    cm_glue_put(t, ", ");
    cm_glue_put_comment(t, type);
    cm_glue_put(t, ", %zu bytes */\n", bytes);
}

static void put_weights(struct cm_glue_writer *w, const char *big)
{
    const struct cm_glue_options *o = w->options;

    if (o->weights == CM_GLUE_INSIDE)
        return;
    cm_glue_put(&w->header,
                "/* Weights are one block, aligned to %d bytes, that is only read: %s */\n",
                CM_COMPILED_ALIGNMENT,
                o->weights == CM_GLUE_BESIDE ? "the contents of the\n * file of weights."
                                             : "each at its place.");
    cm_glue_put(&w->header, "#define %s_WEIGHT_BYTES %zu\n", big, o->weight_bytes);
    if (o->weights == CM_GLUE_CALLER) {
        cm_glue_put(&w->header, "extern const struct %s_place %s_weights[];\n", o->name, o->name);
        for (size_t i = 0; i < w->program->n_weights; i++) {
            const struct cm_mlir_weight *weight = &w->program->weights[i];

            put_place_comment(w, weight->offset, weight->name,
                              cm_glue_weight_type(w->arena, weight),
                              cm_tensor_bytes(weight->tensor));
        }
    }
    cm_glue_put(&w->header, "\n");
}

static void put_state(struct cm_glue_writer *w, const char *big)
{
    const struct cm_glue_options *o = w->options;
    struct cm_glue_text *t = &w->header;

    if (!o->state)
        return;
    cm_glue_put(
        t,
        "/* What is trained, and the optimizer's memory: one block of the caller's, aligned "
        "to %d\n * bytes, that a step changes only where it gives 0. Every variable has its "
        "place in it. */\n"
        "#define %s_STATE_BYTES %zu\n"
        "extern const struct %s_place %s_state[];\n",
        CM_COMPILED_ALIGNMENT, big, o->state->bytes, o->name, o->name);
    for (size_t i = 0; i < o->state->count; i++) {
        const struct cm_glue_variable *v = &o->state->variables[i];

        put_place_comment(w, v->offset, v->name, cm_glue_variable_type(w, v), v->bytes);
    }
    const char *more = o->weights == CM_GLUE_INSIDE ? "" : "const void *weights, ";
    cm_glue_put(t, "/* Fills it with the first values. */\nvoid %s_initialize(%svoid *state);\n",
                o->name, more);
    if (w->program->n_random)
        cm_glue_put(
            t,
            "/* What is drawn at random follows from a seed, 0 at first, and from what the steps\n"
            " * before have drawn: the seed is set, and all is drawn from the beginning. */\n"
            "void %s_seed(%svoid *state, uint64_t seed);\n",
            o->name, more);
    cm_glue_put(t, "\n");
}

void cm_glue_put_header(struct cm_glue_writer *w)
{
    const struct cm_glue_options *o = w->options;
    const struct cm_str name = upper(w->arena, cm_str(o->name));
    const char *big = cm_str_text(name);
    struct cm_glue_text *t = &w->header;

    cm_glue_put(t, "/* ");
    cm_glue_put_comment(t, cm_str(o->source));
    cm_glue_put(t,
                ", compiled by cameo " CM_VERSION_STRING ". Link with -lm where the code calls "
                "math.h. */\n"
                "#ifndef %s_H\n#define %s_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
                "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
                big, big);
    put_numbers(w, &w->inputs, "IN");
    put_numbers(w, &w->outputs, "OUT");
    put_tensor(w);
    put_codes(w, big);
    put_arena(w, big);
    if (o->state || o->weights == CM_GLUE_CALLER)
        put_place(w);
    put_weights(w, big);
    put_state(w, big);
    w->out->prototype =
        prototype(w, cm_arena_printf(w->arena, "%s_tensor", o->name).data, "inputs", "outputs");
    cm_glue_put(t, "/* %s. */\n%.*s;\n",
                o->state
                    ? "One training step; threads may call it at once, each with a state of its own"
                    : "Runs the model once; keeps nothing, so any number of threads may call it",
                (int)w->out->prototype.size, w->out->prototype.data);
    cm_glue_put(t,
                "/* What the number that a run gave means; never NULL. */\n"
                "const char *%s_error(int code);\n\n"
                "#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
                o->name);
}
