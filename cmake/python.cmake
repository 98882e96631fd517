# The extension of Python's package cameo (python/): our library and what CPython calls, in one shared object. pyproject.toml
# builds the wheel with it; here, target python puts the package into build/python/ for those who work on it.
# SPDX-License-Identifier: Apache-2.0
if(CMAKE_CROSSCOMPILING OR CAMEO_FUZZ)
  return()
endif()
if(SKBUILD)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
else()
  find_package(Python 3.11 COMPONENTS Interpreter Development.Module QUIET)
  if(NOT Python_Development.Module_FOUND)
    message(STATUS "Python package: left out, there are no headers of Python 3.11 or later")
    return()
  endif()
endif()

# One file for every CPython from 3.11 on; a free-threaded one has no stable interface, and so a file of its own.
execute_process(COMMAND ${Python_EXECUTABLE} -c
                "import sysconfig; print(sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
                OUTPUT_VARIABLE FREE_THREADED OUTPUT_STRIP_TRAILING_WHITESPACE)
file(GLOB EXTENSION_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/ext/*.c)
# Pictures of models are those of `cameo graph`.
file(GLOB DRAWING_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/graph_*.c)
add_library(python_extension MODULE EXCLUDE_FROM_ALL ${EXTENSION_SOURCES} ${DRAWING_SOURCES}
            ${PROJECT_SOURCE_DIR}/cli/put_text.c)
target_include_directories(python_extension PRIVATE ${Python_INCLUDE_DIRS} ${PROJECT_SOURCE_DIR}/include
                           ${PROJECT_SOURCE_DIR}/cli)
target_link_libraries(python_extension PRIVATE cameo_flags cameo_static)
# CPython's own headers are not written for all of our warnings; nor can they be included without its names.
target_compile_options(python_extension PRIVATE -Wno-pedantic -Wno-cast-function-type)
target_link_options(python_extension PRIVATE LINKER:--exclude-libs,ALL LINKER:--gc-sections)
set_target_properties(python_extension PROPERTIES PREFIX "" OUTPUT_NAME _cameo)
if(FREE_THREADED)
  set_target_properties(python_extension PROPERTIES SUFFIX .${Python_SOABI}.so)
else()
  target_compile_definitions(python_extension PRIVATE Py_LIMITED_API=0x030B0000)
  set_target_properties(python_extension PROPERTIES SUFFIX .abi3.so)
endif()

# What is found at run time in the extension's own folder.
set(PYTHON_BESIDE $<TARGET_FILE:python_extension>)
if(TARGET cameo_codecs)
  list(APPEND PYTHON_BESIDE $<TARGET_FILE:cameo_codecs>)
endif()

set(PYTHON_TRY ${CMAKE_BINARY_DIR}/python/cameo)
add_custom_target(python
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${PYTHON_TRY}
  COMMAND ${CMAKE_COMMAND} -E copy_directory ${PROJECT_SOURCE_DIR}/python/cameo ${PYTHON_TRY}
  COMMAND ${CMAKE_COMMAND} -E copy ${PYTHON_BESIDE} ${PYTHON_TRY}
  DEPENDS python_extension $<$<TARGET_EXISTS:cameo_codecs>:cameo_codecs>
  COMMAND_EXPAND_LISTS VERBATIM)

if(SKBUILD)
  install(FILES ${PYTHON_BESIDE} DESTINATION cameo COMPONENT python)
endif()
