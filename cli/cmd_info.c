/* cameo info: what a model is made of. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <string.h>

static bool as_json, allow_links;

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

static void show_operator(const struct cameo_operator *row, size_t width)
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
    putchar('\n');
}

static void show_operators(const struct cameo_model *model)
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
        show_operator(row, width);
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

static void show(const char *path, const struct cameo_model *model)
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
    show_operators(model);
    show_functions(model);
    show_training(model);
    show_metadata(model);
}

static int info_main(char **operands, int count)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_error err;

    (void)count;
    options.allow_links = allow_links;
    if (cli_load_model(operands[0], &options, &model, &err) != CAMEO_OK)
        return cli_fail(&err);
    if (as_json)
        cli_info_json(operands[0], model);
    else
        show(operands[0], model);
    cameo_model_free(model);
    return CLI_YES;
}

static const struct cli_option options[] = {
    {"--json", NULL, NULL, "print everything as JSON", CLI_FLAG, &as_json},
    {"--allow-links", NULL, NULL, "external data may be behind links", CLI_FLAG, &allow_links},
    {0},
};

CLI_COMMAND(info, info_main, "[--json] [--allow-links] MODEL", "describe a model",
            "Prints inputs, outputs, operator sets, parameters, how often each operator is used,\n"
            "functions, training info and metadata. Only the structure is read, so this is quick\n"
            "whatever the size of the weights.",
            "cameo info resnet50.onnx # for people\n"
            "cameo info --json resnet50.onnx # for scripts, complete",
            "0 if the model could be read, 1 if it is not an ONNX model", options, 1, 1);
