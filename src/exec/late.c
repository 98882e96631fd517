/* Steps that are prepared as they run, because only data tells the shapes they meet. Kernels of
 * backends, which are costly to make, are kept for the shapes met lately. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/program.h"

#include "base/memory.h"

/* The choice of a kernel for one set of shapes, and what it prepared. */
struct cm_prepared {
    struct cm_arena arena;
    const struct cm_kernel *kernel;   /* NULL: none took it */
    const struct cm_tensor *in, *out; /* types and shapes */
    void *state;
    size_t scratch_size;
    const struct cm_layout **want, **give;
    void **packed; /* by input: a constant in the layout it wants; NULL: moved in each run */
    const char *declined;
    struct cm_prepared *next;
};

static void free_one(struct cm_prepared *prepared)
{
    cm_arena_release(&prepared->arena);
    cm_free(prepared);
}

void cm_prepared_free(void *bound_step)
{
    struct cm_bound_step *bound = bound_step;
    for (struct cm_prepared *prepared = bound->prepared, *next; prepared; prepared = next) {
        next = prepared->next;
        free_one(prepared);
    }
    bound->prepared = NULL;
}

/* ---- operands and results ---- */

/* Operands must be plain. */
static enum cm_status make_plain(struct cm_context *context, struct cm_bound_step *bound,
                                 struct cm_error *err)
{
    for (int i = 0; i < bound->step->n_in; i++) {
        const cm_slot_id id = bound->step->in[i];
        if (id == CM_NO_SLOT || !context->slots[id].datum.tensor.layout)
            continue;
        const struct cm_tensor *tensor = &context->slots[id].datum.tensor;
        if (tensor->layout == &cm_unaligned) {
            CM_TRY(cm_align_constant(context->session, id, &bound->in_datum[i], err));
            continue;
        }
        struct cm_datum *plain = cm_data_new(bound->arena, 1); /* dropped with the step */
        CM_TRY(cm_context_tensor(context, tensor->type, &tensor->shape, &plain->tensor, err));
        plain->kind = CM_KIND_TENSOR;
        CM_TRY(tensor->layout->reorder(tensor, &plain->tensor, err));
        bound->in_datum[i] = plain;
    }
    return CM_OK;
}

/* What is known of an operand; of a sequence what the graph says, as looking at all items would
 * cost more than many a step does. */
static struct cm_fact fact_of(const struct cm_bound_step *bound, int i)
{
    const struct cm_datum *datum = bound->call.in_datum[i];
    const struct cm_node *node = bound->step->node;
    const struct cm_type *said = cm_value_get(node->module, node->inputs[i].value)->fact.type;
    struct cm_fact fact = {0};
    if (datum->kind == CM_KIND_TENSOR)
        fact.constant = &datum->tensor;
    fact.type = datum->kind == CM_KIND_SEQUENCE && said->kind == CM_KIND_SEQUENCE && said->elem
                    ? said
                    : cm_type_of_datum(bound->arena, datum);
    return fact;
}

static enum cm_status allocate_results(struct cm_context *context,
                                       const struct cm_bound_step *bound, struct cm_error *err)
{
    const struct cm_step *step = bound->step;
    struct cm_arena *arena = bound->arena;
    struct cm_fact *facts = CM_NEW_ARRAY(arena, struct cm_fact, (size_t)step->n_in);
    struct cm_fact *results = CM_NEW_ARRAY(arena, struct cm_fact, (size_t)step->n_out);
    for (int i = 0; i < step->n_in; i++)
        if (step->in[i] != CM_NO_SLOT)
            facts[i] = fact_of(bound, i);
    CM_TRY(cm_step_infer(step, arena, facts, results, err));
    for (int o = 0; o < step->n_out; o++) {
        if (step->out[o] == CM_NO_SLOT)
            continue;
        struct cm_shape shape;
        if (results[o].type && results[o].type->kind != CM_KIND_TENSOR)
            continue; /* made by the kernel itself */
        if (!results[o].type || !cm_type_shape(results[o].type, &shape))
            return cm_fail(err, CM_UNSUPPORTED, "the shape of output %d is still unknown", o);
        struct cm_datum *datum = &context->slots[step->out[o]].datum;
        CM_TRY(cm_context_tensor(context, results[o].type->dtype, &shape, &datum->tensor, err));
        datum->kind = CM_KIND_TENSOR;
    }
    return CM_OK;
}

