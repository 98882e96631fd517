/* Going through the nodes and edges of a model: of its graph, of graphs inside, of functions and of
 * training. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api_case.h"
#include "cameo.h"
#include "check.h"

static const char branching[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"my\" : 1]>\n"
    "g (float[N] x, bool c) => (float[N] y, float[M] gone)\n"
    "<float[1] w = {2}, float[N] h>\n"
    "{\n"
    "    h = Mul(x, w)\n"
    "    [choose] y = If (c) <\n"
    "        then_branch = yes () => (float[N] a) { a = Add(h, w) },\n"
    "        else_branch = no () => (float[N] b) { b = my.Twice <times = 3> (h) }>\n"
    "}\n"
    "<domain: \"my\", opset_import: [\"\" : 17]>\n"
    "Twice <times> (v) => (r)\n"
    "{\n"
    "    k = Constant <value_int: int = @times> ()\n"
    "    t = Constant <value = float[2] {1, 2.5}> ()\n"
    "    r = Clip (v, , t)\n"
    "}\n";

static const struct cameo_graph *graph_of(const struct cameo_model *model,
                                          enum cameo_graph_kind kind, size_t index)
{
    const struct cameo_graph *graph;
    struct cameo_error err;

    OK(cameo_model_graph(model, kind, index, &graph, &err));
    return graph;
}

void test_graphs__nodes_come_with_names_operators_and_edges(void)
{
    struct cameo_model *model = load_text(branching);
    const struct cameo_graph *graph = graph_of(model, CAMEO_GRAPH_MAIN, 0);
    const struct cameo_node *mul = cameo_graph_node(graph, 0), *choose = cameo_graph_node(graph, 1);

    CHECK_STRING(cameo_graph_name(graph).data, "g");
    CHECK(cameo_graph_owner(graph) == NULL);
    CHECK_INT(cameo_graph_node_count(graph), 2);
    CHECK(cameo_graph_node(graph, 2) == NULL);
    CHECK_STRING(mul->op_type.data, "Mul");
    CHECK_STRING(mul->domain.data, "");
    CHECK_INT(mul->input_count, 2);
    CHECK_STRING(mul->inputs[1].data, "w");
    CHECK_STRING(mul->outputs[0].data, "h");
    CHECK_INT(mul->attribute_count, 0);
    CHECK_STRING(choose->name.data, "choose");
    CHECK(choose->graph == graph && choose->index == 1);
    CHECK_INT(choose->attribute_count, 2);
    CHECK_INT(choose->attributes[1]->kind, CAMEO_ATTRIBUTE_GRAPH);
    CHECK_INT(choose->attributes[1]->graph_count, 1);
    const struct cameo_graph *no = choose->attributes[1]->graphs[0];
    CHECK_STRING(cameo_graph_name(no).data, "no");
    CHECK(cameo_graph_owner(no) == choose);
    const struct cameo_node *twice = cameo_graph_node(no, 0);
    CHECK_STRING(twice->domain.data, "my");
    CHECK_STRING(twice->attributes[0]->name.data, "times");
    CHECK_INT(twice->attributes[0]->kind, CAMEO_ATTRIBUTE_INT);
    CHECK_INT(twice->attributes[0]->i, 3);
    cameo_model_free(model);
}

void test_graphs__inputs_and_outputs_come_in_order(void)
{
    struct cameo_model *model = load_text(branching);
    const struct cameo_graph *graph = graph_of(model, CAMEO_GRAPH_MAIN, 0);
    const struct cameo_graph *yes = cameo_graph_node(graph, 1)->attributes[0]->graphs[0];
    const struct cameo_graph *twice = graph_of(model, CAMEO_GRAPH_FUNCTION, 0);

    CHECK_STRING(cameo_graph_input(graph, 0)->name.data, "x");
    CHECK_STRING(cameo_graph_input(graph, 1)->name.data, "c");
    CHECK(cameo_graph_input(graph, 2) == NULL);
    CHECK(cameo_graph_output(graph, 0) == cameo_graph_find_edge(graph, "y"));
    CHECK_STRING(cameo_graph_output(graph, 1)->name.data, "gone");
    CHECK(cameo_graph_output(graph, 2) == NULL);
    CHECK(cameo_graph_input(yes, 0) == NULL);
    CHECK_STRING(cameo_graph_output(yes, 0)->info->type.data, "float[N]");
    CHECK_STRING(cameo_graph_input(twice, 0)->name.data, "v");
    CHECK_STRING(cameo_graph_output(twice, 0)->name.data, "r");
    cameo_model_free(model);
}

void test_graphs__edges_know_who_makes_and_who_reads_them(void)
{
    struct cameo_model *model = load_text(branching);
    const struct cameo_graph *graph = graph_of(model, CAMEO_GRAPH_MAIN, 0);
    const struct cameo_edge *x = cameo_graph_find_edge(graph, "x"),
                            *w = cameo_graph_find_edge(graph, "w"),
                            *h = cameo_graph_find_edge(graph, "h"),
                            *y = cameo_graph_find_edge(graph, "y"),
                            *gone = cameo_graph_find_edge(graph, "gone");
    const struct cameo_graph *yes = cameo_graph_node(graph, 1)->attributes[0]->graphs[0];
    const struct cameo_node *add = cameo_graph_node(yes, 0);

    CHECK_INT(cameo_graph_edge_count(graph), 6);
    CHECK(cameo_graph_edge(graph, 0) == x);
    CHECK(cameo_graph_edge(graph, 6) == NULL);
    CHECK(cameo_graph_find_edge(graph, "a") == NULL);
    CHECK_INT(x->origin, CAMEO_EDGE_INPUT);
    CHECK_STRING(x->info->type.data, "float[N]");
    CHECK(x->maker == NULL && x->reader_count == 1 && x->readers[0]->index == 0);
    CHECK_INT(w->origin, CAMEO_EDGE_INITIALIZER);
    CHECK_INT(w->reader_count, 2); /* Mul, and Add in the branch, as its second input */
    CHECK(w->readers[1] == add && w->reader_inputs[1] == 1);
    CHECK_INT(h->origin, CAMEO_EDGE_NODE);
    CHECK(h->maker == cameo_graph_node(graph, 0) && h->maker_output == 0);
    CHECK_INT(h->reader_count, 2);
    CHECK(h->readers[0]->graph == yes && h->readers[1]->graph != yes);
    CHECK_STRING(h->info->type.data, "float[N]");
    CHECK(!h->is_output && y->is_output && gone->is_output);
    CHECK_INT(gone->origin, CAMEO_EDGE_UNDEFINED);

    const struct cameo_edge *inner = cameo_graph_find_edge(yes, "h");
    CHECK_INT(inner->origin, CAMEO_EDGE_OUTER);
    CHECK(inner->outer == h && inner->reader_count == 1);
    CHECK(cameo_graph_find_edge(yes, "a")->is_output);
    CHECK(cameo_graph_find_edge(yes, "x") == NULL);
    cameo_model_free(model);
}

