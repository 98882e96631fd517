# What ONNX's own tools say, and what ours say.
# SPDX-License-Identifier: Apache-2.0
cameo_add_test(upstream/check suite ${VENV_PYTHON} ${TESTS_DIR}/upstream/check_outcomes.py
               "${TEST_COMMAND}" ${TESTS_DIR}/models/check/cases.tar.gz)
cameo_add_test(upstream/check_suite suite ${VENV_PYTHON} ${TESTS_DIR}/upstream/check_accepts.py
               "${TEST_COMMAND}" 2033 ${ONNX_SUITE})
set_tests_properties(upstream/check_suite PROPERTIES FIXTURES_REQUIRED onnx_suite)
cameo_add_test(upstream/check_examples suite ${VENV_PYTHON} ${PROJECT_SOURCE_DIR}/tools/check_examples.py
               "${TEST_COMMAND}")
