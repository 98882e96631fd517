/* The state of a compiled training step: which inputs and outputs of its program are variables, and
 * what they begin with. */
// SPDX-License-Identifier: Apache-2.0
#include "api/compiling.h"

#include "api/training.h"

enum cm_status cm_api_begin_state(struct cm_api_compile *c)
{
    struct cameo_error err;

    if (cameo_model_copy(c->model, &c->trained, &err) != CAMEO_OK ||
        cameo_trainer_new(c->trained, NULL, &c->trainer, &err) != CAMEO_OK ||
        (c->options.initialize && cameo_trainer_initialize(c->trainer, &err) != CAMEO_OK))
        return cm_fail(&c->err, (enum cm_status)err.status, "%.1000s", err.message);
    return CM_OK;
}

size_t cm_api_step_entries(const struct cm_api_compile *c, struct cm_arena *arena,
                           const struct cm_mlir_entry **out)
{
    const struct cm_trainer *trainer = c->trainer ? c->trainer->trainer : NULL;
    const size_t count = trainer ? cm_trainer_entry_count(trainer) : 0;
    struct cm_mlir_entry *entries = CM_NEW_ARRAY(arena, struct cm_mlir_entry, count);

    for (size_t k = 0; k < count; k++)
        cm_trainer_draws(trainer, k, &entries[k].streams, &entries[k].seed);
    *out = entries;
    return count;
}

void cm_api_end_state(struct cm_api_compile *c)
{
    cameo_trainer_free(c->trainer);
    cameo_model_free(c->trained);
}

/* The number of the port that is called so, or -1. */
static ptrdiff_t port_called(const struct cm_mlir_port *ports, size_t count, struct cm_str name)
{
    for (size_t i = 0; i < count; i++)
        if (cm_str_equal(ports[i].name, name))
            return (ptrdiff_t)i;
    return -1;
}

static enum cm_status read_variable(struct cm_api_compile *c, size_t index, struct cm_arena *arena,
                                    const struct cm_mlir_port *port, const struct cm_tensor **out)
{
    struct cm_tensor *tensor = CM_NEW(arena, struct cm_tensor);
    struct cm_shape shape = {.rank = port->rank};
    struct cameo_error err;
    size_t bytes;

    if (!port->is_fixed || port->rank > CM_MAX_RANK)
        return cm_fail(&c->err, CM_UNSUPPORTED, "variable '%.*s' has no fixed shape",
                       CM_STR_FMT(port->name));
    for (int i = 0; i < port->rank; i++)
        shape.dims[i] = port->dims[i];
    *tensor = cm_tensor_borrow(port->type, &shape, NULL);
    bytes = cm_tensor_bytes(tensor);
    tensor->data = cm_arena_alloc(arena, bytes);
    if (cameo_trainer_read_variable(c->trainer, index, tensor->data, bytes, &err) != CAMEO_OK)
        return cm_fail(&c->err, (enum cm_status)err.status, "%.1000s", err.message);
    *out = tensor;
    return CM_OK;
}

/* Where the random numbers stand is part of the state, under the name that checkpoints give it. */
static void add_random(const struct cm_mlir_program *p, struct cm_arena *arena, size_t number,
                       struct cm_glue_state *state, const struct cm_tensor **initial)
{
    struct cm_tensor *tensor = CM_NEW(arena, struct cm_tensor);

    *tensor =
        cm_tensor_borrow(CM_INT64, &CM_SHAPE((int64_t)p->n_random), (void *)(uintptr_t)p->random);
    *initial = tensor;
    state->variables[state->count++] = (struct cm_glue_variable){.name = CM_STR("cameo/random"),
                                                                 .number = number,
                                                                 .bytes = cm_tensor_bytes(tensor),
                                                                 .input = -1,
                                                                 .output = -1,
                                                                 .is_random = true};
}

enum cm_status cm_api_find_state(struct cm_api_compile *c, struct cm_arena *arena,
                                 struct cm_glue_state *state, const struct cm_tensor ***initial)
{
    const struct cm_mlir_program *p = &c->program;
    const size_t count = cameo_trainer_variable_count(c->trainer);

    *state = (struct cm_glue_state){.variables =
                                        CM_NEW_ARRAY(arena, struct cm_glue_variable, count + 1)};
    *initial = CM_NEW_ARRAY(arena, const struct cm_tensor *, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct cm_str name =
            cm_arena_str(arena, cm_str(cameo_trainer_variable(c->trainer, i)->name.data));
        const struct cm_str next = cm_arena_printf(arena, "%s.next", cm_str_text(name));
        struct cm_glue_variable *v = &state->variables[state->count];

        *v = (struct cm_glue_variable){.name = name,
                                       .number = i,
                                       .input = port_called(p->inputs, p->n_inputs, name),
                                       .output = port_called(p->outputs, p->n_outputs, next)};
        if (v->input < 0 && v->output < 0)
            continue; /* no entry reads or writes it */
        const struct cm_mlir_port *port =
            v->input >= 0 ? &p->inputs[v->input] : &p->outputs[v->output];
        CM_TRY(read_variable(c, i, arena, port, &(*initial)[i]));
        v->bytes = port->bytes;
        state->count++;
    }
    if (p->n_random)
        add_random(p, arena, count, state, &(*initial)[count]);
    return CM_OK;
}
