// make_tnx TEXT.tna OUT.tnx: assembles a file, for tests without the compiler.
#include <cstdio>
#include <fstream>
#include <iterator>

#include "support/error.h"
#include "vm/asm/assemble.h"
#include "vm/executable/write_file.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    std::ifstream in(argv[1]);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    tenon::vm::save(tenon::vm::assemble(text, argv[1]), argv[2]);
    return 0;
  } catch (const tenon::Error& e) {
    std::fprintf(stderr, "%s\n", e.render().c_str());
    return e.exit_code();
  }
}