/* Steps after it were bound for the shapes that were foreseen. */
static enum cm_status check_results(struct cm_context *context, const struct cm_bound_step *bound,
                                    struct cm_error *err)
{
    for (int o = 0; bound->types && o < bound->step->n_out; o++) {
        struct cm_shape shape;
        char has[100], foreseen[100];
        if (!bound->types[o])
            continue;
        const struct cm_tensor *tensor = &context->slots[bound->step->out[o]].datum.tensor;
        cm_type_shape(bound->types[o], &shape);
        if (tensor->type == bound->types[o]->dtype && cm_shape_equal(&tensor->shape, &shape))
            continue;
        return cm_fail(err, CM_BAD_MODEL, "output %d is %s[%s], but its bodies give %s[%s]", o,
                       cm_dtype_name(tensor->type), cm_shape_print(&tensor->shape, has, sizeof has),
                       cm_dtype_name(bound->types[o]->dtype),
                       cm_shape_print(&shape, foreseen, sizeof foreseen));
    }
    return CM_OK;
}

/* ---- choosing a kernel ---- */

static bool same_type(const struct cm_tensor *a, const struct cm_tensor *b)
{
    return !b ? !a->shape.rank && !a->data && a->type == 0
              : a->type == b->type && cm_shape_equal(&a->shape, &b->shape);
}

static bool fits(const struct cm_prepared *prepared, const struct cm_bound_step *bound)
{
    for (int i = 0; i < bound->call.n_in; i++)
        if (!same_type(&prepared->in[i], bound->call.in[i]))
            return false;
    for (int o = 0; o < bound->call.n_out; o++)
        if (!same_type(&prepared->out[o], bound->call.out[o]))
            return false;
    return true;
}

static struct cm_prepared *find(struct cm_bound_step *bound)
{
    size_t count = 0;
    for (struct cm_prepared **at = &bound->prepared; *at; at = &(*at)->next) {
        struct cm_prepared *prepared = *at;
        if (fits(prepared, bound)) {
            *at = prepared->next;
            prepared->next = bound->prepared;
            bound->prepared = prepared;
            return prepared;
        }
        if (++count >= CM_RECENT_BINDINGS) { /* the oldest makes room for the next */
            *at = NULL;
            free_one(prepared);
            break;
        }
    }
    return NULL;
}

static struct cm_tensor *headers(struct cm_arena *arena, const struct cm_tensor *const *tensors,
                                 int count)
{
    struct cm_tensor *made = CM_NEW_ARRAY(arena, struct cm_tensor, (size_t)count);
    for (int i = 0; i < count; i++) {
        if (!tensors[i])
            continue;
        made[i].type = tensors[i]->type;
        made[i].shape = tensors[i]->shape;
    }
    return made;
}

/* Asks the kernels with the data at hand hidden, constants aside: one that prepared itself for it
 * would be wrong in the next run. */
