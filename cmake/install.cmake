# The install tree: bin/transporters, lib/libtransporters.so, headers, and the CMake package that find_package reads.
include(CMakePackageConfigHelpers)
set(PACKAGE_FOLDER lib/cmake/transporters)
configure_package_config_file(cmake/transportersConfig.cmake.in ${CMAKE_BINARY_DIR}/generated/transportersConfig.cmake
                              INSTALL_DESTINATION ${PACKAGE_FOLDER})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/transportersConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/transportersConfig.cmake
              ${CMAKE_BINARY_DIR}/generated/transportersConfigVersion.cmake cmake/FindLibtorch.cmake
        DESTINATION ${PACKAGE_FOLDER})
install(EXPORT transportersTargets NAMESPACE transporters:: DESTINATION ${PACKAGE_FOLDER})
