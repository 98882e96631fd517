/* Proves that a saved model needs nothing but the files that were written with it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_COPY_PROOF_H
#define CLI_COPY_PROOF_H

#include "saved_files.h"

/* Loads the model that was saved from a folder that holds its files alone, checks it, and compares
 * its tensors with those of stripped, which it was saved from, and its results on random inputs
 * with those of original. Says what was proved on stdout. Exit codes: CLI_NO if
 * the copy does not stand alone. */
int cli_prove_copy(const struct cameo_model *original, const struct cameo_model *stripped,
                   const struct cli_saved *saved);

#endif
