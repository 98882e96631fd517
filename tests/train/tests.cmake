# What is written for other runtimes, run by them.
# SPDX-License-Identifier: Apache-2.0
cameo_add_test(train/portable suite ${VENV_PYTHON} ${TESTS_DIR}/train/check_portable.py
               ${CMAKE_BINARY_DIR}/cameo ${TESTS_DIR}/models)
