/* The source that calls a program: tables of what the model declares, the call itself, and the part
 * that all models share (runtime/runtime.c). */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/lowering/glue.h"

#include "mlir/lowering/glue_text.h"
#include "mlir/runtime/compiled.h"

#include <string.h>

/* ---- names ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

enum { NAME_MAX_SIZE = 100 };

struct cm_str cm_glue_name(struct cm_arena *arena, struct cm_str text)
{
    static const char *const endings[] = {".onnx", ".onnxtxt", ".textproto", ".json", ".mlir"};
    char *name = cm_arena_alloc(arena, NAME_MAX_SIZE + 8);
    size_t size = 0;

    for (size_t i = 0; i < CM_COUNT(endings); i++)
        if (cm_str_ends(text, endings[i]))
            text.size -= strlen(endings[i]);
    if (text.size == 0)
        return CM_STR("model");
    if (is_digit(text.data[0])) {
        memcpy(name, "model_", 6);
        size = 6;
    }
    for (size_t i = 0; i < text.size && size < NAME_MAX_SIZE; i++)
        name[size++] = cm_glue_is_word(text.data[i]) ? text.data[i] : '_';
    return (struct cm_str){name, size};
}

bool cm_glue_name_is_valid(const char *name)
{
    const size_t size = strlen(name);
    bool ok = size > 0 && size <= NAME_MAX_SIZE && !is_digit(name[0]);

    for (size_t i = 0; i < size; i++)
        ok = ok && cm_glue_is_word(name[i]);
    return ok;
}

struct cm_str cm_mlir_port_type(struct cm_arena *arena, const struct cm_mlir_port *port)
{
    struct cm_glue_text text = {.arena = arena};

    cm_glue_put(&text, "%s%s", cm_dtype_name(port->type), port->rank ? "[" : "");
    for (int i = 0; i < port->rank; i++) {
        const struct cm_str name = port->names ? port->names[i] : CM_STR_NONE;

        cm_glue_put(&text, "%s", i ? "," : "");
        if (port->dims[i] >= 0)
            cm_glue_put(&text, "%lld", (long long)port->dims[i]);
        else
            cm_glue_put(&text, "%.*s", name.size ? (int)name.size : 1, name.size ? name.data : "?");
    }
    cm_glue_put(&text, "%s", port->rank ? "]" : "");
    return (struct cm_str){text.data, text.size};
}

void cm_glue_lay_out_state(struct cm_glue_state *state)
{
    size_t kept = 0, at = 0;

    for (size_t i = 0; i < state->count; i++) { /* changed ones to the front, in their order */
        const struct cm_glue_variable moved = state->variables[i];

        if (moved.output < 0 && !moved.is_random)
            continue;
        memmove(&state->variables[kept + 1], &state->variables[kept],
                (i - kept) * sizeof *state->variables);
        state->variables[kept++] = moved;
    }
    for (size_t i = 0; i < state->count; i++) {
        state->variables[i].offset = at;
        at = (at + state->variables[i].bytes + CM_COMPILED_ALIGNMENT - 1) / CM_COMPILED_ALIGNMENT *
             CM_COMPILED_ALIGNMENT;
        if (i + 1 == kept)
            state->changed_bytes = at;
    }
    state->bytes = at;
}

const struct cm_mlir_source *cm_mlir_source_find(const char *name)
{
    for (size_t i = 0; i < cm_mlir_source_count; i++)
        if (strcmp(cm_mlir_sources[i].name, name) == 0)
            return &cm_mlir_sources[i];
    return NULL;
}

/* ---- which ports are the caller's ---- */

static const struct cm_glue_variable *variable_of(const struct cm_glue_options *o, bool input,
                                                  size_t index)
{
    for (size_t i = 0; o->state && i < o->state->count; i++) {
        const struct cm_glue_variable *v = &o->state->variables[i];

        if ((input ? v->input : v->output) == (ptrdiff_t)index)
            return v;
    }
    return NULL;
}

/* Where the random state lies; NULL: there is none. */
static const struct cm_glue_variable *random_state(const struct cm_glue_options *o)
{
    for (size_t i = 0; o->state && i < o->state->count; i++)
        if (o->state->variables[i].is_random)
            return &o->state->variables[i];
    return NULL;
}

