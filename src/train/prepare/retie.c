/* Weights that are one in the framework and that an exporter wrote twice. A network whose output
 * layer reads the table of its embedding comes with the table and, folded into a constant, its
 * transpose; trained as two they would drift apart. The transpose becomes a node that computes it
 * from the table. Records say which tensors are meant, and values decide: what differs stays two.
 */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "train/prepare/preparation.h"

#include "graph/graph_messages.h"
#include "graph/registry.h"
#include "onnx/tensor_data.h"

enum { SAMPLES = 16 };

/* How the graph reads a matrix. */
struct matrix {
    const struct cm_tensor_proto *proto;
    bool is_table, is_factor; /* rows are looked up in it; a product reads it .. */
    bool is_read_otherwise;   /* .. or something else does */
    bool is_input;            /* its value is a default */
};

struct retie {
    struct cm_preparation *p;
    struct cm_graph_proto *graph;
    struct matrix *matrices; /* by initializer */
    size_t count;
    struct cm_map by_name; /* names of initializers to index + 1 */
    struct cm_map
        by_original;         /* the framework's names, of those that are not folded, to index + 1 */
    struct cm_map by_sample; /* some elements of tables to index + 1 */
    struct cm_map gone;      /* names of those that nodes compute from now on */
    CM_ARRAY(struct cm_node_proto) nodes;
};

/* ---- who reads what ---- */

static bool is_matrix(const struct cm_tensor_proto *tensor)
{
    return tensor->dims.count == 2 && cm_tensor_may_be_weight(tensor);
}

static void note_reads(struct retie *r, const struct cm_graph_proto *graph, int depth)
{
    for (size_t n = 0; n < graph->node.count; n++) {
        const struct cm_node_proto *node = &graph->node.items[n];
        const struct cm_op *op = cm_builtin_op(node);
        const struct cm_graph_proto *body;

        for (size_t k = 0; k < node->input.count; k++) {
            const uint64_t i = cm_map_get(&r->by_name, node->input.items[k], 0);
            struct matrix *matrix = i ? &r->matrices[i - 1] : NULL;

            if (!matrix)
                continue;
            const bool weighs = k < 2 && (op->layer.weights & CM_OPERAND(k)) && depth == 0;
            const bool table = weighs && k == 0 && op->layer.entry == CM_ENTERS_AS_TABLE;
            const bool factor = weighs && op->cost.flops && op->layer.entry == CM_ENTERS_BY_PLACE;
            matrix->is_table = matrix->is_table || table;
            matrix->is_factor = matrix->is_factor || factor;
            matrix->is_read_otherwise = matrix->is_read_otherwise || !(table || factor);
        }
        for (size_t b = 0; depth < 64 && (body = cm_node_subgraph(node, b)); b++)
            note_reads(r, body, depth + 1);
    }
}

static void list_matrices(struct retie *r)
{
    const struct cm_originals *originals = r->p->originals;

    r->count = r->graph->initializer.count;
    r->matrices = CM_NEW_ARRAY(r->p->arena, struct matrix, r->count);
    for (size_t i = 0; i < r->count; i++) {
        const struct cm_tensor_proto *tensor = &r->graph->initializer.items[i];
        const struct cm_original *original = cm_originals_find(originals, tensor->name);

        r->matrices[i].proto = tensor;
        if (!is_matrix(tensor))
            continue;
        *cm_map_insert(&r->by_name, r->p->arena, tensor->name, NULL) = i + 1;
        *cm_map_insert(&r->by_original, r->p->arena, tensor->name, NULL) = i + 1;
        for (size_t k = 0; original && !original->folding && k < original->names.count; k++)
            *cm_map_insert(&r->by_original, r->p->arena, original->names.items[k], NULL) = i + 1;
    }
    for (size_t i = 0; i < r->graph->input.count; i++) {
        const uint64_t at = cm_map_get(&r->by_name, r->graph->input.items[i].name, 0);

        if (at)
            r->matrices[at - 1].is_input = true;
    }
    note_reads(r, r->graph, 0);
}

/* ---- values ---- */

/* A few elements of a matrix and its size, as text to look it up by; of its transpose where told.
 */
static struct cm_str sample(struct retie *r, const struct cm_tensor *t, bool transposed)
{
    const int64_t rows = t->shape.dims[transposed], columns = t->shape.dims[!transposed];
    const size_t size = cm_dtype_size(t->type);
    char *text = cm_arena_alloc(r->p->arena, SAMPLES * size + 2 * sizeof rows);

    memcpy(text, &rows, sizeof rows);
    memcpy(text + sizeof rows, &columns, sizeof columns);
    for (int64_t s = 0; s < SAMPLES; s++) {
        const int64_t row = s * (rows - 1) / (SAMPLES - 1), column = s * 7 % columns;
        const int64_t at = transposed ? column * rows + row : row * columns + column;

        memcpy(text + 2 * sizeof rows + (size_t)s * size, (const char *)t->data + (size_t)at * size,
               size);
    }
    return (struct cm_str){text, SAMPLES * size + 2 * sizeof rows};
}

static bool is_transpose(const struct cm_tensor *a, const struct cm_tensor *b)
{
    const size_t size = cm_dtype_size(a->type);
    const int64_t rows = a->shape.dims[0], columns = a->shape.dims[1];

    if (a->type != b->type || b->shape.dims[0] != columns || b->shape.dims[1] != rows)
        return false;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            if (memcmp((const char *)a->data + (size_t)(i * columns + k) * size,
                       (const char *)b->data + (size_t)(k * rows + i) * size, size) != 0)
                return false;
    return true;
}

