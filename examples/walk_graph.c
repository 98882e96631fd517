/* Goes through a model: walk_graph MODEL EDGE. Prints every node of the graph, of the graphs inside
 * its nodes and of functions, then who makes EDGE and who reads it. */
// SPDX-License-Identifier: Apache-2.0
#include <cameo.h>

#include <stdio.h>

static void print_attribute(const struct cameo_node_attribute *attribute)
{
    printf(" %s", attribute->name.data);
    if (attribute->refers_to.size)
        printf("=@%s", attribute->refers_to.data);
    else if (attribute->kind == CAMEO_ATTRIBUTE_INT)
        printf("=%lld", (long long)attribute->i);
    else if (attribute->kind == CAMEO_ATTRIBUTE_FLOAT)
        printf("=%g", (double)attribute->f);
    else if (attribute->kind == CAMEO_ATTRIBUTE_STRING)
        printf("='%s'", attribute->s.data);
    else if (attribute->kind == CAMEO_ATTRIBUTE_INTS)
        printf(" (%zu integers)", attribute->int_count);
    else if (attribute->tensor_count)
        printf(" (%zu tensors)", attribute->tensor_count);
}

static void print_graph(const struct cameo_graph *graph, int depth)
{
    for (size_t n = 0; n < cameo_graph_node_count(graph); n++) {
        const struct cameo_node *node = cameo_graph_node(graph, n);

        printf("%*s%s(", 4 * depth, "", node->op_type.data);
        for (size_t i = 0; i < node->input_count; i++)
            printf("%s%s", i ? ", " : "", node->inputs[i].data);
        printf(") -> %s", node->output_count ? node->outputs[0].data : "nothing");
        for (size_t a = 0; a < node->attribute_count; a++)
            print_attribute(node->attributes[a]);
        puts("");
        for (size_t a = 0; a < node->attribute_count; a++)
            for (size_t g = 0; g < node->attributes[a]->graph_count; g++)
                print_graph(node->attributes[a]->graphs[g], depth + 1);
    }
}

static void print_edge(const struct cameo_edge *edge)
{
    static const char *const origins[] = {"nothing", "a node", "an input", "an initializer",
                                          "a graph around"};

    printf("%s comes from %s", edge->name.data, origins[edge->origin]);
    if (edge->maker)
        printf(", %s, as its output %zu", edge->maker->op_type.data, edge->maker_output);
    for (size_t r = 0; r < edge->reader_count; r++)
        printf("%s %s as input %zu", r ? "," : "; it is read by", edge->readers[r]->op_type.data,
               edge->reader_inputs[r]);
    puts(edge->is_output ? "; it is an output" : "");
}

int main(int argc, char **argv)
{
    const struct cameo_graph *graph = NULL;
    struct cameo_model *model = NULL;
    struct cameo_error err;

    if (argc != 3) {
        fprintf(stderr, "usage: walk_graph MODEL EDGE\n");
        return 2;
    }
    if (cameo_model_load(argv[1], NULL, &model, &err) != CAMEO_OK ||
        cameo_model_graph(model, CAMEO_GRAPH_MAIN, 0, &graph, &err) != CAMEO_OK) {
        fprintf(stderr, "%s\n", err.message);
        cameo_model_free(model);
        return 1;
    }
    print_graph(graph, 0);
    const struct cameo_edge *edge = cameo_graph_find_edge(graph, argv[2]);
    if (edge)
        print_edge(edge);
    for (size_t i = 0; i < cameo_model_summary(model)->function_count; i++)
        if (cameo_model_graph(model, CAMEO_GRAPH_FUNCTION, i, &graph, &err) == CAMEO_OK) {
            printf("function %s:\n", cameo_graph_name(graph).data);
            print_graph(graph, 1);
        }
    cameo_model_free(model);
    return edge ? 0 : 1;
}
