/* The network of `cameo demo`: a small CNN that carries its own training, in ONNX's text form. */
// SPDX-License-Identifier: Apache-2.0
#include "demo_model.h"
#include "demo_digits.h"

#include <math.h>

enum { RANK_MAX = 4, FIRST = 8, SECOND = 16, PATCH = 3, CLASSES = 10, GRID = DEMO_SIDE / 4 };

struct parameter {
    const char *name;
    int rank;
    int64_t dims[RANK_MAX];
    int64_t fan_in; /* inputs of one output; 0: begins as zeros */
};

static const struct parameter parameters[] = {
    {"conv1_w", 4, {FIRST, 1, PATCH, PATCH}, PATCH *PATCH},
    {"conv1_b", 1, {FIRST}, 0},
    {"conv2_w", 4, {SECOND, FIRST, PATCH, PATCH}, FIRST *PATCH *PATCH},
    {"conv2_b", 1, {SECOND}, 0},
    {"dense_w", 2, {SECOND * GRID * GRID, CLASSES}, SECOND *GRID *GRID},
    {"dense_b", 1, {CLASSES}, 0},
};

enum { PARAMETERS = sizeof parameters / sizeof *parameters };

static int64_t elements(const struct parameter *p)
{
    int64_t count = 1;

    for (int i = 0; i < p->rank; i++)
        count *= p->dims[i];
    return count;
}

int64_t demo_model_weights(void)
{
    int64_t count = 0;

    for (int i = 0; i < PARAMETERS; i++)
        count += elements(&parameters[i]);
    return count;
}

/* ---- pieces of text ---- */

/* "8,1,3,3" */
static void put_dims(FILE *to, const struct parameter *p)
{
    for (int i = 0; i < p->rank; i++)
        fprintf(to, "%s%lld", i ? "," : "", (long long)p->dims[i]);
}

static void put_type(FILE *to, const struct parameter *p)
{
    fputs("float[", to);
    put_dims(to, p);
    fputc(']', to);
}

/* "float[8] conv1_b<suffix> = {0, ..}": the text form has no shorter way to say zeros. */
static void put_zeros(FILE *to, const struct parameter *p, const char *suffix)
{
    put_type(to, p);
    fprintf(to, " %s%s = {0", p->name, suffix);
    for (int64_t i = 1; i < elements(p); i++)
        fputs(", 0", to);
    fputc('}', to);
}

/* Every parameter's name, with something around it. */
static void put_names(FILE *to, const char *before, const char *after, const char *between)
{
    for (int i = 0; i < PARAMETERS; i++)
        fprintf(to, "%s%s%s%s", i ? between : "", before, parameters[i].name, after);
}

/* ---- parts of the model ---- */

static void put_graph(FILE *to)
{
    fprintf(to, "digits (float[N,1,%d,%d] image) => (float[N,%d] probability)\n<", DEMO_SIDE,
            DEMO_SIDE, CLASSES);
    for (int i = 0; i < PARAMETERS; i++) {
        fputs(i ? ",\n " : "", to);
        put_zeros(to, &parameters[i], "");
    }
    fputs(">\n{\n"
          "    lines = Conv <pads = [1, 1, 1, 1]> (image, conv1_w, conv1_b)\n"
          "    lines_seen = Relu (lines)\n"
          "    lines_small = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (lines_seen)\n"
          "    shapes = Conv <pads = [1, 1, 1, 1]> (lines_small, conv2_w, conv2_b)\n"
          "    shapes_seen = Relu (shapes)\n"
          "    shapes_small = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (shapes_seen)\n"
          "    features = Flatten (shapes_small)\n"
          "    scores = Gemm (features, dense_w, dense_b)\n"
          "    probability = Softmax <axis = 1> (scores)\n"
          "}\n",
          to);
}