static enum cm_status choose(struct cm_context *context, struct cm_bound_step *bound,
                             struct cm_prepared *prepared)
{
    const struct cm_step *step = bound->step;
    struct cm_arena *arena = &prepared->arena, *const per_run = bound->arena;
    const struct cm_tensor **in = bound->in;
    struct cm_tensor **out = bound->out;
    const struct cm_tensor **shown_in =
        CM_NEW_ARRAY(per_run, const struct cm_tensor *, (size_t)step->n_in);
    struct cm_tensor **shown_out = CM_NEW_ARRAY(per_run, struct cm_tensor *, (size_t)step->n_out);
    struct cm_tensor *hidden_in = headers(arena, bound->call.in, step->n_in);
    struct cm_tensor *hidden_out =
        headers(arena, (const struct cm_tensor *const *)bound->call.out, step->n_out);
    prepared->in = hidden_in;
    prepared->out = hidden_out;
    prepared->want = CM_NEW_ARRAY(arena, const struct cm_layout *, (size_t)step->n_in);
    prepared->give = CM_NEW_ARRAY(arena, const struct cm_layout *, (size_t)step->n_out);
    prepared->packed = CM_NEW_ARRAY(arena, void *, (size_t)step->n_in);
    for (int i = 0; i < step->n_in; i++) {
        shown_in[i] = in[i];
        if (in[i] && !context->slots[step->in[i]].known &&
            !context->session->constants[step->in[i]])
            in[i] = &hidden_in[i];
    }
    for (int o = 0; o < step->n_out; o++) {
        shown_out[o] = out[o];
        if (out[o])
            out[o] = &hidden_out[o];
    }
    bound->arena = arena;
    bound->want = prepared->want;
    bound->give = prepared->give;
    bound->declined = bound->waits_for;
    bound->scratch_size = 0;
    bound->call.state = NULL;
    prepared->kernel = cm_choose_kernel(bound, arena);
    enum cm_status status = CM_OK;
    if (prepared->kernel && prepared->kernel->prepare)
        status = prepared->kernel->prepare(&bound->call);
    prepared->state = bound->call.state;
    prepared->scratch_size = bound->scratch_size;
    prepared->declined = bound->declined;
    bound->arena = per_run;
    bound->want = bound->give = NULL;
    memcpy(in, shown_in, (size_t)step->n_in * sizeof *in);
    memcpy(out, shown_out, (size_t)step->n_out * sizeof *out);
    if (prepared->kernel && prepared->kernel->layouts != CM_LAYOUT_CHOSEN) {
        memset(prepared->want, 0, (size_t)step->n_in * sizeof *prepared->want);
        memset(prepared->give, 0, (size_t)step->n_out * sizeof *prepared->give);
    }
    return status;
}

static enum cm_status pack_constants(struct cm_context *context, const struct cm_bound_step *bound,
                                     struct cm_prepared *prepared, struct cm_error *err)
{
    for (int i = 0; prepared->kernel && i < bound->step->n_in; i++) {
        const cm_slot_id id = bound->step->in[i];
        const struct cm_layout *want = prepared->want[i];
        if (!want || !want->size || !context->session->constants[id])
            continue;
        CM_TRY(cm_pack_constant(context->session, &prepared->arena, context->session->constants[id],
                                want, &prepared->packed[i], err));
    }
    return CM_OK;
}

static enum cm_status prepare(struct cm_context *context, struct cm_bound_step *bound,
                              struct cm_prepared **out, struct cm_error *err)
{
    *out = find(bound);
    if (*out)
        return CM_OK;
    struct cm_prepared *prepared = cm_calloc(1, sizeof *prepared);
    if (!prepared)
        return cm_fail(err, CM_NO_MEMORY, "no memory to prepare the step");
    /* In the list from the start, so that it is freed if memory runs out half way. */
    prepared->next = bound->prepared;
    bound->prepared = prepared;
    cm_arena_init(&prepared->arena, context->guard);
    enum cm_status status = choose(context, bound, prepared);
    if (!status)
        status = pack_constants(context, bound, prepared, err);
    if (status) {
        bound->prepared = prepared->next;
        free_one(prepared);
        return status;
    }
    *out = prepared;
    return CM_OK;
}

/* ---- running ---- */

static enum cm_status take_scratch(struct cm_context *context, struct cm_bound_step *bound,
                                   size_t size, struct cm_error *err)
{
    struct cm_datum *room = cm_data_new(bound->arena, 1); /* gone with the step */
    bound->call.scratch = cm_no_scratch;
    if (!size)
        return CM_OK;
    if (size > SIZE_MAX / 2)
        return cm_fail(err, CM_LIMIT, "needs %zu bytes of scratch memory", size);
    CM_TRY(cm_context_buffer(context, size, &room->tensor.buffer, err));
    bound->call.scratch = cm_buffer_data(room->tensor.buffer);
    return CM_OK;
}

static enum cm_status run_reference(struct cm_context *context, struct cm_bound_step *bound,
                                    struct cm_error *err)
{
    const struct cm_op *op = bound->step->node->op;
    bound->kernel = "reference";
    bound->scratch_size = 0;
    bound->call.state = NULL;
    if (op->prepare)
        CM_TRY(op->prepare(&bound->call));
    CM_TRY(take_scratch(context, bound, bound->scratch_size, err));
    return op->run(&bound->call);
}

