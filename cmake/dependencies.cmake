# libtorch comes from the torch wheel of .venv when that exists, else of the Python that is found first.
if(EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python AND NOT Python_EXECUTABLE)
  set(Python_EXECUTABLE ${CMAKE_SOURCE_DIR}/.venv/bin/python)
endif()
# The exact version that tests run with: libtorch's C++ interface changes with every minor version.
set(LIBTORCH_TESTED_VERSION 2.13.0)
set(TRANSFORMERS_TESTED_VERSION 5.24.0)
find_package(Libtorch ${LIBTORCH_TESTED_VERSION} REQUIRED)
# Installed programs find this library beside them and libtorch where the build found it.
set(CMAKE_INSTALL_RPATH $ORIGIN/../lib ${TORCH_INSTALL_PREFIX}/lib)

# torch's wheel holds an old google/protobuf and its own fmt; Debian's headers are searched after them only where a
# target asks for both.
find_package(nlohmann_json 3.11 REQUIRED)
find_path(PROTOZERO_INCLUDE protozero/pbf_writer.hpp REQUIRED)
if(TRANSPORTERS_BUILD_CLI)
  find_path(CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
endif()
if(TRANSPORTERS_BUILD_TESTS)
  find_path(DOCTEST_INCLUDE doctest/doctest.h REQUIRED)
endif()

# ONNX Runtime is opened at run time and may be absent: its wheel's library is only where that looks first.
if(NOT DEFINED ONNXRUNTIME_LIBRARY)
  file(GLOB ONNXRUNTIME_FOUND "${TORCH_INSTALL_PREFIX}/../onnxruntime/capi/libonnxruntime.so.*")
  set(ONNXRUNTIME_LIBRARY "${ONNXRUNTIME_FOUND}" CACHE FILEPATH "The shared library of ONNX Runtime, if any")
endif()
