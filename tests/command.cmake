# Scripts that use the command, and checks of what is built and installed.
# SPDX-License-Identifier: Apache-2.0
if(NOT Python3_FOUND)
  message(STATUS "python3 not found: no tests of the command")
  return()
endif()

if(TARGET cameo_command)
  file(GLOB CLI_SCRIPTS CONFIGURE_DEPENDS ${TESTS_DIR}/cli/*.sh)
  if(CAMEO_SANITIZE)
    list(REMOVE_ITEM CLI_SCRIPTS ${TESTS_DIR}/cli/limits.sh)
  endif()
  find_program(CAMEO_CLANG clang-19)
  find_program(CAMEO_LLD ld.lld-19)
  find_program(CAMEO_QEMU_AARCH64 qemu-aarch64)
  mark_as_advanced(CAMEO_CLANG CAMEO_LLD CAMEO_QEMU_AARCH64)
  if(NOT TARGET cameo_mlir OR NOT CAMEO_CLANG OR NOT CAMEO_LLD)
    list(REMOVE_ITEM CLI_SCRIPTS ${TESTS_DIR}/cli/compile_native.sh)
  endif()
  if(NOT TARGET cameo_mlir OR NOT CAMEO_CLANG OR NOT CAMEO_LLD OR NOT CAMEO_QEMU_AARCH64)
    list(REMOVE_ITEM CLI_SCRIPTS ${TESTS_DIR}/cli/compile_board.sh)
  endif()
  foreach(script ${CLI_SCRIPTS})
    get_filename_component(name ${script} NAME_WE)
    cameo_add_test(cli/${name} cli ${Python3_EXECUTABLE}
                   ${PROJECT_SOURCE_DIR}/tools/run_cli_tests.py ${script})
  endforeach()
endif()

if(PUBLIC_HEADER_PRESENT AND NOT CAMEO_SANITIZE AND NOT CAMEO_COVERAGE AND NOT CMAKE_CROSSCOMPILING)
  cameo_add_test(package/exports package sh ${TESTS_DIR}/package/exports.sh
                 $<TARGET_FILE:cameo> ${PROJECT_SOURCE_DIR}/include/cameo.h ${CMAKE_NM} ${CMAKE_READELF})
  if(CAMEO_HARDEN AND CMAKE_BUILD_TYPE STREQUAL "Release" AND TARGET cameo_command)
    cameo_add_test(package/hardened package sh ${TESTS_DIR}/package/hardened.sh ${CMAKE_READELF}
                   $<TARGET_FILE:cameo_command> $<TARGET_FILE:cameo>)
  endif()
  cameo_add_test(package/install package sh ${TESTS_DIR}/package/install.sh
                 ${CMAKE_COMMAND} ${CMAKE_BINARY_DIR} ${CMAKE_C_COMPILER})
endif()
