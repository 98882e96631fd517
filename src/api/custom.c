/* Operators that a user of the library registers: the public form turned into the contract that our
 * own operators keep. */
// SPDX-License-Identifier: Apache-2.0
#include "api/custom.h"

#include "base/memory.h"
#include "graph/registry.h"
#include "onnx/syntax.h"

struct cameo_infer {
    struct cm_infer *in;
    bool told; /* a reason is noted */
    struct cm_error exhausted;
};

struct cameo_call {
    struct cm_call *call;
    bool told;
};

/* ---- memory while a function of the user's is running ---- */

struct keeping {
    struct cm_arena *arena;
    struct cm_arena_visit visit;
    cm_custom_keep_fn *fn;
    void *arg;
};

static enum cm_status keep_guarded(struct cm_guard *guard, void *arg)
{
    struct keeping *k = arg;

    k->visit = cm_arena_visit(k->arena, guard);
    k->fn(k->arena, k->arg);
    return CM_OK;
}

enum cm_status cm_custom_keep(struct cm_arena *arena, cm_custom_keep_fn *fn, void *arg,
                              struct cm_error *exhausted)
{
    struct keeping k = {.arena = arena, .fn = fn, .arg = arg};
    const enum cm_status status = cm_guarded(0, exhausted, keep_guarded, &k);

    cm_arena_come_back(arena, k.visit);
    return status;
}

void cm_custom_resume(const struct cm_arena *arena, const struct cm_error *exhausted)
{
    if (exhausted->status)
        cm_guard_unwind(arena->guard, exhausted->status, exhausted->text);
}

/* ---- what the engines call ---- */

static enum cm_status custom_infer(struct cm_infer *in)
{
    const struct cm_custom *custom = in->node->op->arg;
    struct cameo_infer wrapped = {.in = in};
    const enum cameo_status status = custom->infer(&wrapped, custom->arg);

    cm_custom_resume(in->arena, &wrapped.exhausted);
    if (status == CAMEO_OK || wrapped.told)
        return (enum cm_status)status;
    return cm_fail(in->err, CM_BAD_MODEL, "its inference function failed");
}

static enum cm_status custom_run(struct cm_call *call)
{
    const struct cm_custom *custom = call->op->arg;
    struct cameo_call wrapped = {.call = call};
    const enum cameo_status status = custom->run(&wrapped, custom->arg);

    if (status == CAMEO_OK || wrapped.told)
        return (enum cm_status)status;
    return cm_fail(call->err, (enum cm_status)status, "its run function failed");
}

/* ---- registering ---- */

struct add_call {
    struct cameo_registry *registry;
    const struct cameo_custom_operator *op;
};

static const char *keep(struct cm_arena *arena, const char *text)
{
    return cm_arena_str(arena, cm_str(text)).data;
}

/* The schema type of an operand: that of its variable when another operand named it before. */
static enum cm_status type_index(struct cm_arena *arena, const struct cameo_operand *operand,
                                 struct cm_schema_type *types, uint16_t *count, int16_t *out,
                                 struct cm_error *err)
{
    const uint64_t all = (CM_TYPE_BIT(CM_DTYPE_COUNT) - 1) & ~CM_TYPE_BIT(CM_UNDEFINED);
    const uint64_t wanted = operand->types ? operand->types : all;

    if (wanted & ~all)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "operand '%.200s' allows an element type that does not exist",
                       operand->name);
    for (size_t i = 0; operand->variable && i < *count; i++) {
        if (strcmp(types[i].name, operand->variable) != 0)
            continue;
        if (types[i].set.rows[0].elements != wanted)
            return cm_fail(err, CM_BAD_ARGUMENT,
                           "operands of the type variable '%.200s' allow different types",
                           operand->variable);
        *out = (int16_t)i;
        return CM_OK;
    }
    struct cm_type_row *row = CM_NEW(arena, struct cm_type_row);
    *row = (struct cm_type_row){CM_FORM_TENSOR, CM_UNDEFINED, wanted};
    types[*count] = (struct cm_schema_type){
        .name = operand->variable ? keep(arena, operand->variable)
                                  : cm_arena_printf(arena, "type of %s", operand->name).data,
        .set = {row, 1},
    };
    *out = (int16_t)(*count)++;
    return CM_OK;
}

