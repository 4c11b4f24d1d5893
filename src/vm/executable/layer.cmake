# The code that reads and writes the file's metadata is generated from its schema.
find_program(TENON_FLATC flatc REQUIRED)
set(tnx_generated "${PROJECT_BINARY_DIR}/generated/vm/executable/tnx_generated.h")
add_custom_command(
  OUTPUT "${tnx_generated}"
  COMMAND "${TENON_FLATC}" --cpp -o "${PROJECT_BINARY_DIR}/generated/vm/executable"
          "${PROJECT_SOURCE_DIR}/src/vm/executable/tnx.fbs"
  DEPENDS "${PROJECT_SOURCE_DIR}/src/vm/executable/tnx.fbs"
  COMMENT "Generating tnx_generated.h")
target_sources(${TARGET_NAME} PRIVATE "${tnx_generated}")
# For generated_schema.h, which the headers test also compiles.
target_include_directories(${TARGET_NAME} SYSTEM PUBLIC "${PROJECT_BINARY_DIR}/generated")
target_link_libraries(${TARGET_NAME} PUBLIC ${CMAKE_DL_LIBS})

if(TARGET ${TARGET_NAME}_test)
  set(tripwire "${PROJECT_BINARY_DIR}/test_tripwire.so")
  add_custom_command(OUTPUT "${tripwire}"
    COMMAND "${CMAKE_C_COMPILER}" -O1 -fPIC -shared -nostdlib -fvisibility=hidden
            -fno-stack-protector -fno-builtin -fcf-protection=none -fuse-ld=lld
            -Wl,-z,noexecstack -Wl,--hash-style=gnu -Wl,--build-id=none -o "${tripwire}"
            "${PROJECT_SOURCE_DIR}/src/vm/executable/test_tripwire.c"
    DEPENDS "${PROJECT_SOURCE_DIR}/src/vm/executable/test_tripwire.c")
  target_sources(${TARGET_NAME}_test PRIVATE "${tripwire}")
  target_compile_definitions(${TARGET_NAME}_test PRIVATE "TENON_TEST_TRIPWIRE=\"${tripwire}\"")
endif()
