# Sets SHERD_CUDNN to ON when the headers of cuDNN and of cudnn-frontend are there. The library
# itself is loaded when a program first asks for it, so there is none to link.
set(SHERD_CUDNN OFF)
if(SHERD_CUDA)
  find_path(SHERD_CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_path(SHERD_CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h
    HINTS ${PROJECT_SOURCE_DIR}/build/_deps/cudnn-frontend/include)
  if(NOT SHERD_CUDNN_INCLUDE_DIR)
    message(STATUS "Sherd: attention by own kernels alone: there is no cudnn.h")
  elseif(NOT SHERD_CUDNN_FRONTEND_INCLUDE_DIR)
    message(STATUS "Sherd: attention by own kernels alone: there is no cudnn_frontend.h "
      "(tools/fetch_cudnn_frontend.sh brings it)")
  else()
    message(STATUS "Sherd: attention by cuDNN (${SHERD_CUDNN_FRONTEND_INCLUDE_DIR})")
    set(SHERD_CUDNN ON)
  endif()
endif()
