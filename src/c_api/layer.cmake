target_compile_definitions(${TARGET_NAME} PRIVATE "TENON_VERSION=\"${PROJECT_VERSION}\"")

# The test includes a C program, so that the interface is compiled as C too.
if(TENON_BUILD_TESTS)
  target_sources(${TARGET_NAME}_test PRIVATE "${CMAKE_CURRENT_LIST_DIR}/c_program.c")
endif()