struct side {
    const struct cm_schema_param *params;
    int least, most;
};

static enum cm_status add_side(struct cm_arena *arena, const struct cameo_operand *operands,
                               size_t count, struct cm_schema_type *types, uint16_t *n_types,
                               struct side *out, struct cm_error *err)
{
    struct cm_schema_param *params = CM_NEW_ARRAY(arena, struct cm_schema_param, count);

    *out = (struct side){params, 0, (int)count};
    for (size_t i = 0; i < count; i++) {
        struct cameo_operand one = CAMEO_OPERAND_INIT;
        const struct cameo_operand *from = &one;

        CM_TRY(cm_api_item(&one, sizeof one, operands, i, err));
        if (!from->name || !from->name[0])
            return cm_fail(err, CM_BAD_ARGUMENT, "operand %zu has no name", i);
        if ((unsigned)from->kind > CAMEO_OPERAND_VARIADIC ||
            (from->kind == CAMEO_OPERAND_VARIADIC && i + 1 < count))
            return cm_fail(err, CM_BAD_ARGUMENT, "operand '%.200s' cannot be of this kind",
                           from->name);
        params[i] = (struct cm_schema_param){.name = keep(arena, from->name),
                                             .kind = (enum cm_param_kind)from->kind,
                                             .min_arity = 1};
        CM_TRY(type_index(arena, from, types, n_types, &params[i].type, err));
        if (from->kind != CAMEO_OPERAND_OPTIONAL)
            out->least = (int)i + 1;
        if (from->kind == CAMEO_OPERAND_VARIADIC)
            out->most = CM_SCHEMA_UNBOUNDED;
    }
    return CM_OK;
}

static const struct cm_schema_default *preset(struct cm_arena *arena,
                                              const struct cameo_attribute *from)
{
    if (!from->has_default)
        return NULL;
    struct cm_schema_default *made = CM_NEW(arena, struct cm_schema_default);
    *made = (struct cm_schema_default){.f = from->f, .i = from->i};
    made->s = from->kind == CAMEO_ATTRIBUTE_STRING ? keep(arena, from->s) : NULL;
    return made;
}

