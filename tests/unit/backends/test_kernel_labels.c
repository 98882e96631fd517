/* Kernels have names that users can tell apart, and their reasons name operands. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "base/text.h"
#include "graph/op.h"

#include <string.h>

static bool rivals(const struct cm_kernel *a, const struct cm_kernel *b)
{
    return strcmp(a->backend, b->backend) == 0 && strcmp(a->domain, b->domain) == 0 &&
           strcmp(a->name, b->name) == 0;
}

void test_kernel_labels__every_kernel_has_one_of_its_own(void)
{
    for (size_t i = 0; i < cm_kernel_count; i++) {
        const struct cm_kernel *kernel = cm_kernel_list[i];
        if (!kernel->label || !kernel->label[0])
            fail_msg("the kernel of %s for %s has no label", kernel->backend, kernel->name);
        if (strpbrk(kernel->label, ":;_")) /* `declined` separates labels and reasons by these */
            fail_msg("label '%s' has a separator in it", kernel->label);
        for (size_t j = 0; j < i; j++)
            if (rivals(kernel, cm_kernel_list[j]) &&
                strcmp(kernel->label, cm_kernel_list[j]->label) == 0)
                fail_msg("two kernels of %s for %s are called '%s'", kernel->backend, kernel->name,
                         kernel->label);
    }
}
