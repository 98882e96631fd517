/* cameo info: what a model is made of. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static bool as_json, allow_links;
static struct cli_texts dims;

/* Enough for a glance; --json lists all. */
enum { ROWS_MAX = 40, TEXT_MAX = 100 };

static const struct cameo_text onnx_domain = {"ai.onnx", 7};

static struct cameo_text shown_domain(struct cameo_text domain)
{
    return domain.size ? domain : onnx_domain;
}

static size_t wider(size_t width, struct cameo_text text)
{
    const size_t this_one = cli_text_width(text);

    return this_one > width && this_one <= 48 ? this_one : width;
}

static void show_line(const char *label, struct cameo_text text)
{
    if (text.size == 0)
        return;
    printf("%-12s ", label);
    cli_put_short(stdout, text, TEXT_MAX);
    putchar('\n');
}

static void show_value(const struct cameo_value_info *value, size_t width)
{
    fputs("  ", stdout);
    cli_put_padded(stdout, value->name, width + 2);
    cli_put_text(stdout, value->type.data, value->type.size);
    putchar('\n');
}

typedef const struct cameo_value_info *value_at_fn(const struct cameo_model *model, size_t index);

static void show_values(const char *title, const struct cameo_model *model, value_at_fn *at)
{
    const struct cameo_value_info *value;
    size_t width = 0, defaults = 0;

    for (size_t i = 0; (value = at(model, i)) != NULL; i++)
        width = wider(width, value->name);
    printf("\n%s\n", title);
    for (size_t i = 0; (value = at(model, i)) != NULL; i++) {
        if (value->has_default)
            defaults++;
        else
            show_value(value, width);
    }
    if (defaults)
        printf("  and %zu with an initializer as default\n", defaults);
    else if (!at(model, 0))
        puts("  none");
}

static void show_header(const struct cameo_model *model)
{
    const struct cameo_summary *s = cameo_model_summary(model);

    if (s->producer_name.size || s->producer_version.size) {
        printf("%-12s ", "producer");
        cli_put_short(stdout, s->producer_name, TEXT_MAX);
        fputs(s->producer_name.size && s->producer_version.size ? " " : "", stdout);
        cli_put_short(stdout, s->producer_version, TEXT_MAX);
        putchar('\n');
    }
    if (s->ir_version)
        printf("%-12s %lld\n", "IR version", (long long)s->ir_version);
    else
        printf("%-12s (none)\n", "IR version");
    printf("%-12s ", "opsets");
    for (size_t i = 0; i < s->opset_count; i++) {
        const struct cameo_opset *opset = cameo_model_opset(model, i);

        fputs(i ? ", " : "", stdout);
        cli_put_text(stdout, shown_domain(opset->domain).data, shown_domain(opset->domain).size);
        printf(" %lld", (long long)opset->version);
    }
    puts(s->opset_count ? "" : "none");
    show_line("domain", s->domain);
    if (s->model_version)
        printf("%-12s %lld\n", "version", (long long)s->model_version);
    show_line("graph", s->graph_name);
    show_line("about", s->doc_string.size ? s->doc_string : s->graph_doc_string);
}

static void show_tensors(const struct cameo_model *model)
{
    const struct cameo_summary *s = cameo_model_summary(model);
    char count[CLI_NUMBER_SIZE], bytes[CLI_NUMBER_SIZE];
    size_t of_graph = 0, of_training = 0;

    for (size_t i = 0; i < s->initializer_count; i++) {
        if (cameo_model_initializer(model, i)->training < 0)
            of_graph++;
        else
            of_training++;
    }
    const struct {
        struct cameo_weights weights;
        const char *one, *many; /* what they are in */
    } rows[] = {
        {{of_graph, s->parameter_count, s->parameter_bytes}, "tensor", "tensors"},
        {s->constant_weights, "Constant node", "Constant nodes"},
        {s->attribute_weights, "attribute of ai.onnx.ml", "attributes of ai.onnx.ml"},
        {s->nested_weights, "tensor of nested graphs", "tensors of nested graphs"},
        {{of_training, s->training_parameter_count, s->training_parameter_bytes},
         "tensor of training graphs",
         "tensors of training graphs"},
    };
    bool any = false;

    puts("\nparameters");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct cameo_weights *w = &rows[i].weights;

        if (!w->tensor_count)
            continue;
        printf("  %s%s in %zu %s, %s\n", cli_number(count, w->count), any ? " more" : "",
               w->tensor_count, w->tensor_count == 1 ? rows[i].one : rows[i].many,
               cli_bytes(bytes, w->bytes));
        any = true;
    }
    if (!any)
        puts("  none");
    for (size_t i = 0; i < s->external_file_count; i++) {
        const struct cameo_external_file *file = cameo_model_external_file(model, i);

        if (i == ROWS_MAX) {
            printf("  and %zu more files\n", s->external_file_count - i);
            break;
        }
        fputs("  external file ", stdout);
        cli_put_text(stdout, file->location.data, file->location.size);
        printf(": %zu tensor%s, %s\n", file->tensor_count, file->tensor_count == 1 ? "" : "s",
               cli_bytes(bytes, file->bytes));
    }
}

