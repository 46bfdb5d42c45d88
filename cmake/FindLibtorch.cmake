# Finds libtorch's CPU libraries and headers: in TORCH_INSTALL_PREFIX when set (an unpacked libtorch, or the torch folder of a
# wheel), else in the torch wheel of Python_EXECUTABLE. Defines the target libtorch::libtorch, TORCH_INSTALL_PREFIX and
# Libtorch_VERSION.
#
# torch's own TorchConfig.cmake is not used: for a wheel built with CUDA it insists on the CUDA toolkit, of which
# nothing is needed here.
if(NOT TORCH_INSTALL_PREFIX)
  find_package(Python COMPONENTS Interpreter QUIET)
  if(Python_EXECUTABLE)
    execute_process(
      COMMAND ${Python_EXECUTABLE} -c
              "import importlib.util as u, os; print(os.path.dirname(u.find_spec('torch').origin), end='')"
      OUTPUT_VARIABLE folder ERROR_QUIET)
  endif()
  set(TORCH_INSTALL_PREFIX "${folder}" CACHE PATH "The folder that holds libtorch's include and lib")
endif()

if(EXISTS "${TORCH_INSTALL_PREFIX}/include/torch/headeronly/version.h")
  file(STRINGS "${TORCH_INSTALL_PREFIX}/include/torch/headeronly/version.h" line REGEX "\"[0-9]+\\.[0-9]+\\.[0-9]+\"")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" Libtorch_VERSION "${line}")
endif()
find_library(LIBTORCH_CPU_LIBRARY torch_cpu PATHS "${TORCH_INSTALL_PREFIX}/lib" NO_DEFAULT_PATH)
find_library(LIBTORCH_C10_LIBRARY c10 PATHS "${TORCH_INSTALL_PREFIX}/lib" NO_DEFAULT_PATH)
mark_as_advanced(LIBTORCH_CPU_LIBRARY LIBTORCH_C10_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Libtorch
  REQUIRED_VARS TORCH_INSTALL_PREFIX LIBTORCH_CPU_LIBRARY LIBTORCH_C10_LIBRARY
  VERSION_VAR Libtorch_VERSION
  REASON_FAILURE_MESSAGE "set TORCH_INSTALL_PREFIX, or Python_EXECUTABLE to a Python that has torch ('make setup' makes .venv)")

if(Libtorch_FOUND AND NOT TARGET libtorch::libtorch)
  add_library(libtorch::libtorch INTERFACE IMPORTED)
  set_target_properties(
    libtorch::libtorch
    PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
               "${TORCH_INSTALL_PREFIX}/include;${TORCH_INSTALL_PREFIX}/include/torch/csrc/api/include"
               INTERFACE_LINK_LIBRARIES "${LIBTORCH_CPU_LIBRARY};${LIBTORCH_C10_LIBRARY}"
               INTERFACE_COMPILE_FEATURES cxx_std_20)
endif()
