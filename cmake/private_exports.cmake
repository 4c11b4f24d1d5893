cmake_minimum_required(VERSION 3.25)
# Run with -P: writes OUTPUT, the linker's version script for the runtime: the C interface under
# TENON_1, and under TENON_PRIVATE_<build id> the symbols of the archives RUNTIME that the archives
# and objects USERS (of the compiler's library and the bridges) need. NM lists symbols;
# BUILD_ID_SOURCE is the output of build_id.cmake.
function(symbols out)
  execute_process(COMMAND "${NM}" --format=just-symbols ${ARGN} OUTPUT_VARIABLE text
    ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
  # Not the local references to symbols, such as DW.ref._ZTIN5tenon5ErrorE.
  string(REGEX MATCHALL "\n_Z[A-Za-z0-9_.]+" names "\n${text}")
  list(TRANSFORM names STRIP)
  list(REMOVE_DUPLICATES names)
  set(${out} "${names}" PARENT_SCOPE)
endfunction()

set(needed)
if(USERS)
  symbols(undefined --undefined-only ${USERS})
  # Symbols that a user also defines, such as instances of templates, are not imported.
  symbols(own --defined-only --extern-only ${USERS})
  symbols(defined --defined-only --extern-only ${RUNTIME})
  list(APPEND own "")
  list(REMOVE_ITEM undefined ${own})
  foreach(symbol ${undefined})
    if(symbol IN_LIST defined)
      list(APPEND needed "${symbol}")
    endif()
  endforeach()
  list(SORT needed)
endif()

file(STRINGS "${BUILD_ID_SOURCE}" line REGEX "kBuildId")
string(REGEX REPLACE ".*\"([0-9a-f]+)\".*" "\\1" id "${line}")
set(text "TENON_1 {\n  global: tenon_*;\n  local: *;\n};\n")
if(needed)
  list(JOIN needed ";\n    " lines)
  string(APPEND text "TENON_PRIVATE_${id} {\n  global:\n    ${lines};\n};\n")
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "${text}" @ONLY)
