# The module that compiles programs in MLIR's text form: a shared object of ours that links MLIR and LLVM, where they are
# installed, through their C interfaces. libcameo links neither; it opens the module when the first model is compiled.
# SPDX-License-Identifier: Apache-2.0
set(MLIR_VERSION 19) # of the interfaces that src/mlir/module is written for
set(MLIR_DEFAULT ON)
if(CMAKE_CROSSCOMPILING OR CAMEO_SANITIZE OR CAMEO_FUZZ)
  set(MLIR_DEFAULT OFF) # for another machine; code of others that sanitizers do not see
endif()
option(CAMEO_MLIR "Build the module that compiles models, where MLIR ${MLIR_VERSION} is installed" ${MLIR_DEFAULT})

# Looked for by this name, see src/mlir/toolchain/open.c.
set(MLIR_FILE libcameo_mlir.so.${CAMEO_SOVERSION})
set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/mlir/toolchain/open.c APPEND PROPERTY COMPILE_DEFINITIONS
             CM_MLIR_FILE="${MLIR_FILE}")
if(NOT CAMEO_MLIR)
  return()
endif()

set(MLIR_PLACES /usr/lib/llvm-${MLIR_VERSION} /usr/local/opt/llvm@${MLIR_VERSION} /opt/llvm-${MLIR_VERSION})
find_path(CAMEO_MLIR_INCLUDE mlir-c/RegisterEverything.h HINTS ${MLIR_PLACES} PATH_SUFFIXES include)
find_path(CAMEO_LLVM_INCLUDE llvm-c/Transforms/PassBuilder.h HINTS ${CAMEO_MLIR_INCLUDE} ${MLIR_PLACES}
          PATH_SUFFIXES include)
set(MLIR_LIBRARIES "")
foreach(name MLIRCAPIRegisterEverything MLIRCAPITarget MLIRCAPIIR MLIR LLVM)
  find_library(CAMEO_LIB_${name} NAMES ${name} HINTS ${CAMEO_MLIR_INCLUDE}/.. ${MLIR_PLACES} PATH_SUFFIXES lib)
  mark_as_advanced(CAMEO_LIB_${name})
  list(APPEND MLIR_LIBRARIES ${CAMEO_LIB_${name}})
endforeach()
mark_as_advanced(CAMEO_MLIR_INCLUDE CAMEO_LLVM_INCLUDE)
if(NOT CAMEO_MLIR_INCLUDE OR NOT CAMEO_LLVM_INCLUDE OR MLIR_LIBRARIES MATCHES "NOTFOUND")
  message(STATUS "MLIR: left out, libmlir-${MLIR_VERSION}-dev or llvm-${MLIR_VERSION}-dev is not installed")
  return()
endif()
file(STRINGS ${CAMEO_LLVM_INCLUDE}/llvm/Config/llvm-config.h found REGEX "define LLVM_VERSION_MAJOR")
string(REGEX REPLACE "[^0-9]" "" found "${found}")
if(NOT found EQUAL MLIR_VERSION)
  message(STATUS "MLIR: left out, it is version ${found}, and ${MLIR_VERSION} is needed")
  return()
endif()
message(STATUS "MLIR: ${CAMEO_MLIR_INCLUDE}")

file(GLOB MLIR_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/mlir/module/*.c)
list(APPEND MLIR_SOURCES ${PROJECT_SOURCE_DIR}/src/base/best_fit.c) # the module links nothing of libcameo
add_library(cameo_mlir_objects OBJECT ${MLIR_SOURCES})
set_target_properties(cameo_mlir_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(cameo_mlir_objects PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_include_directories(cameo_mlir_objects SYSTEM PRIVATE ${CAMEO_MLIR_INCLUDE} ${CAMEO_LLVM_INCLUDE})
target_link_libraries(cameo_mlir_objects PRIVATE cameo_flags)

add_library(cameo_mlir MODULE $<TARGET_OBJECTS:cameo_mlir_objects>)
target_link_libraries(cameo_mlir PRIVATE cameo_flags ${MLIR_LIBRARIES} stdc++ Threads::Threads)
target_link_options(cameo_mlir PRIVATE LINKER:--exclude-libs,ALL LINKER:--gc-sections)
set_target_properties(cameo_mlir PROPERTIES LINKER_LANGUAGE C SUFFIX .so.${CAMEO_SOVERSION}
                                            LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
                                            INSTALL_RPATH_USE_LINK_PATH ON) # where Debian keeps libMLIR
add_dependencies(product cameo_mlir)
