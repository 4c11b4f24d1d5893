# Tests are written in assembly, which the layer itself must not see.
if(TARGET ${TARGET_NAME}_test)
  target_link_libraries(${TARGET_NAME}_test PRIVATE tenon_vm_asm)
endif()