/* Memory for a tensor in another layout, until the step is over. */
static enum cm_status beside(struct cm_context *context, struct cm_bound_step *bound,
                             const struct cm_tensor *tensor, const struct cm_layout *layout,
                             struct cm_tensor **out, struct cm_error *err)
{
    struct cm_datum *made = cm_data_new(bound->arena, 1);
    struct cm_buffer *buffer;
    CM_TRY(cm_context_buffer(context, layout->bytes, &buffer, err));
    made->tensor = *tensor;
    made->tensor.layout = layout;
    made->tensor.buffer = buffer;
    made->tensor.data = cm_buffer_data(buffer);
    *out = &made->tensor;
    return CM_OK;
}

static enum cm_status bring_inputs(struct cm_context *context, struct cm_bound_step *bound,
                                   const struct cm_prepared *prepared, struct cm_error *err)
{
    for (int i = 0; i < bound->step->n_in; i++) {
        const struct cm_layout *want = prepared->want[i];
        struct cm_tensor *copy;
        if (!want || want == &cm_unaligned || !bound->call.in[i])
            continue;
        if (prepared->packed[i]) {
            copy = CM_NEW(bound->arena, struct cm_tensor);
            *copy = *bound->call.in[i];
            copy->layout = want;
            copy->buffer = NULL;
            copy->data = prepared->packed[i];
        } else {
            CM_TRY(beside(context, bound, bound->call.in[i], want, &copy, err));
            CM_TRY(want->reorder(bound->call.in[i], copy, err));
        }
        bound->in[i] = copy;
    }
    return CM_OK;
}

static enum cm_status run_kernel(struct cm_context *context, struct cm_bound_step *bound,
                                 const struct cm_prepared *prepared, struct cm_error *err)
{
    const struct cm_step *step = bound->step;
    struct cm_tensor **out = bound->out;
    struct cm_tensor **plain = CM_NEW_ARRAY(bound->arena, struct cm_tensor *, (size_t)step->n_out);
    bound->kernel = prepared->kernel->backend->name;
    bound->call.arg = prepared->kernel->arg;
    CM_TRY(bring_inputs(context, bound, prepared, err));
    CM_TRY(take_scratch(context, bound, prepared->scratch_size, err));
    enum cm_status status = CM_OK;
    for (int o = 0; o < step->n_out && !status; o++) {
        plain[o] = out[o];
        if (out[o] && prepared->give[o])
            status = beside(context, bound, out[o], prepared->give[o], &out[o], err);
    }
    bound->call.state = prepared->state;
    if (!status)
        status = prepared->kernel->run(&bound->call);
    for (int o = 0; o < step->n_out; o++) {
        struct cm_tensor *given = out[o];
        if (!plain[o] || given == plain[o])
            continue;
        out[o] = plain[o];
        if (!status)
            status = given->layout->reorder(given, plain[o], err);
    }
    return status;
}

enum cm_status cm_run_late(struct cm_context *context, struct cm_bound_step *bound,
                           struct cm_error *err)
{
    const struct cm_step *step = bound->step;
    const bool sizes_itself = step->node->op->effects & CM_OUTPUT_SIZE_AT_RUN;
    struct cm_prepared *prepared = NULL;
    for (int i = 0; i < step->n_in; i++)
        if (step->in[i] != CM_NO_SLOT)
            bound->in_datum[i] = &context->slots[step->in[i]].datum;
    CM_TRY(make_plain(context, bound, err));
    if (!sizes_itself)
        CM_TRY(allocate_results(context, bound, err));
    for (int i = 0; i < step->n_in; i++) /* a kernel sees a tensor or nothing */
        if (step->in[i] != CM_NO_SLOT)
            bound->in[i] = bound->call.in_datum[i]->kind == CM_KIND_TENSOR
                               ? &bound->call.in_datum[i]->tensor
                               : NULL;
    bound->declined = bound->waits_for;
    if (step->kernels.count && !sizes_itself)
        CM_TRY(prepare(context, bound, &prepared, err));
    if (prepared)
        bound->declined = prepared->declined;
    CM_TRY(prepared && prepared->kernel ? run_kernel(context, bound, prepared, err)
                                        : run_reference(context, bound, err));
    for (int o = 0; o < step->n_out; o++)
        if (step->out[o] != CM_NO_SLOT)
            CM_TRY(cm_own_bytes(context, &context->slots[step->out[o]].datum, err));
    return check_results(context, bound, err);
}
