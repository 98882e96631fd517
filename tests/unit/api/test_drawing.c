/* Pictures of models and of curves, as text. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "api/api_case.h"
#include "cameo.h"
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char net[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                          "net (float[N,4] x) => (float[N,3] y)\n"
                          "<float[4,3] W = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>\n"
                          "{\n"
                          "    [part_a] h = MatMul(x, W)\n"
                          "    [part_b] y = Relu(h)\n"
                          "}\n";

struct page {
    char text[60000];
    size_t size;
};

static int take(void *to, const void *bytes, size_t size)
{
    struct page *page = to;

    if (page->size + size >= sizeof page->text)
        return 1;
    memcpy(page->text + page->size, bytes, size);
    page->size += size;
    page->text[page->size] = 0;
    return 0;
}

static int refuse(void *to, const void *bytes, size_t size)
{
    (void)to;
    (void)bytes;
    return size > 0;
}

static struct page page;

static void write_log(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

void test_drawing__a_model_is_drawn_as_svg_as_a_page_and_as_dot(void)
{
    struct cameo_model *model = load_text(net);
    struct cameo_drawing_options options = CAMEO_DRAWING_OPTIONS_INIT;
    struct cameo_drawing_report report = CAMEO_DRAWING_REPORT_INIT;
    struct cameo_error err;

    page = (struct page){0};
    OK(cameo_model_draw(model, NULL, take, &page, &report, &err));
    CHECK_INT(report.boxes, 4); /* x, MatMul, Relu, y */
    CHECK(strncmp(page.text, "<svg ", 5) == 0);
    CHECK(strstr(page.text, "[4\xc3\x97"
                            "3]") != NULL);

    const char *const fold = "part_";
    options.folds = &fold;
    options.fold_count = 1;
    options.format = CAMEO_DRAWING_DOT;
    page = (struct page){0};
    OK(cameo_model_draw(model, &options, take, &page, &report, &err));
    CHECK_INT(report.boxes, 3);
    CHECK(strstr(page.text, "part_") && strstr(page.text, "2 nodes"));

    options.format = CAMEO_DRAWING_HTML;
    page = (struct page){0};
    OK(cameo_model_draw(model, &options, take, &page, NULL, &err));
    CHECK(strstr(page.text, "<details id=\"p1\">") != NULL);
    cameo_model_free(model);
}

void test_drawing__wrong_options_and_a_writer_that_refuses_are_told(void)
{
    struct cameo_model *model = load_text(net);
    struct cameo_drawing_options options = CAMEO_DRAWING_OPTIONS_INIT;
    struct cameo_error err;

    CHECK_INT(cameo_model_draw(model, NULL, refuse, NULL, NULL, &err), CAMEO_IO);
    options.fold_count = 1;
    CHECK_INT(cameo_model_draw(model, &options, take, &page, NULL, &err), CAMEO_BAD_ARGUMENT);
    options.fold_count = 0;
    options.format = (enum cameo_drawing_format)9;
    CHECK_INT(cameo_model_draw(model, &options, take, &page, NULL, &err), CAMEO_BAD_ARGUMENT);
    cameo_model_free(model);
}

void test_drawing__curves_are_added_and_drawn(void)
{
    struct cameo_curves_options options = CAMEO_CURVES_OPTIONS_INIT;
    struct cameo_curves *curves;
    struct cameo_curve curve;
    struct cameo_error err;

    OK(cameo_curves_new(&curves, &err));
    for (int step = 1; step <= 10; step++) {
        OK(cameo_curves_add(curves, "loss", step, 1.0 / step, &err));
        OK(cameo_curves_add(curves, "norm", step, step == 3 ? (double)NAN : 2.0 * step, &err));
    }
    CHECK(cameo_curves_at(curves, 1, &curve));
    CHECK_STRING(curve.name.data, "norm");
    CHECK_INT(curve.count, 9); /* without NaN */
    CHECK(!cameo_curves_at(curves, 2, &curve));

    page = (struct page){0};
    OK(cameo_curves_draw(curves, NULL, take, &page, &err));
    CHECK(strstr(page.text, ">loss<") && !strstr(page.text, "norm"));
    options.only = "*";
    page = (struct page){0};
    OK(cameo_curves_draw(curves, &options, take, &page, &err));
    CHECK(strstr(page.text, ">loss<") && strstr(page.text, ">norm<"));
    options.format = CAMEO_CURVES_PLAIN;
    options.only = "loss";
    page = (struct page){0};
    OK(cameo_curves_draw(curves, &options, take, &page, &err));
    CHECK(strncmp(page.text, "loss: 1 at first, 0.1 at last\n", 30) == 0);
    options.only = "accuracy";
    CHECK_INT(cameo_curves_draw(curves, &options, take, &page, &err), CAMEO_NOT_FOUND);
    cameo_curves_free(curves);
}

void test_drawing__logs_are_read_and_wrong_lines_named(void)
{
    static const char good[] =
        "{\"step\": 5, \"loss\": 0.5, \"note\": {\"a\": [1]}}\n{\"step\": 6, \"lo";
    static const char bad[] = "{\"step\": 1, \"loss\": 2}\nnothing\n";
    struct cameo_curves *curves;
    struct cameo_curve curve;
    struct cameo_error err;

    OK(cameo_curves_new(&curves, &err));
    char path[] = "/tmp/cameo-log-XXXXXX";
    const int fd = mkstemp(path);
    CHECK(fd >= 0 && close(fd) == 0);
    write_log(path, good);
    OK(cameo_curves_read(curves, path, "run:", &err));
    CHECK(cameo_curves_at(curves, 0, &curve));
    CHECK_STRING(curve.name.data, "run:loss");
    CHECK(curve.count == 1 && curve.steps[0] == 5 && curve.values[0] == 0.5);
    write_log(path, bad);
    CHECK(cameo_curves_read(curves, path, NULL, &err) != CAMEO_OK);
    CHECK(strstr(err.message, "line 2 is not a JSON object") != NULL);
    CHECK(unlink(path) == 0);
    CHECK_INT(cameo_curves_read(curves, path, NULL, &err), CAMEO_NOT_FOUND);
    cameo_curves_free(curves);
}
