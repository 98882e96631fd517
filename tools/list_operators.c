/* Lists what the library has of each operator, for the page docs/operators.md.
 *
 * One line per operator, fields parted by tabs; the first line names them. Everything is read from
 * the tables the library itself looks things up in, so the list cannot promise more than there is.
 */
// SPDX-License-Identifier: Apache-2.0
#include "graph/backend.h"
#include "graph/registry.h"
#include "onnx/messages.h"
#include "versions/upgrade.h"

#include <stdio.h>

enum { BODY_DEPTH = 32, LACKS_MAX = 64 };

/* Operators that stand in the way of a text body, each once. */
struct lacks {
    const char *names[LACKS_MAX];
    size_t count;
};

typedef bool stops_fn(const struct cm_op *op, const struct cm_schema *schema);

/* Element types of any operand or result, in tensors or inside what wraps them. */
static uint64_t element_types(const struct cm_schema *schema)
{
    uint64_t elements = 0;
    for (size_t t = 0; t < schema->type_count; t++)
        for (size_t r = 0; r < schema->types[t].set.row_count; r++)
            elements |= schema->types[t].set.rows[r].elements;
    return elements;
}

static bool has_type_with_gradient(const struct cm_schema *schema, bool outputs)
{
    const struct cm_schema_param *params = outputs ? schema->outputs : schema->inputs;
    const size_t count = outputs ? schema->output_count : schema->input_count;
    for (size_t p = 0; p < count; p++) {
        const struct cm_type_set *set = cm_schema_types_of(schema, &params[p]);
        for (size_t r = 0; r < set->row_count; r++)
            for (int type = 1; type < CM_DTYPE_COUNT; type++)
                if ((set->rows[r].elements & CM_TYPE_BIT(type)) &&
                    cm_dtype_info((enum cm_dtype)type)->kind == CM_CLASS_FLOAT)
                    return true;
    }
    return false;
}

static bool has_no_kernel(const struct cm_op *op, const struct cm_schema *schema)
{
    (void)schema;
    return !op || !op->run;
}

/* A gradient that cannot arrive needs no rule: no inputs, or no outputs that have gradients. */
static bool has_no_rule(const struct cm_op *op, const struct cm_schema *schema)
{
    return (!op || !op->grad) && schema->input_count > 0 && has_type_with_gradient(schema, true);
}

static void note(struct lacks *lacks, const char *name)
{
    for (size_t i = 0; i < lacks->count; i++)
        if (strcmp(lacks->names[i], name) == 0)
            return;
    if (lacks->count < LACKS_MAX)
        lacks->names[lacks->count++] = name;
}

/* What a builder emits is not known before it builds, so a builder stops nothing here. */
static void walk_nodes(const struct cm_nodes *nodes, stops_fn *stops, struct lacks *lacks,
                       int depth)
{
    const struct cm_registry *registry = cm_registry_builtin();
    for (size_t i = 0; i < nodes->count; i++) {
        const struct cm_node_proto *node = &nodes->items[i];
        const struct cm_schema *schema =
            cm_registry_schema(registry, node->domain, node->op_type, 0);
        const struct cm_op *op = cm_registry_op(registry, node->domain, node->op_type);
        const struct cm_function_proto *text =
            cm_registry_body(registry, node->domain, node->op_type);
        for (size_t a = 0; a < node->attribute.count; a++)
            if (node->attribute.items[a].g && depth < BODY_DEPTH)
                walk_nodes(&node->attribute.items[a].g->node, stops, lacks, depth + 1);
        if (!schema || !stops(op, schema) || (op && op->body))
            continue;
        if (text && depth < BODY_DEPTH)
            walk_nodes(&text->node, stops, lacks, depth + 1);
        else
            note(lacks, schema->name);
    }
}

/* "-", or the operators that keep the text body from working. */
static void print_lacks(const struct cm_function_proto *text, bool matters, stops_fn *stops)
{
    struct lacks lacks = {.count = 0};
    if (text && matters)
        walk_nodes(&text->node, stops, &lacks, 0);
    printf("\t%s", lacks.count ? "" : "-");
    for (size_t i = 0; i < lacks.count; i++)
        printf("%s%s", i ? "," : "", lacks.names[i]);
}

static bool is_replaced(const struct cm_op *op)
{
    return op && op->effects & CM_REPLACED;
}

