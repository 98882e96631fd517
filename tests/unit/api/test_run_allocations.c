/* What repeated runs take from the heap, counted at malloc itself: nothing, whatever the library's
 * own counter says. Kernels of other libraries are theirs to count: with those in use only our own
 * allocations are. */
// SPDX-License-Identifier: Apache-2.0
#include "api/lend.h"
#include "base/memory.h"
#include "cameo.h"
#include "check.h"

#include <stdatomic.h>
#include <stdlib.h>

/* glibc lets a program bring its own; the sanitizers bring theirs. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTING 1
#else
#define COUNTING 0
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#undef COUNTING
#define COUNTING 0
#endif
#endif

static atomic_ullong made;

#if COUNTING
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
    made++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    made++;
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    made++;
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    made++;
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    made++;
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : 12;
}
#endif

static const char convolution[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                  "g (float[N,4,8,8] x, float[8,4,3,3] w) => (float[N,8] y)\n"
                                  "{ a = Conv <pads = [1, 1, 1, 1]> (x, w) b = Relu(a)\n"
                                  "  c = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (b)\n"
                                  "  y = ReduceMean <axes = [2, 3], keepdims = 0> (c) }\n";

static const char product[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                              "g (float[N,16] x, float[16,8] w) => (float[N,8] y)\n"
                              "{ a = MatMul(x, w) b = Tanh(a) y = Softmax(b) }\n";

static const char recurrent[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "g (float[T,N,8] x, float[1,16,8] w, float[1,16,4] r, float[4,3] p) => (float[T,N,3] y)\n"
    "<int64[1] one = {1}>\n"
    "{ all, last, cell = LSTM <hidden_size = 4> (x, w, r) flat = Squeeze(all, one)\n"
    "  y = MatMul(flat, p) }\n";

static const char branch[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "g (float[N,8] x, float[8,4] w, bool c) => (float[N,4] y) {\n"
    "  a = If (c) <then_branch = yes () => (float[P,Q] p) { p = Relu(x) },\n"
    "      else_branch = no () => (float[P,Q] q) { q = Neg(x) }>\n"
    "  y = MatMul(a, w) }\n";

enum { MOST = 4 };

/* Allocations of the last of a few runs on zeros, results in memory of the caller's: of all, or of
 * this library alone. */
static unsigned long long count(const char *text, const char *backend, bool ours)
{
    struct cameo_load_options load = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_session *session;
    struct cameo_error err;
    struct cameo_feed feeds[MOST];
    static int64_t dims[MOST + 1][8];
    static double zeros[4096], room[4096];
    unsigned long long before = 0;

    load.format = CAMEO_FORMAT_TEXT;
    options.backend = backend;
    options.threads = 1;
    if (cameo_model_load_memory(text, strlen(text), &load, &model, &err) != CAMEO_OK ||
        cameo_session_new(model, &options, &session, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    const size_t n_in = cameo_session_input_count(session);
    for (size_t i = 0; i < n_in; i++) {
        const struct cameo_value_info *input = cameo_session_input(session, i);
        size_t bytes = input->dtype == CAMEO_BOOL ? 1 : 4;

        for (int axis = 0; axis < input->rank; axis++) {
            dims[i][axis] = input->dims[axis].size < 0 ? 3 : input->dims[axis].size;
            bytes *= (size_t)dims[i][axis];
        }
        feeds[i] = feed_index(i, lend(input->dtype, input->rank, dims[i], zeros, bytes));
    }
    const struct cameo_value_info *output = cameo_session_output(session, 0);
    struct cameo_tensor result = cameo_tensor_of(CAMEO_FLOAT, output->rank, dims[MOST], room, 4);
    struct cameo_fetch fetch = cameo_fetch_tensor(NULL, &result);
    for (int axis = 0; axis < output->rank; axis++) {
        dims[MOST][axis] = output->dims[axis].size < 0 ? 3 : output->dims[axis].size;
        result.bytes *= (size_t)dims[MOST][axis];
    }
    for (int run = 0; run < 5; run++) {
        before = ours ? cm_memory_count() : made;
        if (cameo_session_run(session, feeds, n_in, &fetch, 1, NULL, &err) != CAMEO_OK)
            fail_msg("%s", err.message);
    }
    const unsigned long long total = (ours ? cm_memory_count() : made) - before;
    cameo_session_free(session);
    cameo_model_free(model);
    return total;
}

void test_run_allocations__reference_kernels_take_nothing_from_the_heap(void)
{
    CHECK_INT(count(convolution, "reference", false), 0);
    CHECK(!COUNTING || made > 0); /* opening counts, so that the zeros mean something */
    CHECK_INT(count(product, "reference", false), 0);
    CHECK_INT(count(recurrent, "reference", false), 0);
    CHECK_INT(count(branch, "reference", false), 0);
}

void test_run_allocations__with_any_kernel_we_take_nothing_ourselves(void)
{
    CHECK_INT(count(convolution, NULL, true), 0);
    CHECK_INT(count(product, NULL, true), 0);
    CHECK_INT(count(recurrent, NULL, true), 0);
    CHECK_INT(count(branch, NULL, true), 0);
}
