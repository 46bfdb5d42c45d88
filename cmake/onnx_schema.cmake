# generated/transporters/onnx/schema.h: field numbers and enums of ONNX's protobuf messages, from the onnx.proto that the
# onnx wheel (or a system package: set ONNX_PROTO) holds.
if(NOT ONNX_PROTO)
  find_package(Python COMPONENTS Interpreter REQUIRED)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "import importlib.util as u, os; print(os.path.dirname(u.find_spec('onnx').origin))"
    OUTPUT_VARIABLE ONNX_FOLDER OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE ONNX_MISSING ERROR_QUIET)
  if(ONNX_MISSING)
    message(FATAL_ERROR "onnx is not installed for ${Python_EXECUTABLE}: run 'make setup', or set ONNX_PROTO to onnx.proto")
  endif()
  set(ONNX_PROTO ${ONNX_FOLDER}/onnx.proto CACHE FILEPATH "onnx.proto with ONNX's messages")
endif()

set(ONNX_SCHEMA ${CMAKE_BINARY_DIR}/generated/transporters/onnx/schema.h)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated/transporters/onnx)
find_package(Python COMPONENTS Interpreter REQUIRED)
add_custom_command(
  OUTPUT ${ONNX_SCHEMA}
  COMMAND ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/generate_onnx_schema.py ${ONNX_PROTO} ${ONNX_SCHEMA}
  DEPENDS ${CMAKE_SOURCE_DIR}/cmake/generate_onnx_schema.py ${ONNX_PROTO}
  VERBATIM)
add_custom_target(onnx_schema DEPENDS ${ONNX_SCHEMA})
