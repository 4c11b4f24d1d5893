// onnx_mutants COUNT FIRST FILE.onnx...: makes mutants FIRST to FIRST + COUNT - 1 of the models,
// two thirds of them valid messages (wire_mutate.h), and processes each like a user's model
// (onnx_target.h); one in a hundred is also compiled and run. Exits with 0 if each gave a model or
// an error. Build it with a sanitizer preset.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "arguments.h"
#include "bounds.h"
#include "library/onednn/register.h"
#include "onnx_target.h"
#include "wire_mutate.h"

namespace {

using namespace tenon;
using namespace tenon::fuzz;

constexpr unsigned kSeconds = 60;
constexpr uint64_t kNativeEvery = 100;

struct Seed {
  std::string bytes, directory;
  std::vector<WireField> message;
};

std::vector<Seed> read_seeds(const std::vector<std::string>& files) {
  std::vector<Seed> seeds;
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    Seed seed;
    seed.bytes = std::string{std::istreambuf_iterator<char>(in), {}};
    seed.directory = std::filesystem::path(file).parent_path().string();
    auto message = WireReader::read(seed.bytes);
    if (!message || message->empty()) {
      std::fprintf(stderr, "left out %s: no message\n", file.c_str());
      continue;
    }
    seed.message = std::move(*message);
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = read_arguments(argc, argv);
  const std::vector<Seed> seeds = read_seeds(arguments.files);
  if (seeds.empty()) return 2;
  driver::initialise();
  register_onednn();
  set_bounds(kSeconds);

  long stages[6] = {};
  std::set<std::string> seen;
  for (uint64_t number = arguments.first; number < arguments.end; ++number) {
    // A mutant depends only on its number, so that it can be made again without the others.
    Mutator mutator(number);
    const Seed& base = seeds[mutator.below(seeds.size())];
    const Seed& other = seeds[mutator.below(seeds.size())];
    const std::string bytes = number % 3 ? WireMutator(mutator).mutant(base.message, other.message)
                                         : mutator.mutant(base.bytes, other.bytes);
    begin_mutant(number, bytes);
    OnnxTarget target;
    target.directory = base.directory;
    target.level = number % 8 ? 2 : 0;
    target.native = number % kNativeEvery == 0;
    const OnnxOutcome outcome = run_onnx(bytes, target);
    ++stages[static_cast<int>(outcome.stage)];
    if (!outcome.problem.empty() && seen.insert(outcome.problem).second) {
      finding(cat("mutant ", number, ": ", outcome.problem));
    }
  }
  end_mutants();
  std::printf(
      "%llu mutants: %ld refused, %ld read, %ld imported, %ld lowered, %ld compiled, %ld ran; %ld "
      "findings\n",
      static_cast<unsigned long long>(arguments.count()), stages[0], stages[1], stages[2],
      stages[3], stages[4], stages[5], Bounds::findings);
  return Bounds::findings ? 1 : 0;
}
