target_compile_definitions(${TARGET_NAME} PRIVATE "TENON_VERSION=\"${PROJECT_VERSION}\"")

# The C interface as C sees it, compiled as C, is part of the test.
if(TENON_BUILD_TESTS)
  target_sources(${TARGET_NAME}_test PRIVATE "${CMAKE_CURRENT_LIST_DIR}/c_program.c")
  # Executables for it are written in assembly, which the layer itself must not see.
  target_link_libraries(${TARGET_NAME}_test PRIVATE tenon_vm_asm)
endif()
