#include "range_program.h"

#include <algorithm>
#include <cmath>

#include "check_program.h"
#include "evaluate/reference_evaluator.h"
#include "object/tensor.h"
#include "range_maker.h"

namespace tenon::random_programs {
namespace {

using namespace graph;  // NOLINT: this file uses only graph IR

// How many runs are perturbed, and by how many times their greatest difference others may differ:
// rounding errors add up where the perturbations of a run happen to cancel.
struct Perturbation {
  int runs;
  double slack;
};
constexpr Perturbation kOfFloats = {5, 16};
constexpr Perturbation kOfIntegers = {15, 4};  // which only change near a tie

}  // namespace

RangeProgram range_program(uint64_t seed) {
  ReferenceEvaluator evaluator(codegen::baseline_target(), KernelMode::kWalked);
  const auto run = [&](const graph::Module& module, const std::vector<Any>& inputs) {
    return evaluator.run(module, *module->functions.find("main"), inputs);
  };
  bool large = false;
  evaluator.state().observer = [&](const Binding&, const Any& value) {
    const auto t = value.try_as<Tensor>();
    if (!t || t->dtype() != f32) return;
    for (int64_t i = 0; i < t->count(); ++i) {
      large |= !(std::fabs(t->data_as<float>()[i]) <= 2 * kGreatest);
    }
  };
  for (uint64_t attempt = 0;; ++attempt) {
    const uint64_t number = seed + (attempt << 40);
    RangeMaker maker(number, nullptr);
    RangeProgram out;
    out.module = maker.make();
    out.inputs = maker.inputs();
    large = false;
    const std::vector<Any> expected = run(out.module, out.inputs);
    for (const Any& result : expected) {
      out.allowed.emplace_back(static_cast<size_t>(result.as<Tensor>().count()));
    }
    Random shakes(number);
    const auto& [runs, slack] = maker.quantises() ? kOfIntegers : kOfFloats;
    for (int k = 0; k < runs && !large; ++k) {
      const std::vector<Any> found = run(RangeMaker(number, &shakes).make(), out.inputs);
      for (size_t i = 0; i < expected.size(); ++i) {
        const Tensor x = expected[i].as<Tensor>(), y = found[i].as<Tensor>();
        for (size_t j = 0; j < out.allowed[i].size(); ++j) {
          const double v = x.data_as<float>()[j];
          const double rounding = slack * std::fabs(y.data_as<float>()[j] - v) +
                                  4 * kUnit * std::fabs(v) + 4 * 0x1p-149;
          out.allowed[i][j] = std::max(out.allowed[i][j], rounding);
        }
      }
    }
    if (!large) return out;
  }
}

std::string find_difference(const RangeProgram& program) {
  // Winograd's convolutions have other errors (docs/semantics.md).
  return find_difference(program.module, program.inputs,
                         {.levels = {1, 2, 3},
                          .may_fail = false,
                          .direct_convolutions = true,
                          .allowed = program.allowed});
}

}  // namespace tenon::random_programs
