# Sets SHERD_CUDA to ON when the CUDA backend is built. Its absence is confined to stub files.
set(SHERD_CUDA OFF)
if(NOT SHERD_WITH_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
    if(DEFINED CMAKE_CUDA_ARCHITECTURES)
      enable_language(CUDA)
    else()
      # For this machine's GPUs, or where it has none for Ampere and Ada, Hopper and what follows.
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
      enable_language(CUDA)
      if(CMAKE_CUDA_ARCHITECTURES_NATIVE MATCHES "^[0-9]")
        set(CMAKE_CUDA_ARCHITECTURES ${CMAKE_CUDA_ARCHITECTURES_NATIVE})
      endif()
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 drops C++20 for nvcc without a word
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    find_package(CUDAToolkit REQUIRED)
    set(SHERD_CUDA ON)
    target_compile_options(sherd_options INTERFACE
      $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
      # Shared arithmetic uses what the standard library has constexpr, such as bit_cast.
      $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>
      # fmt 9 checks formats by consteval functions, at which nvcc's front end stumbles.
      $<$<COMPILE_LANGUAGE:CUDA>:-DFMT_CONSTEVAL= -DFMT_USE_CONSTEXPR=1>)
  elseif(SHERD_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SHERD_WITH_CUDA=ON, but there is no CUDA compiler on PATH")
  endif()
endif()
message(STATUS "Sherd: CUDA backend ${SHERD_CUDA} ${CMAKE_CUDA_ARCHITECTURES}")
