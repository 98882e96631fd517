/* Kernels have names that users can tell apart, and their reasons name operands. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "base/text.h"
#include "graph/backend.h"

#include <string.h>

static bool rivals(const struct cm_kernel *a, const struct cm_kernel *b)
{
    return strcmp(a->domain, b->domain) == 0 && strcmp(a->name, b->name) == 0;
}

static void check_labels(const struct cm_backend *backend)
{
    for (size_t i = 0; backend->kernels[i]; i++) {
        const struct cm_kernel *kernel = backend->kernels[i];
        if (!kernel->label || !kernel->label[0])
            fail_msg("the kernel of %s for %s has no label", backend->name, kernel->name);
        if (strpbrk(kernel->label, ":;_")) /* `declined` separates labels and reasons by these */
            fail_msg("label '%s' has a separator in it", kernel->label);
        for (size_t j = 0; j < i; j++)
            if (rivals(kernel, backend->kernels[j]) &&
                strcmp(kernel->label, backend->kernels[j]->label) == 0)
                fail_msg("two kernels of %s for %s are called '%s'", backend->name, kernel->name,
                         kernel->label);
    }
}

void test_kernel_labels__every_kernel_has_one_of_its_own(void)
{
    for (size_t b = 0; b < cm_backend_count; b++)
        check_labels(cm_backends[b]);
}

void test_kernel_labels__kernels_stand_in_the_order_of_their_turns(void)
{
    for (size_t b = 0; b < cm_backend_count; b++) {
        const struct cm_backend *backend = cm_backends[b];
        CHECK(cm_backend_find(backend->name) == backend);
        for (size_t i = 0; backend->kernels[i]; i++) {
            CHECK(backend->kernels[i]->backend == backend);
            CHECK(i == 0 || backend->kernels[i - 1]->turn <= backend->kernels[i]->turn);
        }
    }
    CHECK(!cm_backend_find("reference"));
}