/* Tensors that the framework calls otherwise. */
static void show_originals(const struct cameo_model *model)
{
    const struct cameo_initializer *t;
    size_t count = 0, width = 0;

    for (size_t i = 0; (t = cameo_model_initializer(model, i)) != NULL; i++) {
        count += t->original.size > 0;
        width = t->original.size ? wider(width, t->name) : width;
    }
    if (!count)
        return;
    puts("\noriginal names");
    size_t shown = 0;
    for (size_t i = 0; (t = cameo_model_initializer(model, i)) != NULL && shown < ROWS_MAX; i++) {
        if (!t->original.size)
            continue;
        fputs("  ", stdout);
        cli_put_padded(stdout, t->name, width + 2);
        cli_put_original(stdout, t->original, t->folding, 0);
        putchar('\n');
        shown++;
    }
    if (count > shown)
        printf("  and %zu more, see --json\n", count - shown);
}

/* "8.18 GFLOP" */
static const char *flops_text(char *text, size_t size, double flops)
{
    static const char *const units[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"};
    size_t unit = 0;

    for (; flops >= 999.5 && unit + 1 < sizeof units / sizeof *units; unit++)
        flops /= 1000;
    snprintf(text, size, "%.3g %s", flops, units[unit]);
    return text;
}

static void show_costs(const struct cameo_costs *costs)
{
    char flops[CLI_NUMBER_SIZE], all[CLI_NUMBER_SIZE], peak[CLI_NUMBER_SIZE];

    if (!costs || (!costs->operator_count && !costs->left_out))
        return;
    printf("\nwork         %s in products, %s of activations, %s at once\n",
           flops_text(flops, sizeof flops, costs->flops), cli_bytes(all, costs->activation_bytes),
           cli_bytes(peak, costs->peak_bytes));
    for (size_t i = 0; i < costs->size_count; i++) {
        fputs(i ? ", " : "  for ", stdout);
        cli_put_text(stdout, costs->sizes[i]->symbol.data, costs->sizes[i]->symbol.size);
        printf(" = %lld%s", (long long)costs->sizes[i]->size,
               costs->sizes[i]->assumed ? " (assumed)" : "");
    }
    if (costs->size_count)
        putchar('\n');
    if (costs->unknown_count)
        printf("  without %zu result%s of unknown size\n", costs->unknown_count,
               costs->unknown_count == 1 ? "" : "s");
    if (costs->left_out)
        printf("  without nodes that cannot be typed, 'cameo run' lists %zu reason%s\n",
               costs->left_out, costs->left_out == 1 ? "" : "s");
    if (costs->has_bodies)
        puts("  bodies of If, Loop and Scan are counted once");
}

static const struct cameo_cost *find_cost(const struct cameo_costs *costs,
                                          const struct cameo_operator *row)
{
    for (size_t i = 0; costs && i < costs->operator_count; i++)
        if (strcmp(costs->operators[i]->op.data, row->name.data) == 0 &&
            strcmp(costs->operators[i]->domain.data, row->domain.data) == 0)
            return costs->operators[i];
    return NULL;
}

static void show_operator(const struct cameo_operator *row, size_t width,
                          const struct cameo_cost *cost)
{
    struct cameo_text name = row->name;
    size_t used = 0;

    fputs("  ", stdout);
    if (row->domain.size) {
        used = cli_put_text(stdout, row->domain.data, row->domain.size) + 1;
        putchar('.');
    }
    cli_put_padded(stdout, name, used < width ? width - used : 0);
    printf("%7zu", row->count);
    if (row->count != row->in_graph) {
        const struct {
            const char *where;
            size_t count;
        } parts[] = {
            {"graph", row->in_graph},
            {"nested", row->in_nested},
            {"functions", row->in_functions},
            {"training", row->in_training},
        };
        const char *before = "   ";
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            if (parts[i].count) {
                printf("%s%s %zu", before, parts[i].where, parts[i].count);
                before = ", ";
            }
        }
    }
    if (cost && cost->flops > 0) {
        char flops[CLI_NUMBER_SIZE];
        printf("   %s", flops_text(flops, sizeof flops, cost->flops));
    }
    putchar('\n');
}

