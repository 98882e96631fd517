# Python's package cameo (python/): our library and what CPython calls, in one shared object. pyproject.toml builds the
# wheel with it; here, target python puts the package into build/python/ for those who work on it.
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
add_library(python_extension MODULE EXCLUDE_FROM_ALL ${EXTENSION_SOURCES})
target_include_directories(python_extension SYSTEM PRIVATE ${Python_INCLUDE_DIRS})
target_include_directories(python_extension PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(python_extension PRIVATE cameo_flags cameo_static)
# CPython's own tables cast functions, and are ended by {0}. Options of sources follow those of cameo_flags; options of
# the target precede them, and CAMEO_DEV would turn the warnings on again.
set_source_files_properties(${EXTENSION_SOURCES} PROPERTIES COMPILE_OPTIONS "-Wno-pedantic;-Wno-cast-function-type")
target_link_options(python_extension PRIVATE LINKER:--exclude-libs,ALL LINKER:--gc-sections)
set_target_properties(python_extension PROPERTIES PREFIX "" OUTPUT_NAME _cameo)
if(FREE_THREADED)
  set_target_properties(python_extension PROPERTIES SUFFIX .${Python_SOABI}.so)
else()
  target_compile_definitions(python_extension PRIVATE Py_LIMITED_API=0x030B0000)
  set_target_properties(python_extension PROPERTIES SUFFIX .abi3.so)
endif()

# What lies beside the extension: the command, and what is looked for there at run time.
set(PYTHON_PARTS python_extension)
foreach(part cameo_codecs cameo_mlir cameo_command)
  if(TARGET ${part})
    list(APPEND PYTHON_PARTS ${part})
  endif()
endforeach()
set(PYTHON_FILES "")
foreach(part ${PYTHON_PARTS})
  list(APPEND PYTHON_FILES $<TARGET_FILE:${part}>)
endforeach()

set(PYTHON_TRY ${CMAKE_BINARY_DIR}/python/cameo)
if(SKBUILD)
  add_custom_target(python DEPENDS ${PYTHON_PARTS})
else()
  add_custom_target(python
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${PYTHON_TRY}
    COMMAND ${CMAKE_COMMAND} -E copy_directory ${PROJECT_SOURCE_DIR}/python/cameo ${PYTHON_TRY}
    COMMAND ${CMAKE_COMMAND} -E copy ${PYTHON_FILES} ${PYTHON_TRY}
    DEPENDS ${PYTHON_PARTS} COMMAND_EXPAND_LISTS VERBATIM)
  return()
endif()

# The wheel. Libraries of others are found beside those that need them: by the path in the file (of the older kind, which
# holds for what they need in turn), or by src/base/library.c.
# libMLIR and libLLVM are not brought along, they are 190 MiB: the module for MLIR looks for them where the system has them.
foreach(part ${PYTHON_PARTS})
  set_target_properties(${part} PROPERTIES INSTALL_RPATH "$ORIGIN")
  target_link_options(${part} PRIVATE LINKER:--disable-new-dtags)
endforeach()
install(TARGETS ${PYTHON_PARTS} LIBRARY DESTINATION cameo COMPONENT python RUNTIME DESTINATION cameo COMPONENT python)
set(CAMEO_ONEDNN "" CACHE FILEPATH "oneDNN for the wheel; by default that of the package onednn-cpu-gomp, where installed")
set(GATHER ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/gather_libraries.py --licences ${SKBUILD_METADATA_DIR}/licenses)
if(CAMEO_ONEDNN)
  list(APPEND GATHER --onednn ${CAMEO_ONEDNN})
endif()
list(JOIN GATHER "\" \"" GATHER)
install(CODE "execute_process(COMMAND \"${GATHER}\" \"\${CMAKE_INSTALL_PREFIX}/cameo\" COMMAND_ERROR_IS_FATAL ANY)"
        COMPONENT python)
