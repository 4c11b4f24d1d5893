# Keeps each handler's own indirect jump, and pc and base in registers.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set_source_files_properties(src/vm/interp/dispatch.cc PROPERTIES COMPILE_OPTIONS
    "-fno-gcse;-fno-tree-slp-vectorize;--param=max-goto-duplication-insns=16")
endif()

if(TARGET ${TARGET_NAME}_test)
  # A kernel object, built like those of the compiler: closed, whatever the preset.
  set(kernels "${PROJECT_BINARY_DIR}/test_kernels.so")
  add_custom_command(OUTPUT "${kernels}"
    COMMAND "${CMAKE_C_COMPILER}" -O1 -fPIC -shared -nostdlib -fvisibility=hidden
            -fno-stack-protector -fno-builtin -fcf-protection=none -fuse-ld=lld
            -Wl,-z,noexecstack -Wl,--build-id=none "-I${PROJECT_SOURCE_DIR}/src" "-I${PROJECT_SOURCE_DIR}/include"
            -o "${kernels}" "${PROJECT_SOURCE_DIR}/src/vm/interp/test_kernels.c"
    DEPENDS "${PROJECT_SOURCE_DIR}/src/vm/interp/test_kernels.c"
            "${PROJECT_SOURCE_DIR}/src/vm/executable/kernel_errors.def")
  target_sources(${TARGET_NAME}_test PRIVATE "${kernels}")
  target_compile_definitions(${TARGET_NAME}_test PRIVATE "TENON_TEST_KERNELS=\"${kernels}\"")
endif()
