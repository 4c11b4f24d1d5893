// tensor_mutants COUNT FIRST FILE...: reads mutants FIRST to FIRST + COUNT - 1 of .npy files, .npz
// archives, .pb files and .safetensors files (tensor_target.h). Exits with 0 if each gave arrays or
// errors. Build it with a sanitizer preset.
#include <iterator>

#include "arguments.h"
#include "bounds.h"
#include "mutate.h"
#include "tensor_target.h"
#include "wire_mutate.h"

int main(int argc, char** argv) {
  using namespace tenon;
  using namespace tenon::fuzz;
  constexpr unsigned kSeconds = 10;  // per mutant
  const Arguments arguments = read_arguments(argc, argv);
  std::vector<std::string> seeds;
  std::vector<std::optional<std::vector<WireField>>> messages;  // of .pb files
  for (const std::string& file : arguments.files) {
    std::ifstream in(file, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    const bool is_message = file.ends_with(".pb");
    messages.push_back(is_message ? WireReader::read(seeds.back()) : std::nullopt);
    if (run_tensors(seeds.back()).arrays > 0 || messages.back()) continue;
    std::fprintf(stderr, "%s has no array\n", file.c_str());
    return 2;
  }
  set_bounds(kSeconds);

  long with_arrays = 0, arrays = 0;
  for (uint64_t number = arguments.first; number < arguments.end; ++number) {
    Mutator m(number);
    const size_t at = number % seeds.size(), other = m.below(seeds.size());
    const bool as_messages = messages[at] && messages[other] && m.below(4) > 0;
    const std::string bytes = as_messages ? WireMutator(m).mutant(*messages[at], *messages[other])
                                          : m.mutant(seeds[at], seeds[other]);
    begin_mutant(number, bytes);
    const TensorOutcome outcome = run_tensors(bytes);
    if (!outcome.problem.empty()) finding(cat("mutant ", number, ": ", outcome.problem));
    with_arrays += outcome.arrays > 0;
    arrays += outcome.arrays;
  }
  end_mutants();
  std::printf("%llu mutants: %ld had arrays, %ld in all; %ld findings\n",
              static_cast<unsigned long long>(arguments.count()), with_arrays, arrays,
              Bounds::findings);
  return Bounds::findings ? 1 : 0;
}
