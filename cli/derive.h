/* What the commands that make models out of models share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_DERIVE_H
#define CLI_DERIVE_H

#include "cli.h"

/* Saves and says so on stderr; exit codes. */
int cli_save(const struct cameo_model *model, const char *path);

#endif
