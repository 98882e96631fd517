# The kernels of compiled models built for other processors.
# SPDX-License-Identifier: Apache-2.0
if(NOT CMAKE_CROSSCOMPILING AND NOT CAMEO_SANITIZE)
  cameo_add_test(kernels/targets slow ${TESTS_DIR}/kernels/targets.sh)
endif()
