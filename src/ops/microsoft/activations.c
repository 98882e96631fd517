/* Approximations of GELU by tanh, and dropout, with the sums before them. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"

CM_BODY(fast_gelu_body, "Y = Gelu<approximate='tanh'>(X + bias)")
CM_BODY(gemm_fast_gelu_body, "Y = Gelu<approximate='tanh'>(MatMul(X, W) + bias)")
/* The residual is added to what dropout left of the biased data. */
CM_BODY(bias_dropout_body, "kept, mask = Dropout<*>(data + bias, ratio, training_mode);"
                           "output = kept + residual")

CM_OP_IN(microsoft, "com.microsoft", FastGelu, .body = fast_gelu_body);
CM_OP_IN(microsoft, "com.microsoft", GemmFastGelu, .body = gemm_fast_gelu_body);
CM_OP_IN(microsoft, "com.microsoft", BiasDropout, .body = bias_dropout_body);