static void show_operators(const struct cameo_model *model, const struct cameo_costs *costs)
{
    const struct cameo_summary *s = cameo_model_summary(model);
    const struct cameo_operator *row;
    size_t width = 0;

    printf("\noperators    %zu node%s", s->node_count, s->node_count == 1 ? "" : "s");
    if (s->nested_node_count)
        printf(", %zu nested", s->nested_node_count);
    if (s->function_node_count)
        printf(", %zu in functions", s->function_node_count);
    if (s->training_node_count)
        printf(", %zu in training graphs", s->training_node_count);
    putchar('\n');
    for (size_t i = 0; (row = cameo_model_operator(model, i)) != NULL && i < ROWS_MAX; i++) {
        const size_t size =
            cli_text_width(row->name) + (row->domain.size ? cli_text_width(row->domain) + 1 : 0);
        width = size > width && size < 60 ? size : width;
    }
    for (size_t i = 0; (row = cameo_model_operator(model, i)) != NULL; i++) {
        if (i == ROWS_MAX) {
            printf("  and %zu more kinds\n", s->operator_count - i);
            break;
        }
        show_operator(row, width, find_cost(costs, row));
    }
}

static void show_functions(const struct cameo_model *model)
{
    const struct cameo_function *f;

    if (cameo_model_function(model, 0))
        puts("\nfunctions");
    for (size_t i = 0; (f = cameo_model_function(model, i)) != NULL; i++) {
        if (i == ROWS_MAX) {
            printf("  and %zu more\n", cameo_model_summary(model)->function_count - i);
            break;
        }
        fputs("  ", stdout);
        cli_put_text(stdout, shown_domain(f->domain).data, shown_domain(f->domain).size);
        putchar('.');
        cli_put_text(stdout, f->name.data, f->name.size);
        if (f->overload.size) {
            putchar(':');
            cli_put_text(stdout, f->overload.data, f->overload.size);
        }
        printf("   %zu in, %zu out, %zu node%s\n", f->input_count, f->output_count, f->node_count,
               f->node_count == 1 ? "" : "s");
    }
}

static void show_bindings(const char *title, const struct cameo_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i == ROWS_MAX) {
            printf("    and %zu more\n", count - i);
            break;
        }
        printf("    %s ", title);
        cli_put_text(stdout, entries[i].key.data, entries[i].key.size);
        fputs(" <- ", stdout);
        cli_put_text(stdout, entries[i].value.data, entries[i].value.size);
        putchar('\n');
    }
}

static void show_training(const struct cameo_model *model)
{
    const struct cameo_training *t;

    for (size_t i = 0; (t = cameo_model_training(model, i)) != NULL; i++) {
        size_t width = 0;

        printf("\ntraining     entry %zu: algorithm of %zu node%s, ", i, t->algorithm_node_count,
               t->algorithm_node_count == 1 ? "" : "s");
        if (t->initialization_node_count)
            printf("initialization of %zu\n", t->initialization_node_count);
        else
            puts("no initialization");
        for (size_t k = 0; k < t->input_count; k++)
            width = wider(width, t->inputs[k]->name);
        if (t->input_count)
            puts("  needs, beside the inputs");
        for (size_t k = 0; k < t->input_count; k++) {
            fputs("  ", stdout);
            show_value(t->inputs[k], width);
        }
        printf("  %zu state variable%s\n", t->state_count, t->state_count == 1 ? "" : "s");
        show_bindings("init  ", t->initialization_bindings, t->initialization_binding_count);
        show_bindings("update", t->update_bindings, t->update_binding_count);
    }
}

