# libtorch comes from the torch wheel of the Python that is found first: .venv when it exists.
if(EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python AND NOT Python_EXECUTABLE)
  set(Python_EXECUTABLE ${CMAKE_SOURCE_DIR}/.venv/bin/python)
endif()
if(NOT Torch_DIR)
  find_package(Python COMPONENTS Interpreter REQUIRED)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "import importlib.util as u, os; print(os.path.dirname(u.find_spec('torch').origin))"
    OUTPUT_VARIABLE TORCH_FOLDER OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE TORCH_MISSING ERROR_QUIET)
  if(TORCH_MISSING)
    message(FATAL_ERROR "torch is not installed for ${Python_EXECUTABLE}: run 'make setup', or set Torch_DIR")
  endif()
  set(Torch_DIR ${TORCH_FOLDER}/share/cmake/Torch)
endif()
find_package(Torch REQUIRED)

# torch's wheel holds an old google/protobuf and its own fmt; Debian's headers are searched after them only where a
# target asks for both.
find_package(nlohmann_json 3.11 REQUIRED)
find_path(PROTOZERO_INCLUDE protozero/pbf_writer.hpp REQUIRED)
find_path(CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
find_path(DOCTEST_INCLUDE doctest/doctest.h)