/* Weights are drawn so that a layer gives as much as it gets: variance 2 / fan-in before a Relu. */
static void put_initialization(FILE *to, uint64_t seed)
{
    fputs("    initialization: begin () => (int64 T_0", to);
    for (int i = 0; i < PARAMETERS; i++) {
        fputs(", ", to);
        put_type(to, &parameters[i]);
        fprintf(to, " %s_zeros", parameters[i].name);
        if (!parameters[i].fan_in)
            continue;
        fputs(", ", to);
        put_type(to, &parameters[i]);
        fprintf(to, " %s_0", parameters[i].name);
    }
    fputs(")\n    {\n        T_0 = Constant <value_int = 1> ()\n", to);
    for (int i = 0; i < PARAMETERS; i++) {
        const struct parameter *p = &parameters[i];

        fprintf(to, "        %s_shape = Constant <value_ints = [", p->name);
        put_dims(to, p);
        fprintf(to, "]> ()\n        %s_zeros = ConstantOfShape (%s_shape)\n", p->name, p->name);
        if (!p->fan_in)
            continue;
        /* a seed is a float in ONNX: small whole numbers are kept exactly */
        fprintf(to, "        %s_0 = RandomNormal <shape = [", p->name);
        put_dims(to, p);
        fprintf(to, "], scale = %.6f, seed = %llu.0> ()\n", sqrt(2.0 / (double)p->fan_in),
                (unsigned long long)(seed % 1000000 * 10 + (uint64_t)i));
    }
    fputs("    },\n    initialization_binding: [\"T\": \"T_0\"", to);
    for (int i = 0; i < PARAMETERS; i++) {
        const char *name = parameters[i].name;

        fprintf(to,
                ",\n        \"%s\": \"%s_%s\", \"%s_mean\": \"%s_zeros\", \"%s_square\": "
                "\"%s_zeros\"",
                name, name, parameters[i].fan_in ? "0" : "zeros", name, name, name, name);
    }
    fputs("],\n", to);
}

static void put_outputs(FILE *to)
{
    static const char *const suffixes[] = {"_next", "_mean_next", "_square_next"};

    fputs("(float loss, float lr, int64 T_next", to);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < PARAMETERS; i++) {
            fputs(", ", to);
            put_type(to, &parameters[i]);
            fprintf(to, " %s%s", parameters[i].name, suffixes[k]);
        }
    fputc(')', to);
}

static void put_adam(FILE *to)
{
    fputs("        ", to);
    put_names(to, "", "_next", ", ");
    fputs(",\n            ", to);
    put_names(to, "", "_mean_next", ", ");
    fputs(",\n            ", to);
    put_names(to, "", "_square_next", ", ");
    fputs(" =\n            ai.onnx.preview.training.Adam <alpha = 0.9, beta = 0.999, epsilon = "
          "1e-08>\n            (lr, T, ",
          to);
    put_names(to, "", "", ", ");
    fputs(",\n            ", to);
    put_names(to, "", "_slope", ", ");
    fputs(",\n            ", to);
    put_names(to, "", "_mean", ", ");
    fputs(",\n            ", to);
    put_names(to, "", "_square", ", ");
    fputs(")\n", to);
}

static void put_algorithm(FILE *to)
{
    fputs("    algorithm: descend (int64[N] label) => ", to);
    put_outputs(to);
    fputs("\n    <float rate = {0.01}, float fading = {0.997}, int64 T = {1}, int64 one = {1}", to);
    for (int i = 0; i < PARAMETERS; i++) {
        fputs(",\n     ", to);
        put_zeros(to, &parameters[i], "_mean");
        fputs(",\n     ", to);
        put_zeros(to, &parameters[i], "_square");
    }
    fputs(">\n    {\n        loss = SoftmaxCrossEntropyLoss (scores, label)\n        ", to);
    put_names(to, "", "_slope", ", ");
    fputs(" =\n            ai.onnx.preview.training.Gradient <xs = [", to);
    put_names(to, "\"", "\"", ", ");
    fputs("],\n            zs = [\"image\", \"label\"], y = \"loss\"> (", to);
    put_names(to, "", "", ", ");
    fputs(", image, label)\n"
          "        steps = Cast <to = 1> (T)\n"
          "        faded = Pow (fading, steps)\n"
          "        lr = Mul (rate, faded)\n",
          to);
    put_adam(to);
    fputs("        T_next = Add (T, one)\n    },\n    update_binding: [\"T\": \"T_next\"", to);
    for (int i = 0; i < PARAMETERS; i++) {
        const char *name = parameters[i].name;

        fprintf(to,
                ",\n        \"%s\": \"%s_next\", \"%s_mean\": \"%s_mean_next\", \"%s_square\": "
                "\"%s_square_next\"",
                name, name, name, name, name, name);
    }
    fputs("]\n", to);
}

void demo_model_write(FILE *to, uint64_t seed)
{
    fputs("<ir_version: 8, opset_import: [\"\" : 18, \"ai.onnx.preview.training\" : 1],\n"
          " doc_string: \"reads digits, and knows how to learn it\">\n",
          to);
    put_graph(to);
    fputs("training {\n", to);
    put_initialization(to, seed);
    put_algorithm(to);
    fputs("}\n", to);
}
