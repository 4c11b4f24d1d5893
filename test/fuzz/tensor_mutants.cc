// tensor_mutants COUNT FIRST FILE...: reads mutants FIRST to FIRST + COUNT - 1 of .npy files and
// .npz archives (tensor_target.h). Exits with 0 if each gave arrays or errors. Build it with a
// sanitizer preset.
#include <iterator>

#include "arguments.h"
#include "bounds.h"
#include "mutate.h"
#include "tensor_target.h"

int main(int argc, char** argv) {
  using namespace tenon;
  using namespace tenon::fuzz;
  constexpr unsigned kSeconds = 10;  // per mutant
  const Arguments arguments = read_arguments(argc, argv);
  std::vector<std::string> seeds;
  for (const std::string& file : arguments.files) {
    std::ifstream in(file, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    if (run_tensors(seeds.back()).arrays > 0) continue;
    std::fprintf(stderr, "%s has no array\n", file.c_str());
    return 2;
  }
  set_bounds(kSeconds);

  long with_arrays = 0, arrays = 0;
  for (uint64_t number = arguments.first; number < arguments.end; ++number) {
    Mutator m(number);
    const std::string& other = seeds[m.below(seeds.size())];
    const std::string bytes = m.mutant(seeds[number % seeds.size()], other);
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