static const char *gradient_of(const struct cm_op *op, const struct cm_schema *schema,
                               bool has_body)
{
    if (is_replaced(op))
        return "replaced";
    if (op && op->grad)
        return op->grad == cm_grad_none ? "none" : "rule";
    if (!has_no_rule(op, schema))
        return "not_needed";
    return has_body ? "body" : "missing";
}

static bool has_kernel(const struct cm_backend *backend, const struct cm_schema *schema)
{
    for (const struct cm_kernel *const *kernel = backend->kernels; *kernel; kernel++)
        if (strcmp((*kernel)->name, schema->name) == 0 &&
            strcmp((*kernel)->domain, schema->domain) == 0)
            return true;
    return false;
}

static void print_backends(const struct cm_schema *schema)
{
    size_t count = 0;
    putchar('\t');
    for (size_t b = 0; b < cm_backend_count; b++)
        if (has_kernel(cm_backends[b], schema))
            printf("%s%s", count++ ? "," : "", cm_backends[b]->name);
    printf("%s", count ? "" : "-");
}

static void print_types(const struct cm_schema *schema)
{
    const uint64_t elements = element_types(schema);
    putchar('\t');
    for (int type = 1, count = 0; type < CM_DTYPE_COUNT; type++)
        if (elements & CM_TYPE_BIT(type))
            printf("%s%s", count++ ? "," : "", cm_dtype_name((enum cm_dtype)type));
    printf("%s", elements ? "" : "-");
}

/* How many of the older versions climb to the newest: every change above them has a rule. */
static size_t upgradable(size_t first, size_t count)
{
    size_t climbed = 0;
    while (climbed + 1 < count) {
        const struct cm_schema *to = cm_schema_at(first + climbed);
        if (cm_upgrade_known(cm_str(to->domain), cm_str(to->name), to->since_version) ==
            CM_UPGRADE_MISSING)
            break;
        climbed++;
    }
    return climbed;
}

/* The count schemas from number first on are the versions of one operator, newest first. */
static void print_operator(size_t first, size_t count)
{
    const struct cm_schema *schema = cm_schema_at(first);
    const struct cm_str domain = cm_str(schema->domain), name = cm_str(schema->name);
    const struct cm_op *op = cm_registry_op(cm_registry_builtin(), domain, name);
    const struct cm_function_proto *text = cm_registry_body(cm_registry_builtin(), domain, name);
    const bool built = op && op->body, has_body = built || text;
    const char *gradient = gradient_of(op, schema, has_body);

    printf("%s\t%s\t", schema->domain[0] ? schema->domain : "ai.onnx", schema->name);
    for (size_t i = 0; i < count; i++)
        printf("%s%d", i ? "," : "", cm_schema_at(first + i)->since_version);
    printf("\t%zu", upgradable(first, count));
    printf("\t%s", schema->deprecated ? "deprecated" : schema->experimental ? "experimental" : "-");
    print_types(schema);
    printf("\t%s", op && op->infer ? "rule" : has_body ? "body" : "missing");
    printf("\t%s", is_replaced(op) ? "replaced" : op && op->run ? "yes" : "no");
    print_backends(schema);
    printf("\t%s", schema->context_body_count ? "context" : schema->body_count ? "plain" : "-");
    printf("\t%s", built ? "builder" : text ? "text" : "-");
    printf("\t%s", gradient);
    /* The builder is asked first, and may decline; then the text is not used either. */
    print_lacks(text, !built && !(op && op->run), has_no_kernel);
    print_lacks(text, !built && strcmp(gradient, "body") == 0, has_no_rule);
    putchar('\n');
}

int main(void)
{
    if (!cm_registry_builtin()) {
        fputs("list_operators: out of memory\n", stderr);
        return 3;
    }
    puts("domain\tname\tversions\tupgrades\tstate\ttypes\tinfer\tkernel\tbackends\tonnx_"
         "body\tbody\tgradient"
         "\tkernel_lacks\tgradient_lacks");
    for (size_t first = 0, count; first < cm_schema_count(); first += count) {
        const struct cm_schema *schema = cm_schema_at(first);
        for (count = 1; first + count < cm_schema_count(); count++) {
            const struct cm_schema *other = cm_schema_at(first + count);
            if (strcmp(other->name, schema->name) != 0 ||
                strcmp(other->domain, schema->domain) != 0)
                break;
        }
        print_operator(first, count);
    }
    return ferror(stdout) || fflush(stdout) ? 3 : 0;
}