void test_graphs__functions_show_references_and_tensors(void)
{
    struct cameo_model *model = load_text(branching);
    const struct cameo_graph *body = graph_of(model, CAMEO_GRAPH_FUNCTION, 0);
    const struct cameo_node *k = cameo_graph_node(body, 0), *t = cameo_graph_node(body, 1),
                            *clip = cameo_graph_node(body, 2);
    const struct cameo_graph *none;
    struct cameo_value *value;
    struct cameo_error err;

    CHECK_STRING(cameo_graph_name(body).data, "Twice");
    CHECK_STRING(k->attributes[0]->refers_to.data, "times");
    CHECK_INT(t->attributes[0]->kind, CAMEO_ATTRIBUTE_TENSOR);
    CHECK_INT(t->attributes[0]->tensor_count, 1);
    OK(cameo_attribute_tensor(model, t->attributes[0], 0, &value, &err));
    CHECK(cameo_value_count(value) == 2 && cameo_value_real(value, 1) == 2.5);
    cameo_value_free(value);
    CHECK_INT(cameo_attribute_tensor(model, t->attributes[0], 1, &value, &err), CAMEO_NOT_FOUND);
    CHECK_INT(cameo_attribute_tensor(model, k->attributes[0], 0, &value, &err), CAMEO_NOT_FOUND);
    CHECK_INT(clip->input_count, 3);
    CHECK_INT(clip->inputs[1].size, 0); /* left out */
    CHECK_INT(cameo_graph_find_edge(body, "t")->reader_inputs[0], 2);
    CHECK_INT(cameo_graph_find_edge(body, "v")->origin, CAMEO_EDGE_INPUT);
    CHECK(cameo_graph_find_edge(body, "r")->is_output);
    CHECK_INT(cameo_model_graph(model, CAMEO_GRAPH_FUNCTION, 1, &none, &err), CAMEO_NOT_FOUND);
    CHECK(none == NULL);
    CHECK_INT(cameo_model_graph(model, CAMEO_GRAPH_ALGORITHM, 0, &none, &err), CAMEO_NOT_FOUND);
    CHECK_INT(cameo_model_graph(model, (enum cameo_graph_kind)9, 0, &none, &err), CAMEO_NOT_FOUND);
    cameo_model_free(model);
}

/* Training reads what the inference graph makes, which does not know of it. */
void test_graphs__training_is_gone_through_after_it_was_prepared(void)
{
    struct cameo_model *model = load_text("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                          "g (float[N,2] x) => (float[N,1] y)\n"
                                          "<float[2,1] w = {1, 2}> { y = MatMul(x, w) }\n");
    const struct cameo_graph *before = graph_of(model, CAMEO_GRAPH_MAIN, 0);
    const size_t readers = cameo_graph_find_edge(before, "w")->reader_count;
    struct cameo_prepare_options options = CAMEO_PREPARE_OPTIONS_INIT;
    struct cameo_error err;

    options.loss = "mse";
    options.optimizer = "sgd";
    OK(cameo_model_prepare(model, &options, NULL, &err));
    const struct cameo_graph *algorithm = graph_of(model, CAMEO_GRAPH_ALGORITHM, 0);
    const struct cameo_edge *w = cameo_graph_find_edge(algorithm, "w");
    CHECK(w && w->origin == CAMEO_EDGE_OUTER && w->reader_count > 0);
    CHECK(w->outer == cameo_graph_find_edge(graph_of(model, CAMEO_GRAPH_MAIN, 0), "w"));
    CHECK_INT(w->outer->reader_count, readers);
    CHECK_STRING(cameo_graph_name(before).data, "g"); /* still there */
    for (size_t i = 0; i < cameo_graph_edge_count(algorithm); i++)
        CHECK(cameo_graph_edge(algorithm, i)->origin != CAMEO_EDGE_UNDEFINED);
    cameo_model_free(model);
}