static void show_metadata(const struct cameo_model *model)
{
    const struct cameo_entry *entry;

    if (cameo_model_metadata(model, 0))
        puts("\nmetadata");
    for (size_t i = 0; (entry = cameo_model_metadata(model, i)) != NULL; i++) {
        fputs("  ", stdout);
        cli_put_short(stdout, entry->key, TEXT_MAX);
        fputs(": ", stdout);
        cli_put_short(stdout, entry->value, TEXT_MAX);
        putchar('\n');
    }
}

static void show(const char *path, const struct cameo_model *model, const struct cameo_costs *costs)
{
    char size[CLI_NUMBER_SIZE];
    uint64_t bytes;

    cli_put_text(stdout, path, strlen(path));
    if (cli_file_size(path, &bytes))
        printf(" (%s)", cli_bytes(size, bytes));
    putchar('\n');
    show_header(model);
    show_values("inputs", model, cameo_model_input);
    show_values("outputs", model, cameo_model_output);
    show_tensors(model);
    show_originals(model);
    show_costs(costs);
    show_operators(model, costs);
    show_functions(model);
    show_training(model);
    show_metadata(model);
}

/* What the shapes say of a run; a model that cannot be typed has none. */
static int find_costs(const struct cameo_model *model, const struct cameo_costs **out)
{
    static struct cameo_size sizes[CLI_TEXTS_MAX];
    static char names[CLI_TEXTS_MAX][256];
    struct cameo_error err;

    for (size_t i = 0; i < dims.count; i++) {
        const char *equals = strrchr(dims.items[i], '=');
        char *end = NULL;

        sizes[i] = (struct cameo_size)CAMEO_SIZE_INIT;
        sizes[i].size = equals ? strtoll(equals + 1, &end, 10) : 0;
        if (!equals || equals == dims.items[i] || equals - dims.items[i] >= 256 || !equals[1] ||
            *end || sizes[i].size < 1) {
            cli_complain("info: --dim needs a name and a size, as in --dim batch=8, not '%s'",
                         dims.items[i]);
            return CLI_USAGE;
        }
        snprintf(names[i], sizeof names[i], "%.*s", (int)(equals - dims.items[i]), dims.items[i]);
        sizes[i].symbol = names[i];
    }
    *out = NULL;
    return cameo_model_costs(model, sizes, dims.count, out, &err) != CAMEO_OK && dims.count
               ? cli_fail(&err)
               : CLI_YES;
}

static int info_main(char **operands, int count)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    const struct cameo_costs *costs;
    struct cameo_model *model;
    struct cameo_error err;

    (void)count;
    options.allow_links = allow_links;
    if (cli_load_model(operands[0], &options, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    const int code = find_costs(model, &costs);
    if (code == CLI_YES && as_json)
        cli_info_json(operands[0], model, costs);
    else if (code == CLI_YES)
        show(operands[0], model, costs);
    cameo_model_free(model);
    return code;
}

static const struct cli_option options[] = {
    {"--json", NULL, NULL, "print everything as JSON", CLI_FLAG, &as_json},
    {"--dim", NULL, "NAME=N", "the size of an open dimension, for work and memory (1)", CLI_TEXTS,
     &dims},
    {"--allow-links", NULL, NULL, "external data may be behind links", CLI_FLAG, &allow_links},
    {0},
};

CLI_COMMAND(info, info_main, "[--json] [--allow-links] MODEL", "describe a model",
            "Prints inputs, outputs, operator sets, parameters, how often each operator is used,\n"
            "functions, training info and metadata; and, found from the shapes, the operations of\n"
            "products and the memory of activations that a run takes. Only the structure is read,\n"
            "so this is quick whatever the size of the weights.",
            "cameo info resnet50.onnx # for people\n"
            "cameo info --json resnet50.onnx # for scripts, complete\n"
            "cameo info net.onnx --dim batch=8 # the work of a batch of 8",
            "0 if the model could be read, 1 if it is not an ONNX model", options, 1, 1);
