# Install rules, the CMake package and the pkg-config file. Sherd::sherd is all libraries as one.
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY SHERD_LIBRARIES)
add_library(sherd_all INTERFACE)
add_library(Sherd::sherd ALIAS sherd_all)
set_target_properties(sherd_all PROPERTIES EXPORT_NAME sherd)
target_link_libraries(sherd_all INTERFACE ${libraries})

install(TARGETS ${libraries} sherd_all EXPORT SherdTargets)
install(FILES include/sherd/sherd.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sherd)
install(DIRECTORY core kernels collectives optim runtime models
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sherd FILES_MATCHING PATTERN "*.h")

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Sherd)
install(EXPORT SherdTargets NAMESPACE Sherd:: DESTINATION ${package_folder})
configure_package_config_file(cmake/SherdConfig.cmake.in SherdConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(SherdConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/SherdConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/SherdConfigVersion.cmake DESTINATION ${package_folder})

# The file moves with its prefix: the way from lib/pkgconfig back up.
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
list(TRANSFORM libraries PREPEND "-l" OUTPUT_VARIABLE link_flags)
list(JOIN link_flags " " link_flags)
list(JOIN MPI_C_LIBRARIES " " mpi_flags)
list(JOIN BLAS_LIBRARIES " " blas_flags)
set(cuda_flags "")
if(SHERD_CUDA)
  set(cuda_flags "${CUDA_cudart_LIBRARY} ${CUDA_cublasLt_LIBRARY}")
  if(NCCL_LIBRARY)
    string(APPEND cuda_flags " ${NCCL_LIBRARY}")
  endif()
endif()
configure_file(cmake/sherd.pc.in sherd.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sherd.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
