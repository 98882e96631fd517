/* The network of `cameo demo`: a small CNN that carries its own training, in ONNX's text form. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_DEMO_MODEL_H
#define CLI_DEMO_MODEL_H

#include <stdint.h>
#include <stdio.h>

/* How many weights it has. */
int64_t demo_model_weights(void);
/* Writes the text; seed is that of its initial weights. Failures show in ferror. */
void demo_model_write(FILE *to, uint64_t seed);

#endif