static bool load(const struct retie *r, const struct matrix *matrix, struct cm_tensor *out)
{
    if (cm_tensor_proto_load(matrix->proto, r->p->file->files, out, NULL))
        return false; /* what is broken is said elsewhere */
    if (cm_tensor_count(out) > 0 && out->shape.rank == 2)
        return true;
    cm_tensor_drop(out);
    return false;
}

static bool holds_transpose(struct retie *r, const struct matrix *matrix, const struct matrix *of)
{
    struct cm_tensor a, b;

    if (!load(r, of, &a))
        return false;
    const bool loaded = load(r, matrix, &b);
    const bool same = loaded && is_transpose(&a, &b);
    if (loaded)
        cm_tensor_drop(&b);
    cm_tensor_drop(&a);
    return same;
}

static void sample_tables(struct retie *r)
{
    for (size_t i = 0; i < r->count; i++) {
        struct cm_tensor t;
        double number;

        if (!r->matrices[i].is_table || cm_tensor_repeats(r->p, r->matrices[i].proto, &number) ||
            !load(r, &r->matrices[i], &t))
            continue;
        *cm_map_insert(&r->by_sample, r->p->arena, sample(r, &t, false), NULL) = i + 1;
        cm_tensor_drop(&t);
    }
}

/* ---- which are one ---- */

/* The matrix that a record says this is the transpose of; NULL: none. */
static struct matrix *recorded_table(struct retie *r, const struct matrix *matrix)
{
    const struct cm_original *original = cm_originals_find(r->p->originals, matrix->proto->name);

    if (!original || original->folding != CM_FOLDED_TRANSPOSED || original->is_named_by_node)
        return NULL;
    for (size_t k = 0; k < original->names.count; k++) {
        const uint64_t i = cm_map_get(&r->by_original, original->names.items[k], 0);

        if (i && &r->matrices[i - 1] != matrix)
            return &r->matrices[i - 1];
    }
    return NULL;
}

/* The table that a factor of products is the transpose of, by its values; NULL: none. */
static struct matrix *table_of_values(struct retie *r, const struct matrix *matrix)
{
    struct cm_tensor t;

    if (!matrix->is_factor || matrix->is_table || matrix->is_read_otherwise ||
        !r->by_sample.count || !load(r, matrix, &t))
        return NULL;
    const uint64_t i = cm_map_get(&r->by_sample, sample(r, &t, true), 0);
    cm_tensor_drop(&t);
    return i ? &r->matrices[i - 1] : NULL;
}

/* What is not trained may stay as it is. */
static bool may_be_trained(const struct cm_preparation *p, struct cm_str a, struct cm_str b)
{
    if (cm_preparation_matches(p, p->freeze, a) && cm_preparation_matches(p, p->freeze, b))
        return false;
    return !p->train || cm_preparation_matches(p, p->train, a) ||
           cm_preparation_matches(p, p->train, b);
}

static void tie(struct retie *r, const struct matrix *matrix, const struct matrix *table)
{
    static const int64_t swapped[] = {1, 0};
    struct cm_preparation *p = r->p;
    const struct cm_str name = matrix->proto->name, from = table->proto->name;

    cm_map_insert(&r->gone, p->arena, name, NULL);
    *CM_PUSH(p->arena, &r->nodes) = cm_node_proto_make(p->arena, "Transpose", &from, 1, name,
                                                       cm_attr_ints(p->arena, "perm", 2, swapped));
    cm_originals_join(p->originals, p->arena, name, from);
    cm_preparation_note(p,
                        "'%.*s' is the transpose of '%.*s', which the exporter wrote twice: they "
                        "are trained as one, and a Transpose node computes the former "
                        "(--keep-untied trains them apart)",
                        CM_STR_FMT(name), CM_STR_FMT(from));
}

static void consider(struct retie *r, const struct matrix *matrix)
{
    const struct cm_str name = matrix->proto->name;
    const struct matrix *recorded = recorded_table(r, matrix);
    const struct matrix *table = recorded ? recorded : table_of_values(r, matrix);

    if (!table || matrix->is_input || cm_map_find(&r->gone, table->proto->name) ||
        !may_be_trained(r->p, name, table->proto->name))
        return;
    if (holds_transpose(r, matrix, table))
        tie(r, matrix, table);
    else if (recorded)
        cm_preparation_note(
            r->p,
            "'%.*s' is recorded as the transpose of '%.*s', but holds other values: "
            "they are trained apart",
            CM_STR_FMT(name), CM_STR_FMT(table->proto->name));
}

enum cm_status cm_retie(struct cm_preparation *p)
{
    struct retie r = {.p = p, .graph = p->model->graph};

    if (p->options->plan || p->options->keep_untied)
        return CM_OK;
    list_matrices(&r);
    sample_tables(&r);
    for (size_t i = 0; i < r.count; i++)
        if (is_matrix(r.matrices[i].proto))
            consider(&r, &r.matrices[i]);
    if (!r.nodes.count)
        return CM_OK;
    cm_graph_proto_drop_initializers(p->arena, r.graph, &r.gone);
    cm_graph_proto_add_first(p->arena, r.graph, r.nodes.items, r.nodes.count);
    return CM_OK;
}