static int by_name(const void *a, const void *b)
{
    const struct cm_schema_attr *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static enum cm_status add_attributes(struct cm_arena *arena, const struct cameo_attribute *given,
                                     size_t count, struct cm_schema *schema, struct cm_error *err)
{
    struct cm_schema_attr *attrs = CM_NEW_ARRAY(arena, struct cm_schema_attr, count);

    for (size_t i = 0; i < count; i++) {
        struct cameo_attribute from = CAMEO_ATTRIBUTE_INIT;

        CM_TRY(cm_api_item(&from, sizeof from, given, i, err));
        const int kind = (int)from.kind;
        if (!from.name || !from.name[0])
            return cm_fail(err, CM_BAD_ARGUMENT, "attribute %zu has no name", i);
        if (!((kind >= 1 && kind <= 3) || (kind >= 6 && kind <= 8)))
            return cm_fail(err, CM_BAD_ARGUMENT, "attribute '%.200s' has an unknown kind",
                           from.name);
        if (kind > 3 && from.has_default)
            return cm_fail(err, CM_BAD_ARGUMENT,
                           "attribute '%.200s' is a list, which cannot have a default", from.name);
        attrs[i] = (struct cm_schema_attr){keep(arena, from.name), (enum cm_schema_attr_kind)kind,
                                           from.required, preset(arena, &from)};
    }
    if (count)
        qsort(attrs, count, sizeof *attrs, by_name);
    schema->attrs = attrs;
    schema->attr_count = (uint16_t)count;
    return CM_OK;
}

static enum cm_status make_schema(struct cm_arena *arena, const struct cameo_custom_operator *op,
                                  struct cm_schema *schema, struct cm_error *err)
{
    struct cm_schema_type *types =
        CM_NEW_ARRAY(arena, struct cm_schema_type, op->input_count + op->output_count);
    struct side in, out;

    schema->domain = keep(arena, op->domain);
    schema->name = keep(arena, op->name);
    schema->since_version = op->version > 0 ? op->version : 1;
    CM_TRY(add_side(arena, op->inputs, op->input_count, types, &schema->type_count, &in, err));
    CM_TRY(add_side(arena, op->outputs, op->output_count, types, &schema->type_count, &out, err));
    schema->inputs = in.params;
    schema->input_count = (uint16_t)op->input_count;
    schema->min_inputs = in.least;
    schema->max_inputs = in.most;
    schema->outputs = out.params;
    schema->output_count = (uint16_t)op->output_count;
    schema->min_outputs = out.least;
    schema->max_outputs = out.most;
    schema->types = types;
    schema->infers_shape = true;
    return add_attributes(arena, op->attributes, op->attribute_count, schema, err);
}

static enum cm_status check_operator(const struct cameo_custom_operator *op, struct cm_error *err)
{
    const bool has_name = op->name && op->name[0], has_domain = op->domain && op->domain[0];
    const struct {
        bool wrong;
        const char *why;
    } rows[] = {
        {!has_name, "it has no name"},
        {!has_domain || strcmp(op->domain, "ai.onnx") == 0, "it needs a domain of its own"},
        {op->output_count == 0 || op->input_count > 1000 || op->output_count > 1000 ||
             op->attribute_count > 1000,
         "it has no outputs, or more operands or attributes than 1000"},
        {(op->input_count && !op->inputs) || !op->outputs ||
             (op->attribute_count && !op->attributes),
         "its operands or attributes are missing"},
        {op->body && op->make_body, "it has a body and a function that makes one"},
        {op->gradient && op->make_gradient, "it has a gradient and a function that makes one"},
        {!op->run && !op->body && !op->make_body, "it has neither a run function nor a body"},
        {!op->infer && op->input_count == 0 && op->run,
         "without inputs it needs an inference function"},
    };

    for (size_t i = 0; i < CM_COUNT(rows); i++)
        if (rows[i].wrong)
            return cm_fail(err, CM_BAD_ARGUMENT, "%s", rows[i].why);
    for (size_t i = 0; i < op->output_count && op->run && !op->body && !op->make_body; i++) {
        struct cameo_operand output = CAMEO_OPERAND_INIT;

        CM_TRY(cm_api_item(&output, sizeof output, op->outputs, i, err));
        if (output.types & CM_TYPE_BIT(CM_STRING))
            return cm_fail(err, CM_UNSUPPORTED, "an output of strings can only come from a body");
    }
    return CM_OK;
}

static enum cm_status add_gradient(struct cm_arena *arena, const struct cameo_custom_operator *op,
                                   struct cm_custom *custom, struct cm_error *err)
{
    if (!op->gradient)
        return CM_OK;
    struct cm_function_proto *gradient = CM_NEW(arena, struct cm_function_proto);
    CM_TRY(
        cm_syntax_parse_function(cm_arena_str(arena, cm_str(op->gradient)), arena, gradient, err));
    custom->gradient = gradient;
    return cm_custom_check_gradient(custom, gradient, err);
}

static enum cm_status add_operator(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    const struct add_call *call = arg;
    struct cm_arena *arena = &call->registry->arena;
    struct cm_registry *registry = call->registry->registry;
    const struct cameo_custom_operator *op = call->op;

    cm_arena_lend(arena, scratch->guard);
    CM_TRY(check_operator(op, err));
    struct cm_custom *custom = CM_NEW(arena, struct cm_custom);
    custom->infer = op->infer;
    custom->run = op->run;
    custom->make_body = op->make_body;
    custom->make_gradient = op->make_gradient;
    custom->arg = op->arg;
    CM_TRY(make_schema(arena, op, &custom->schema, err));
    CM_TRY(cm_error_context(err, add_gradient(arena, op, custom, err), "its gradient"));
    custom->op = (struct cm_op){
        .domain = custom->schema.domain,
        .name = custom->schema.name,
        .infer = op->infer ? custom_infer
                 : op->run ? cm_infer_like_input
                           : NULL,
        .run = op->run ? custom_run : NULL,
        .grad = op->gradient || op->make_gradient ? cm_custom_grad : NULL,
        .body = op->make_body ? cm_custom_body : NULL,
        .effects = (op->sizes_at_run ? CM_OUTPUT_SIZE_AT_RUN : 0u) |
                   (cm_str_is(cm_str(op->domain), CM_API_COMPILED_DOMAIN) ? CM_WHOLE_MODEL : 0u),
        .arg = custom,
    };
    CM_TRY(cm_registry_add(registry, &custom->schema, &custom->op, err));
    if (!op->body)
        return CM_OK;
    CM_TRY(cm_error_context(
        err, cm_registry_add_body(registry, cm_arena_str(arena, cm_str(op->body)), err),
        "its body"));
    if (!cm_registry_body(registry, cm_str(op->domain), cm_str(op->name)))
        return cm_fail(err, CM_BAD_ARGUMENT, "its body is that of another operator");
    return CM_OK;
}

enum cameo_status cameo_registry_add(struct cameo_registry *registry,
                                     const struct cameo_custom_operator *op,
                                     struct cameo_error *err)
{
    CM_API_NEED(registry, err);
    CM_API_NEED(op, err);
    struct cameo_custom_operator all = CAMEO_CUSTOM_OPERATOR_INIT;
    struct add_call call = {registry, &all};
    struct cm_error why = {0};
    enum cm_status status = cm_api_options(&all, sizeof all, op, &why);

    if (status == CM_OK)
        status = cm_api_guarded(NULL, add_operator, &call, &why);
    status = cm_error_context(&why, status, "operator '%.200s'", all.name ? all.name : "");
    return cm_api_done(status, &why, err);
}

static enum cm_status new_guarded(struct cm_guard *guard, void *arg)
{
    struct cameo_registry *registry = arg;

    cm_arena_init(&registry->arena, guard);
    registry->registry = cm_registry_new(&registry->arena);
    return CM_OK;
}

enum cameo_status cameo_registry_new(struct cameo_registry **out, struct cameo_error *err)
{
    CM_API_NEED(out, err);
    struct cameo_registry *registry = cm_calloc(1, sizeof *registry);
    struct cm_error reason = {0};
    enum cm_status status = CM_OK;

    *out = NULL;
    if (!registry || pthread_mutex_init(&registry->lock, NULL) != 0) {
        cm_free(registry);
        return cm_api_done(cm_fail(&reason, CM_NO_MEMORY, "no memory for a registry"), &reason,
                           err);
    }
    status = cm_guarded(0, &reason, new_guarded, registry);
    if (status)
        cameo_registry_free(registry);
    else
        *out = registry;
    return cm_api_done(status, &reason, err);
}

void cameo_registry_free(struct cameo_registry *registry)
{
    if (!registry)
        return;
    cm_arena_release(&registry->arena);
    pthread_mutex_destroy(&registry->lock);
    cm_free(registry);
}

/* No more rows from now on; NULL gives the built-in operators. */
static const struct cm_registry *api_freeze(const struct cameo_registry *registry)
{
    if (!registry)
        return cm_registry_builtin();
    /* Handles come from cm_calloc, so casting const away is sound. */
    struct cameo_registry *own = (struct cameo_registry *)(uintptr_t)registry;
    pthread_mutex_lock(&own->lock);
    if (!own->frozen)
        cm_registry_freeze(own->registry);
    own->frozen = true;
    pthread_mutex_unlock(&own->lock);
    return own->registry;
}

const struct cm_registry *cm_api_operators(const struct cameo_registry *given,
                                           const struct cm_model_file *file)
{
    return !given && file->registry ? file->registry : api_freeze(given);
}

void cameo_model_set_registry(struct cameo_model *model, const struct cameo_registry *registry)
{
    model->file->registry = registry ? api_freeze(registry) : NULL;
}

/* ---- what infer functions call ---- */

static const struct cm_type *input_type(const struct cameo_infer *in, size_t input)
{
    return input < (size_t)in->in->n_in ? in->in->in[input].type : NULL;
}

size_t cameo_infer_input_count(const struct cameo_infer *in)
{
    return (size_t)in->in->n_in;
}

enum cameo_dtype cameo_infer_dtype(const struct cameo_infer *in, size_t input)
{
    return cm_custom_dtype(input_type(in, input));
}

int cameo_infer_rank(const struct cameo_infer *in, size_t input)
{
    return cm_custom_rank(input_type(in, input));
}

int64_t cameo_infer_dim(const struct cameo_infer *in, size_t input, int axis)
{
    return cm_custom_dim(input_type(in, input), axis);
}

static enum cameo_status note(struct cameo_infer *in, enum cm_status status)
{
    in->told = in->told || status != CM_OK;
    return (enum cameo_status)status;
}

struct setting {
    struct cm_infer *in;
    int output, rank;
    enum cm_dtype dtype;
    const struct cm_dim *dims;
    enum cm_status status;
};

static void set_tensor(struct cm_arena *arena, void *arg)
{
    struct setting *s = arg;

    (void)arena; /* the one that in has */
    s->status = cm_infer_set_tensor(s->in, s->output, s->dtype, s->rank, s->dims);
}

enum cameo_status cameo_infer_set(struct cameo_infer *in, size_t output, enum cameo_dtype dtype,
                                  int rank, const int64_t *dims)
{
    struct cm_dim known[CM_MAX_RANK];

    if (output >= (size_t)in->in->n_out) /* one that the node does not want */
        return CAMEO_OK;
    if (!cm_dtype_is_valid((int64_t)dtype) || rank > CM_MAX_RANK || (rank > 0 && !dims))
        return cameo_infer_fail(in, "its inference function gives an output whose element type, "
                                    "rank or dimensions are invalid");
    for (int i = 0; i < rank; i++)
        known[i] = dims[i] < 0 ? CM_DIM_ANY : CM_DIM(dims[i]);
    struct setting s = {.in = in->in,
                        .output = (int)output,
                        .rank = rank < 0 ? CM_RANK_UNKNOWN : rank,
                        .dtype = (enum cm_dtype)dtype,
                        .dims = known};
    const enum cm_status status = cm_custom_keep(in->in->arena, set_tensor, &s, &in->exhausted);
    return note(in, status ? status : s.status);
}

enum cameo_status cameo_infer_set_like(struct cameo_infer *in, size_t output, size_t input)
{
    const struct cm_type *type = input_type(in, input);

    if (output >= (size_t)in->in->n_out)
        return CAMEO_OK;
    if (!type)
        return cameo_infer_fail(in, "an output is to be like an input that is absent");
    return note(in, cm_infer_set(in->in, (int)output, type));
}

enum cameo_status cameo_infer_fail(struct cameo_infer *in, const char *reason)
{
    return note(in, cm_infer_fail(in->in, "%s", reason));
}

int64_t cameo_infer_int(const struct cameo_infer *in, const char *name)
{
    return cm_node_int(in->in->node, name);
}

float cameo_infer_float(const struct cameo_infer *in, const char *name)
{
    return cm_node_float(in->in->node, name);
}

const int64_t *cameo_infer_ints(const struct cameo_infer *in, const char *name, size_t *count)
{
    return cm_custom_ints(in->in->node, name, count);
}

struct cameo_text cameo_infer_string(const struct cameo_infer *in, const char *name)
{
    return cm_api_view(cm_node_str(in->in->node, name));
}

const float *cameo_infer_floats(const struct cameo_infer *in, const char *name, size_t *count)
{
    return cm_custom_floats(in->in->node, name, count);
}

static bool string_at(const struct cm_node *node, const char *name, size_t index,
                      struct cameo_text *out)
{
    const struct cm_strs list = cm_node_strs(node, name);

    if (index < list.count)
        *out = cm_api_view(list.items[index]);
    return index < list.count;
}

bool cameo_infer_string_at(const struct cameo_infer *in, const char *name, size_t index,
                           struct cameo_text *out)
{
    return string_at(in->in->node, name, index, out);
}

bool cameo_infer_has(const struct cameo_infer *in, const char *name)
{
    return cm_node_has_attr(in->in->node, name);
}

/* ---- what run functions call ---- */

bool cameo_call_string_at(const struct cameo_call *call, const char *name, size_t index,
                          struct cameo_text *out)
{
    return string_at(call->call->node, name, index, out);
}

bool cameo_call_has(const struct cameo_call *call, const char *name)
{
    return cm_node_has_attr(call->call->node, name);
}

int64_t cameo_call_int(const struct cameo_call *call, const char *name)
{
    return cm_node_int(call->call->node, name);
}

float cameo_call_float(const struct cameo_call *call, const char *name)
{
    return cm_node_float(call->call->node, name);
}

struct cameo_text cameo_call_string(const struct cameo_call *call, const char *name)
{
    return cm_api_view(cm_node_str(call->call->node, name));
}

const int64_t *cameo_call_ints(const struct cameo_call *call, const char *name, size_t *count)
{
    return cm_custom_ints(call->call->node, name, count);
}

const float *cameo_call_floats(const struct cameo_call *call, const char *name, size_t *count)
{
    return cm_custom_floats(call->call->node, name, count);
}

size_t cameo_call_input_count(const struct cameo_call *call)
{
    return (size_t)call->call->n_in;
}

size_t cameo_call_output_count(const struct cameo_call *call)
{
    return (size_t)call->call->n_out;
}

static bool view(const struct cm_tensor *tensor, struct cameo_tensor *out)
{
    struct cm_error ignored = {0};

    if (!tensor || !out || cm_api_check_out(out, &ignored) != CM_OK)
        return false;
    const struct cameo_tensor all =
        cameo_tensor_of((enum cameo_dtype)tensor->type, tensor->shape.rank, tensor->shape.dims,
                        tensor->data, cm_tensor_bytes(tensor));
    cm_api_give(out, &all, sizeof all);
    return true;
}

bool cameo_call_input(const struct cameo_call *call, size_t index, struct cameo_tensor *out)
{
    return index < (size_t)call->call->n_in && view(call->call->in[index], out);
}

bool cameo_call_output(struct cameo_call *call, size_t index, struct cameo_tensor *out)
{
    return index < (size_t)call->call->n_out && view(call->call->out[index], out);
}

enum cameo_status cameo_call_allocate(struct cameo_call *call, size_t output,
                                      enum cameo_dtype dtype, int rank, const int64_t *dims)
{
    struct cm_shape shape;
    enum cm_status status;

    if (output >= (size_t)call->call->n_out)
        return CAMEO_OK;
    if (!(call->call->op->effects & CM_OUTPUT_SIZE_AT_RUN) || !cm_dtype_is_valid((int64_t)dtype))
        return cameo_call_fail(
            call, CAMEO_BAD_ARGUMENT,
            "allocates an output, but sizes_at_run is not set, or the element type is unknown");
    status = cm_api_shape(rank, dims, &shape, call->call->err);
    if (status == CM_OK)
        status = cm_call_allocate(call->call, (int)output, (enum cm_dtype)dtype, &shape);
    call->told = call->told || status != CM_OK;
    return (enum cameo_status)status;
}

static void pin(const struct cm_tensor *tensor)
{
    if (tensor && tensor->data && cm_tensor_bytes(tensor))
        cm_memory_pin(tensor->data);
}

void cameo_call_pin(struct cameo_call *call)
{
    for (int i = 0; i < call->call->n_in; i++)
        pin(call->call->in[i]);
    for (int o = 0; o < call->call->n_out; o++)
        pin(call->call->out[o]);
}

enum cameo_status cameo_call_fail(struct cameo_call *call, enum cameo_status status,
                                  const char *reason)
{
    call->told = true;
    return (enum cameo_status)cm_call_fail(call->call, (enum cm_status)status, "%s", reason);
}
