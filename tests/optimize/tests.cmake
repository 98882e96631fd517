# `cameo optimize` judged by ONNX Runtime: both forms of a sample; all backend test folders below the ones in
# OPTIMIZE_CASES in test-all.
# SPDX-License-Identifier: Apache-2.0
file(GLOB OPTIMIZE_SAMPLE CONFIGURE_DEPENDS ${TESTS_DIR}/optimize/*.onnxtxt)
list(APPEND OPTIMIZE_SAMPLE ${TESTS_DIR}/models/training_mlp_adam_initialized.onnx)
foreach(form portable functions)
  string(REPLACE "portable" "" flag "${form}")
  string(REPLACE "functions" "--functions" flag "${flag}")
  cameo_add_test(optimize/${form} ops ${VENV_PYTHON} ${TESTS_DIR}/optimize/check_optimized.py ${flag}
    ${TESTS_DIR}/networks ${OPTIMIZE_SAMPLE})
  cameo_add_test(optimize/all_${form} slow ${VENV_PYTHON} ${TESTS_DIR}/optimize/check_optimized.py ${flag} --env
    OPTIMIZE_CASES ${TESTS_DIR}/networks ${OPTIMIZE_SAMPLE})
endforeach()

cameo_add_test(optimize/quantized ops ${VENV_PYTHON} ${TESTS_DIR}/optimize/check_quantized.py)

# ONNX's node cases too: one operator each, in every version that the package has.
cameo_add_test(optimize/suite slow ${VENV_PYTHON} ${TESTS_DIR}/optimize/check_optimized.py
  ${PROJECT_SOURCE_DIR}/build/onnx-suite/node)
set_tests_properties(optimize/suite PROPERTIES FIXTURES_REQUIRED onnx_suite)
