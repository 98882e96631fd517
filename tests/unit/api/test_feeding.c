/* What a run is fed and where it puts results, through the public API: names of dimensions, memory
 * that is misaligned or used twice, old files, limits that hold for every engine. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api_case.h"
#include "api/lend.h"
#include "cameo.h"
#include "check.h"

#include <math.h>

static const char *const engines[] = {NULL, "reference", "plain"};

static struct cameo_session *open_session(const char *text, const char *backend, size_t limit,
                                          struct cameo_model **model)
{
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_session *session = NULL;
    struct cameo_error err;

    *model = load_text(text);
    options.backend = backend;
    options.threads = 1;
    options.memory_limit = limit;
    OK(cameo_session_new(*model, &options, &session, &err));
    return session;
}

static struct cameo_feed feed(size_t index, enum cameo_dtype dtype, int rank, const int64_t *dims,
                              const void *data)
{
    size_t bytes = dtype == CAMEO_INT64 ? 8 : 4;

    for (int i = 0; i < rank; i++)
        bytes *= (size_t)dims[i];
    return feed_index(index, lend(dtype, rank, dims, data, bytes));
}

void test_feeding__dimensions_of_one_name_have_one_size(void)
{
    static const float x[12];
    static const int64_t k[3], two_by_three[] = {2, 3}, three_by_three[] = {3, 3}, three[] = {3};

    for (size_t e = 0; e < CM_COUNT(engines); e++) {
        struct cameo_model *model;
        struct cameo_session *session =
            open_session("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                         "g (float[N,M] x, int64[N] k) => (float[N,M] y, int64[N] j)\n"
                         "{ y = Neg(x)\n  j = Neg(k) }\n",
                         engines[e], 0, &model);
        struct cameo_feed feeds[] = {feed(0, CAMEO_FLOAT, 2, two_by_three, x),
                                     feed(1, CAMEO_INT64, 1, three, k)};
        struct cameo_fetch fetch = fetch_index(0);
        struct cameo_error err;

        CHECK_INT(cameo_session_run(session, feeds, 2, &fetch, 1, NULL, &err), CAMEO_BAD_ARGUMENT);
        CHECK_STRING(err.message,
                     "'N' is 2 in input 'x' (float[N,M]) and 3 in input 'k' (int64[N])");
        feeds[0] = feed(0, CAMEO_FLOAT, 2, three_by_three, x);
        CHECK_INT(cameo_session_run(session, feeds, 2, &fetch, 1, NULL, &err), CAMEO_OK);
        cameo_value_free(fetch.value);
        cameo_session_free(session);
        cameo_model_free(model);
    }
}

static const char doubling[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                               "g (float[N] x) => (float[N] y, float[N] z)\n"
                               "{ y = Add(x, x)\n  z = Neg(y) }\n";

static struct cameo_fetch fetch_into(size_t index, const int64_t *dims, void *data)
{
    return (struct cameo_fetch){.struct_size = sizeof(struct cameo_fetch),
                                .index = index,
                                .tensor = lend(CAMEO_FLOAT, 1, dims, data, (size_t)dims[0] * 4)};
}

void test_feeding__memory_for_results_may_lie_anywhere(void)
{
    static const float x[] = {1, 2, 3};
    static const int64_t three[] = {3};

    for (size_t e = 0; e < CM_COUNT(engines); e++) {
        struct cameo_model *model;
        struct cameo_session *session = open_session(doubling, engines[e], 0, &model);
        const struct cameo_feed in = feed(0, CAMEO_FLOAT, 1, three, x);
        _Alignas(16) unsigned char room[2][32];
        struct cameo_fetch fetches[] = {fetch_into(0, three, room[0] + 1),
                                        fetch_into(1, three, room[1] + 2)};
        struct cameo_error err;
        float y[3], z[3];

        memset(room, 0xa5, sizeof room);
        if (cameo_session_run(session, &in, 1, fetches, 2, NULL, &err) != CAMEO_OK)
            fail_msg("%s", err.message);
        memcpy(y, room[0] + 1, sizeof y);
        memcpy(z, room[1] + 2, sizeof z);
        for (int i = 0; i < 3; i++)
            CHECK(y[i] == 2 * x[i] && z[i] == -2 * x[i]);
        CHECK(room[0][0] == 0xa5 && room[0][13] == 0xa5);
        cameo_session_free(session);
        cameo_model_free(model);
    }
}

void test_feeding__memory_is_for_one_thing_at_a_time(void)
{
    static const int64_t three[] = {3};
    float x[6] = {1, 2, 3}, y[6] = {0};
    struct cameo_model *model;
    struct cameo_session *session = open_session(doubling, NULL, 0, &model);
    const struct cameo_feed in = feed(0, CAMEO_FLOAT, 1, three, x);
    struct cameo_fetch over[] = {fetch_into(0, three, x)}, after[] = {fetch_into(0, three, x + 3)};
    struct cameo_fetch part[] = {fetch_into(0, three, x + 2)};
    struct cameo_fetch both[] = {fetch_into(0, three, y), fetch_into(1, three, y + 2)};
    struct cameo_error err;

    CHECK_INT(cameo_session_run(session, &in, 1, over, 1, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message, "the memory for output 'y' is also that of input 'x'");
    CHECK_INT(cameo_session_run(session, &in, 1, part, 1, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK_INT(cameo_session_run(session, &in, 1, both, 2, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message, "the memory for output 'z' is also given for another");
    CHECK(x[0] == 1 && x[2] == 3);
    CHECK_INT(cameo_session_run(session, &in, 1, after, 1, NULL, &err), CAMEO_OK);
    CHECK(x[0] == 1 && x[3] == 2 && x[5] == 6);
    cameo_session_free(session);
    cameo_model_free(model);
}

/* Old files list their weights among the inputs. */
void test_feeding__what_is_missing_is_told_by_the_sessions_own_inputs(void)
{
    struct cameo_model *model;
    struct cameo_session *session =
        open_session("<ir_version: 3, opset_import: [\"\" : 8]>\n"
                     "g (float[2] w, float[2] x) => (float[2] y) <float[2] w = {1, 2}>\n"
                     "{ y = Add(x, w) }\n",
                     NULL, 0, &model);
    struct cameo_fetch fetch = fetch_index(0);
    struct cameo_error err;

    CHECK_INT(cameo_session_input_count(session), 1);
    CHECK_INT(cameo_session_run(session, NULL, 0, &fetch, 1, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message, "input 'x' is missing, needs float[2]");
    cameo_session_free(session);
    cameo_model_free(model);
}

static void check_finding(const struct cameo_findings *findings, size_t index, const char *value,
                          const char *reason, const char *help)
{
    const struct cameo_finding *finding = cameo_findings_at(findings, index);

    CHECK(finding != NULL);
    CHECK_INT(finding->severity, CAMEO_VIOLATION);
    CHECK_STRING(finding->value.data, value);
    CHECK_STRING(finding->reason.data, reason);
    CHECK_STRING(finding->help.data, help);
}

static void check_all(const struct cameo_findings *findings)
{
    CHECK_INT(cameo_findings_count(findings), 3);
    check_finding(findings, 0, "", "there is no input 'X'; the model has 'x', 'shift'", "");
    check_finding(findings, 1, "shift", "input 'shift' is of type double, needs float",
                  "in NumPy, .astype('float32') makes it so");
    check_finding(findings, 2, "x", "input 'x' is missing, needs float[N,2]", "");
}

/* With all of it as findings, of a run and of a check that runs nothing. */
void test_feeding__all_that_is_wrong_with_feeds_is_told_at_once(void)
{
    static const float ones[] = {1, 1, 1, 1};
    static const int64_t x_dims[] = {2, 2}, shift_dims[] = {2};
    struct cameo_model *model;
    struct cameo_session *session = open_session(
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "line (float[N,2] x, float[2] shift) => (float[N,2] y) { y = Add(x, shift) }\n",
        NULL, 0, &model);
    struct cameo_feed feeds[] = {
        cameo_feed_tensor("x", lend(CAMEO_FLOAT, 2, x_dims, ones, sizeof ones)),
        cameo_feed_tensor("shift", lend(CAMEO_FLOAT, 1, shift_dims, ones, 8)),
    };
    struct cameo_run_options options = CAMEO_RUN_OPTIONS_INIT;
    struct cameo_findings *findings = NULL;
    struct cameo_error err;

    CHECK_INT(cameo_session_check(session, feeds, 2, &findings, &err), CAMEO_OK);
    CHECK(findings == NULL);
    feeds[0].name = "X";
    feeds[1].tensor = lend(CAMEO_DOUBLE, 1, shift_dims, ones, 16);
    CHECK_INT(cameo_session_check(session, feeds, 2, &findings, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "the run cannot begin, for 3 reasons: there is no input 'X'"));
    check_all(findings);
    cameo_findings_free(findings);
    options.findings = &findings;
    CHECK_INT(cameo_session_run(session, feeds, 2, NULL, 0, &options, &err), CAMEO_BAD_ARGUMENT);
    check_all(findings);
    cameo_findings_free(findings);
    CHECK_INT(cameo_session_check(session, feeds, 2, NULL, &err), CAMEO_BAD_ARGUMENT);
    cameo_session_free(session);
    cameo_model_free(model);
}

/* ---- limits, cancelling, reports: with every engine ---- */

static const char looping[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "g (float[N] x, int64 n) => (float[N] y) {\n"
    "  y = Loop (n, , x) <body = step (int64 i, bool c, float[] s) => (bool go, float[] t)\n"
    "      { go = Identity(c) t = Neg(s) }> }\n";

struct count {
    size_t all, inner, live;
};

static void count_step(void *arg, const struct cameo_step *step)
{
    struct count *count = arg;

    count->all++;
    count->inner += step->depth > 0;
    count->live = step->live_bytes > count->live ? step->live_bytes : count->live;
    CHECK(step->end_ns >= step->begin_ns && step->kernel[0] && step->op.size);
}

void test_feeding__every_engine_tells_each_step_and_what_is_held(void)
{
    static const float x[1000];
    static const int64_t n[] = {3}, thousand[] = {1000};

    for (size_t e = 0; e < CM_COUNT(engines); e++) {
        struct cameo_model *model;
        struct cameo_session *session = open_session(looping, engines[e], 0, &model);
        const struct cameo_feed in[] = {feed(0, CAMEO_FLOAT, 1, thousand, x),
                                        feed(1, CAMEO_INT64, 0, NULL, n)};
        struct count count = {0};
        struct cameo_run_options options = CAMEO_RUN_OPTIONS_INIT;
        struct cameo_fetch fetch = fetch_index(0);

        options.step = count_step;
        options.step_arg = &count;
        CHECK_INT(cameo_session_run(session, in, 2, &fetch, 1, &options, NULL), CAMEO_OK);
        CHECK_INT(count.all, 7);
        CHECK_INT(count.inner, 6);
        CHECK(count.live >= sizeof x);
        cameo_value_free(fetch.value);
        cameo_session_free(session);
        cameo_model_free(model);
    }
}

static void stop_run(void *arg, const struct cameo_step *step)
{
    (void)step;
    cameo_cancel_set(arg);
}

void test_feeding__every_engine_keeps_to_its_limit_and_can_be_stopped(void)
{
    static const float x[1000];
    static const int64_t n[] = {INT64_MAX}, one[] = {1}, thousand[] = {1000};

    for (size_t e = 0; e < CM_COUNT(engines); e++) {
        struct cameo_model *model;
        struct cameo_session *session = open_session(looping, engines[e], 3000, &model);
        struct cameo_feed in[] = {feed(0, CAMEO_FLOAT, 1, thousand, x),
                                  feed(1, CAMEO_INT64, 0, NULL, n)};
        struct cameo_run_options options = CAMEO_RUN_OPTIONS_INIT;
        struct cameo_fetch fetch = fetch_index(0);
        struct cameo_cancel *cancel;
        struct cameo_error err;

        CHECK_INT(cameo_session_run(session, in, 2, &fetch, 1, NULL, &err), CAMEO_LIMIT);
        CHECK(strstr(err.message, "memory limit of 3000"));
        CHECK_INT(cameo_cancel_new(&cancel, NULL), CAMEO_OK);
        in[0] = feed(0, CAMEO_FLOAT, 1, one, x);
        options.cancel = cancel;
        options.step = stop_run; /* while it runs, which would be forever */
        options.step_arg = cancel;
        CHECK_INT(cameo_session_run(session, in, 2, &fetch, 1, &options, &err), CAMEO_CANCELLED);
        cameo_cancel_free(cancel);
        cameo_session_free(session);
        cameo_model_free(model);
    }
}

/* Where a fused layer would lose a NaN it is computed node by node, long after it was compiled. */
void test_feeding__nan_comes_through_fused_layers(void)
{
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "layer (float[1,1,2,2] x) => (float[1,2,2,2] y) <float[2,1,1,1] w = {1, -1}>\n"
        "{ c = Conv(x, w)\n  y = Relu(c) }\n";
    static const int64_t in[] = {1, 1, 2, 2}, out[] = {1, 2, 2, 2};
    const float x[] = {NAN, 1, -1, 2};
    float y[8] = {0};
    struct cameo_model *model;
    struct cameo_session *session = open_session(text, NULL, 0, &model);
    const struct cameo_feed fed = feed(0, CAMEO_FLOAT, 4, in, x);
    struct cameo_fetch fetch = cameo_fetch_tensor(NULL, lend(CAMEO_FLOAT, 4, out, y, sizeof y));
    struct cameo_error err;

    OK(cameo_session_run(session, &fed, 1, &fetch, 1, NULL, &err));
    CHECK(isnan(y[0]) && isnan(y[4]) && y[1] == 1 && y[2] == 0 && y[6] == 1 && y[7] == 0);
    cameo_session_free(session);
    cameo_model_free(model);
}
