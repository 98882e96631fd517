/* The backend cpu: our own kernels for the processor at hand. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/backend.h"

CM_BACKEND(cpu, .version = NULL); /* they call no library */
