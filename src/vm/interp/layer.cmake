# Each handler of the loop must keep its own indirect jump, and pc and base their registers.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set_source_files_properties(src/vm/interp/dispatch.cc PROPERTIES COMPILE_OPTIONS
    "-fno-gcse;-fno-crossjumping;-fno-tree-slp-vectorize;--param=max-goto-duplication-insns=64")
endif()

# Tests are written in assembly, which the layer itself must not see.
if(TARGET ${TARGET_NAME}_test)
  target_link_libraries(${TARGET_NAME}_test PRIVATE tenon_vm_asm)
endif()
