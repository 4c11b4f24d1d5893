// tnx_mutants COUNT [SEED] FILE.tna|FILE.tnx...: loads and runs COUNT mutants of the files, half of
// them changed in their code words alone, a quarter anywhere with hashes repaired. Build it with a
// sanitizer preset; it exits with 0 when all of them gave a value or an error.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "mutate.h"
#include "tnx_target.h"
#include "vm/asm/assemble.h"
#include "vm/executable/write_file.h"

namespace {

// A sound file with some words of its code changed: most of these pass the verifier.
std::string code_mutant(const tenon::vm::Unit& original, tenon::fuzz::Mutator& mutator) {
  tenon::vm::Unit unit = original;
  for (uint64_t changes = 1 + mutator.below(3); changes-- > 0;) {
    auto& f = unit.functions[mutator.below(unit.functions.size())];
    if (f.code.empty()) continue;
    tenon::vm::Word& word = f.code[mutator.below(f.code.size())];
    switch (mutator.below(5)) {
      case 0:
        word ^= tenon::vm::Word{1} << mutator.below(5);
        break;
      case 1:
        word = f.code[mutator.below(f.code.size())];
        break;
      case 2:
        word = (word & ~tenon::vm::Word{0xff}) | mutator.below(16);
        break;
      case 3:
        word ^= tenon::vm::Word{4} << 56;
        break;  // a last use, or none any more
      default:
        word = (word & 0xff00000000000000) | ((word + mutator.below(5) - 2) & 0xffffffffffffff);
    }
  }
  return tenon::vm::write_to_bytes(unit);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tenon;
  if (argc < 4) {
    std::fprintf(stderr, "usage: tnx_mutants COUNT SEED FILE...\n");
    return 2;
  }
  long count = std::atol(argv[1]);
  std::vector<std::string> corpus, kernels;
  std::vector<vm::Unit> units;
  for (int i = 3; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    try {
      bool text = std::string(argv[i]).ends_with(".tna");
      if (text) bytes = vm::write_to_bytes(vm::assemble(bytes, argv[i]));
      vm::Unit unit = vm::read_unit(vm::copy_bytes(bytes)).unit;
      for (const auto& k : unit.kernels) kernels.push_back(k.elf);
      corpus.push_back(bytes);
      units.push_back(std::move(unit));
    } catch (const Error& e) {
      std::fprintf(stderr, "left out %s: %s\n", argv[i], e.message().c_str());
    }
  }
  if (corpus.empty()) return 2;
  fuzz::Mutator mutator(static_cast<uint64_t>(std::atoll(argv[2])));
  long loaded = 0, values = 0, errors = 0;
  for (long i = 0; i < count; ++i) {
    size_t base = mutator.below(corpus.size());
    std::string bytes = i % 2 ? code_mutant(units[base], mutator)
                              : mutator.mutant(corpus[base], corpus[mutator.below(corpus.size())]);
    if (i % 4 == 0) vm::repair_hashes(bytes);
    // A finding leaves its input behind.
    if (const char* path = std::getenv("TENON_LAST_MUTANT"))
      std::ofstream(path, std::ios::binary) << bytes;
    fuzz::TnxOutcome outcome = fuzz::run_tnx(bytes, true, kernels);
    loaded += outcome.loaded;
    values += outcome.values;
    errors += outcome.errors;
  }
  std::printf("%ld mutants: %ld loaded, %ld calls gave values, %ld errors\n", count, loaded, values,
              errors);
  return 0;
}