static void own_ports(struct cm_glue_writer *w, bool input)
{
    const size_t count = input ? w->program->n_inputs : w->program->n_outputs;
    struct cm_glue_ports *ports = input ? &w->inputs : &w->outputs;

    ports->items = CM_NEW_ARRAY(w->arena, const struct cm_mlir_port *, count);
    ports->slots = CM_NEW_ARRAY(w->arena, size_t, count);
    for (size_t i = 0; i < count; i++) {
        const struct cm_mlir_port *port = &(input ? w->program->inputs : w->program->outputs)[i];

        ports->slots[i] = ports->count;
        if (!variable_of(w->options, input, i))
            ports->items[ports->count++] = port;
    }
}

/* ---- tables ---- */

static void put_ports(struct cm_glue_writer *w, bool input)
{
    const struct cm_glue_ports *ports = input ? &w->inputs : &w->outputs;
    const char *kind = input ? "input" : "output";
    struct cm_glue_text *t = &w->source;

    for (size_t i = 0; i < ports->count; i++) {
        const struct cm_mlir_port *port = ports->items[i];

        cm_glue_put(t, "static const int64_t %s_%zu_dims[] = {", kind, i);
        for (int d = 0; d < port->rank; d++)
            cm_glue_put(t, "%lld, ", (long long)port->dims[d]);
        cm_glue_put(t, "0};\n");
        if (!w->options->is_library)
            continue;
        cm_glue_put(t, "static const char *const %s_%zu_names[] = {", kind, i);
        for (int d = 0; d < port->rank; d++) {
            cm_glue_put_literal(t, port->names ? port->names[d] : CM_STR_NONE);
            cm_glue_put(t, ", ");
        }
        cm_glue_put(t, "0};\n");
    }
    cm_glue_put(t, "static const struct cm_compiled_port %ss[] = {\n", kind);
    for (size_t i = 0; i < ports->count; i++) {
        const struct cm_mlir_port *port = ports->items[i];
        const struct cm_str wrong = cm_arena_printf(
            w->arena,
            input ? "input '%.*s' must be %.*s: another shape, too few bytes or not aligned"
                  : "output '%.*s' is %.*s: another shape, too few bytes or not aligned",
            CM_STR_FMT(port->name), CM_STR_FMT(cm_mlir_port_type(w->arena, port)));

        cm_glue_put(t, "    {");
        cm_glue_put_literal(t, w->options->is_library ? port->name : CM_STR_NONE);
        cm_glue_put(t, ", ");
        cm_glue_put_literal(t, wrong);
        cm_glue_put(t, ", %d, %zu, %d, %d, %s_%zu_dims, ", (int)port->type,
                    cm_mlir_element_bytes(port->type), port->rank, port->is_fixed, kind, i);
        if (w->options->is_library)
            cm_glue_put(t, "%s_%zu_names},\n", kind, i);
        else
            cm_glue_put(t, "0},\n");
    }
    cm_glue_put(t, "    {0, 0, 0, 0, 0, 0, 0, 0}};\n");
}

/* Pairs each named dimension with the first of that name. */
static size_t put_equal(struct cm_glue_writer *w)
{
    const struct cm_glue_ports *ports = &w->inputs;
    size_t count = 0;

    cm_glue_put(&w->source, "static const uint16_t equal_dims[][4] = {");
    for (size_t i = 0; i < ports->count; i++)
        for (int d = 0; d < ports->items[i]->rank; d++) {
            const struct cm_mlir_port *port = ports->items[i];
            bool found = port->dims[d] >= 0 || !port->names || !port->names[d].size;

            for (size_t j = 0; j <= i && !found; j++)
                for (int e = 0; e < (j < i ? ports->items[j]->rank : d) && !found; e++) {
                    const struct cm_mlir_port *other = ports->items[j];

                    found = other->dims[e] < 0 && other->names &&
                            cm_str_equal(other->names[e], port->names[d]);
                    if (!found)
                        continue;
                    cm_glue_put(&w->source, "{%zu, %d, %zu, %d}, ", j, e, i, d);
                    count++;
                }
        }
    cm_glue_put(&w->source, "{0, 0, 0, 0}};\n");
    return count;
}

static void put_messages(struct cm_glue_writer *w)
{
    cm_glue_put(&w->source, "static const char *const checks[] = {\n");
    for (size_t i = 0; i < w->options->n_messages; i++) {
        cm_glue_put(&w->source, "    ");
        cm_glue_put_literal(&w->source, cm_str(w->options->messages[i]));
        cm_glue_put(&w->source, ",\n");
    }
    cm_glue_put(&w->source, "    0};\n");
}

/* ---- the call ----
 *
 * A memref is so many arguments: where it was allocated, where it begins, an offset, sizes and
 * strides. */

