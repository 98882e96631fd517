# Pages of docs/ that show how to add something: their examples apply to the tree, and work.
# SPDX-License-Identifier: Apache-2.0
if(NOT CMAKE_CROSSCOMPILING)
  foreach(page backend format pass subcommand)
    cameo_add_test(pages/${page} suite ${VENV_PYTHON} ${TESTS_DIR}/pages/check_${page}_page.py ${PROJECT_SOURCE_DIR}
                   ${CMAKE_BINARY_DIR})
  endforeach()
endif()
