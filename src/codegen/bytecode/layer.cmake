target_compile_definitions(${TARGET_NAME} PRIVATE "TENON_VERSION=\"${PROJECT_VERSION}\"")