static void put_size(struct cm_glue_writer *w, const struct cm_mlir_port *port, const char *kind,
                     size_t slot, int d)
{
    if (port->dims[d] >= 0)
        cm_glue_put(&w->source, "%lld", (long long)port->dims[d]);
    else
        cm_glue_put(&w->source, "call->%ss[%zu].shape[%d]", kind, slot, d);
}

static void put_argument(struct cm_glue_writer *w, bool input, size_t index)
{
    const struct cm_mlir_port *port = &(input ? w->program->inputs : w->program->outputs)[index];
    const struct cm_glue_variable *v = variable_of(w->options, input, index);
    const char *kind = input ? "input" : "output";
    const size_t slot = (input ? &w->inputs : &w->outputs)->slots[index];
    struct cm_glue_text *t = &w->source;
    struct cm_str where;

    if (v)
        where = cm_arena_printf(w->arena, "(unsigned char *)%s + %zu",
                                input ? "call->state" : "next", v->offset);
    else
        where = cm_arena_printf(w->arena, "call->%ss[%zu].data", kind, slot);
    cm_glue_put(t, ",\n            %.*s, %.*s, 0", (int)where.size, where.data, (int)where.size,
                where.data);
    for (int d = 0; d < port->rank; d++) {
        cm_glue_put(t, ", (cm_index)");
        put_size(w, port, kind, slot, d);
    }
    for (int d = 0; d < port->rank; d++) {
        cm_glue_put(t, ", (cm_index)(1");
        for (int e = d + 1; e < port->rank; e++) {
            cm_glue_put(t, " * ");
            put_size(w, port, kind, slot, e);
        }
        cm_glue_put(t, ")");
    }
}

static void put_parameter(struct cm_glue_text *t, int rank)
{
    cm_glue_put(t, ", void *, void *, cm_index");
    for (int d = 0; d < 2 * rank; d++)
        cm_glue_put(t, ", cm_index");
}

static void put_call(struct cm_glue_writer *w)
{
    const struct cm_mlir_program *p = w->program;
    const struct cm_glue_variable *random = random_state(w->options);
    struct cm_glue_text *t = &w->source;

    if (random)
        cm_glue_put(t, "void *memcpy(void *to, const void *from, size_t size);\n");
    cm_glue_put(t, "void cm_main(cm_index");
    put_parameter(t, 1);
    put_parameter(t, 1);
    if (random)
        put_parameter(t, 1);
    for (size_t i = 0; i < p->n_inputs; i++)
        put_parameter(t, p->inputs[i].rank);
    for (size_t i = 0; i < p->n_outputs; i++)
        if (p->outputs[i].is_fixed)
            put_parameter(t, p->outputs[i].rank);
    cm_glue_put(t, ");\n\nstatic void call_main(const struct cm_compiled_call *call, "
                   "cm_index context,\n                      void *arena, void *next)\n{\n"
                   "    void *weights = (void *)(uintptr_t)WEIGHTS;\n\n"
                   "    (void)call;\n    (void)next;\n");
    if (random) /* it draws from a copy, which a step that fails leaves behind */
        cm_glue_put(t,
                    "    unsigned char *random = (unsigned char *)next + %zu;\n"
                    "    memcpy(random, (const unsigned char *)call->state + %zu, %zu);\n",
                    random->offset, random->offset, random->bytes);
    cm_glue_put(t, "    cm_main(context, weights, weights, 0, WEIGHT_BYTES, 1,\n"
                   "            arena, arena, 0, PLANNED_BYTES, 1");
    if (random)
        cm_glue_put(t, ",\n            random, random, 0, %zu, 1", random->bytes / sizeof(int64_t));
    for (size_t i = 0; i < p->n_inputs; i++)
        put_argument(w, true, i);
    for (size_t i = 0; i < p->n_outputs; i++)
        if (p->outputs[i].is_fixed)
            put_argument(w, false, i);
    cm_glue_put(t, ");\n}\n\n");
}

/* ---- the public functions ---- */

static void put_export(struct cm_glue_writer *w, const char *suffix)
{
    const char *name = w->options->name;

    w->out->exported[w->out->n_exported++] =
        suffix ? cm_arena_printf(w->arena, "%s_%s", name, suffix).data : CM_COMPILED_SYMBOL;
}

