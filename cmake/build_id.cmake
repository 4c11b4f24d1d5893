cmake_minimum_required(VERSION 3.25)
# Run with -P: writes OUTPUT, a source file that defines kBuildId (src/object/library.h): a hash of
# FACTS (the compiler and its flags) and of all sources below the FOLDERS of ROOT. The file is only
# written when the id changes.
set(files)
foreach(folder ${FOLDERS})
  file(GLOB_RECURSE found RELATIVE "${ROOT}" "${ROOT}/${folder}/*.h" "${ROOT}/${folder}/*.cc"
    "${ROOT}/${folder}/*.def" "${ROOT}/${folder}/*.fbs")
  list(APPEND files ${found})
endforeach()
list(FILTER files EXCLUDE REGEX "(_test\\.cc|_testing\\.h)$")
list(SORT files)
set(text "${FACTS}")
foreach(file ${files})
  file(SHA256 "${ROOT}/${file}" hash)
  string(APPEND text "\n${file} ${hash}")
endforeach()
string(SHA256 id "${text}")
string(SUBSTRING "${id}" 0 16 id)
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT
  "#include \"object/library.h\"\n\nnamespace tenon {\nextern const char kBuildId[] = \"${id}\";\n}\n")