/* Another seed, and all random numbers from their beginning. */
static void put_seed(struct cm_glue_writer *w)
{
    const struct cm_glue_options *o = w->options;
    const struct cm_glue_variable *random = random_state(o);
    const bool inside = o->weights == CM_GLUE_INSIDE;
    const char *more = inside ? "" : "const void *weights, ";

    if (!random)
        return;
    cm_glue_put(&w->source,
                "\nvoid %s_seed(%svoid *state, uint64_t seed);\n"
                "void %s_seed(%svoid *state, uint64_t seed)\n{\n"
                "    unsigned char *random = (unsigned char *)state + %zu;\n\n"
                "    memcpy(random, (const unsigned char *)%s + %zu, %zu);\n"
                "    memcpy(random, &seed, sizeof seed);\n}\n",
                o->name, more, o->name, more, random->offset, inside ? "cm_weights" : "weights",
                o->state->initial_offset + random->offset, random->bytes);
    put_export(w, "seed");
}

static void put_public(struct cm_glue_writer *w)
{
    const struct cm_glue_options *o = w->options;
    struct cm_glue_text *t = &w->source;
    const bool weights = o->weights != CM_GLUE_INSIDE, step = o->state != NULL;
    const struct cm_str prototype = w->out->prototype;

    cm_glue_put(t, "\n%.*s;\n%.*s\n{\n    struct cm_compiled_call call = {0};\n\n",
                (int)prototype.size, prototype.data, (int)prototype.size, prototype.data);
    cm_glue_put(t, "    call.inputs = inputs_;\n    call.outputs = outputs_;\n"
                   "    call.arena = arena;\n    call.arena_bytes = arena_bytes;\n");
    cm_glue_put(t, "%s%s    return run(&call);\n}\n",
                weights ? "    call.weights = weights;\n" : "",
                step ? "    call.state = state;\n" : "");
    cm_glue_put(t,
                "\nconst char *%s_error(int code);\nconst char *%s_error(int code)\n{\n"
                "    return error_text(code);\n}\n",
                o->name, o->name);
    put_export(w, step ? "step" : "run");
    put_export(w, "error");
    if (step) {
        const char *more = weights ? "const void *weights, " : "";

        cm_glue_put(t,
                    "\nvoid %s_initialize(%svoid *state);\nvoid %s_initialize(%svoid *state)\n{\n"
                    "    memcpy(state, (const unsigned char *)%s + %zu, STATE_BYTES);\n}\n",
                    o->name, more, o->name, more, weights ? "weights" : "cm_weights",
                    o->state->initial_offset);
        put_export(w, "initialize");
        put_seed(w);
    }
}

static void put_places(struct cm_glue_writer *w)
{
    const struct cm_glue_options *o = w->options;
    const struct cm_mlir_program *p = w->program;
    struct cm_glue_text *t = &w->source;

    if (o->weights == CM_GLUE_CALLER) {
        cm_glue_put(t,
                    "\nextern const struct cm_compiled_place %s_weights[];\n"
                    "const struct cm_compiled_place %s_weights[] = {\n",
                    o->name, o->name);
        for (size_t i = 0; i < p->n_weights; i++) {
            cm_glue_put(t, "    {");
            cm_glue_put_literal(t, p->weights[i].name);
            cm_glue_put(t, ", %zu, %zu, \"%s\"},\n", p->weights[i].offset,
                        cm_tensor_bytes(p->weights[i].tensor),
                        cm_glue_weight_type(w->arena, &p->weights[i]).data);
        }
        cm_glue_put(t, "    {0, 0, 0, 0}};\n");
        put_export(w, "weights");
    }
    if (o->state) {
        cm_glue_put(t,
                    "\nextern const struct cm_compiled_place %s_state[];\n"
                    "const struct cm_compiled_place %s_state[] = {\n",
                    o->name, o->name);
        for (size_t i = 0; i < o->state->count; i++) {
            cm_glue_put(t, "    {");
            cm_glue_put_literal(t, o->state->variables[i].name);
            cm_glue_put(t, ", %zu, %zu, \"%s\"},\n", o->state->variables[i].offset,
                        o->state->variables[i].bytes,
                        cm_glue_variable_type(w, &o->state->variables[i]).data);
        }
        cm_glue_put(t, "    {0, 0, 0, 0}};\n");
        put_export(w, "state");
    }
}

static void put_description(struct cm_glue_writer *w)
{
    const struct cm_glue_options *o = w->options;

    cm_glue_put(&w->source,
                "\nextern const struct cm_compiled " CM_COMPILED_SYMBOL ";\n"
                "const struct cm_compiled " CM_COMPILED_SYMBOL " = {\n"
                "    CM_COMPILED_MAGIC, CM_COMPILED_ABI, %d, \"%s\", N_INPUTS, N_OUTPUTS, inputs,\n"
                "    outputs, %zu, WEIGHT_BYTES, %lu, STATE_BYTES, run, error_text};\n",
                (o->arena_is_fixed ? CM_COMPILED_FIXED_ARENA : 0) |
                    (o->weights == CM_GLUE_INSIDE ? CM_COMPILED_OWN_WEIGHTS : 0) |
                    (o->weights == CM_GLUE_CALLER ? CM_COMPILED_CALLER : 0) |
                    (o->state ? CM_COMPILED_STEP : 0),
                o->name, w->out->arena_bytes, (unsigned long)o->weight_check);
    put_export(w, NULL);
}

static void put_source(struct cm_glue_writer *w)
{
    const struct cm_glue_options *o = w->options;
    struct cm_glue_text *t = &w->source;
    const bool inside = o->weights == CM_GLUE_INSIDE;

    cm_glue_put_source(t, "mlir/runtime/compiled.h");
    put_ports(w, true);
    put_ports(w, false);
    const size_t n_equal = put_equal(w);
    put_messages(w);
    cm_glue_put(t, "enum { N_INPUTS = %zu, N_OUTPUTS = %zu, N_EQUAL = %zu, N_CHECKS = %zu };\n",
                w->inputs.count, w->outputs.count, n_equal, o->n_messages);
    cm_glue_put(t,
                "#define PLANNED_BYTES  ((size_t)%zu)\n#define WEIGHT_BYTES   ((size_t)%zu)\n"
                "#define STATE_BYTES    ((size_t)%zu)\n#define CHANGED_BYTES  ((size_t)%zu)\n"
                "#define WEIGHTS_INSIDE %d\n",
                o->planned_bytes, o->weight_bytes, o->state ? o->state->bytes : 0,
                o->state ? o->state->changed_bytes : 0, inside);
    if (inside && o->weight_bytes)
        cm_glue_put(t, "extern const unsigned char cm_weights[];\n#define WEIGHTS cm_weights\n\n");
    else
        cm_glue_put(t, "#define WEIGHTS %s\n\n", inside ? "0" : "call->weights");
    put_call(w);
    cm_glue_put_source(t, "mlir/runtime/runtime.c");
    put_public(w);
    put_places(w);
    if (o->is_library)
        put_description(w);
}

/* ---- the whole ---- */

static enum cm_status check_program(const struct cm_mlir_program *program, struct cm_error *err)
{
    for (size_t i = 0; i < program->n_inputs + program->n_outputs; i++) {
        const bool input = i < program->n_inputs;
        const struct cm_mlir_port *port =
            input ? &program->inputs[i] : &program->outputs[i - program->n_inputs];

        if (port->type == CM_STRING || !cm_dtype_is_valid(port->type))
            return cm_fail(err, CM_UNSUPPORTED,
                           "%s '%.*s' is of type %s, which compiled code does "
                           "not have",
                           input ? "input" : "output", CM_STR_FMT(port->name),
                           cm_dtype_name(port->type));
    }
    if (program->n_inputs > UINT16_MAX || program->n_outputs > UINT16_MAX)
        return cm_fail(err, CM_LIMIT, "%zu inputs and %zu outputs are more than 65535",
                       program->n_inputs, program->n_outputs);
    return CM_OK;
}

enum cm_status cm_glue_write(const struct cm_mlir_program *program,
                             const struct cm_glue_options *options, struct cm_arena *arena,
                             struct cm_glue *out, struct cm_error *err)
{
    enum { EXPORTS = 9 };
    struct cm_glue_writer w = {.program = program,
                               .options = options,
                               .arena = arena,
                               .out = out,
                               .header = {.arena = arena},
                               .source = {.arena = arena}};

    *out = (struct cm_glue){.exported = CM_NEW_ARRAY(arena, const char *, EXPORTS)};
    CM_TRY(check_program(program, err));
    own_ports(&w, true);
    own_ports(&w, false);
    for (size_t i = 0; i < program->n_outputs; i++)
        if (!program->outputs[i].is_fixed && w.outputs.slots[i] != i)
            return cm_fail(err, CM_UNSUPPORTED,
                           "output '%.*s' of a training step has no fixed shape",
                           CM_STR_FMT(program->outputs[i].name));
    /* The arena may begin anywhere; less than one alignment of it is left out. */
    out->arena_bytes = options->planned_bytes + CM_COMPILED_ALIGNMENT +
                       (options->state ? options->state->changed_bytes : 0);
    out->prototype = cm_glue_prototype(&w);
    put_source(&w);
    cm_glue_put_header(&w);
    out->header = (struct cm_str){w.header.data, w.header.size};
    out->source = (struct cm_str){w.source.data, w.source.size};
    return CM_OK;
}
