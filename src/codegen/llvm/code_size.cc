#include "codegen/llvm/code_size.h"

#include "support/error.h"

namespace tenon::codegen {

namespace {

constexpr int64_t kMaxBlocks = 3 << 10, kMaxLive = 1 << 18, kMaxCost = int64_t{1} << 23;
constexpr int64_t kMaxParameters = 2048, kMaxSymbols = 1024;

constexpr std::string_view kShorter = "unroll less, or store values that several selects share";
constexpr std::string_view kFewer = "split it into kernels with fewer parameters";

}  // namespace

void CodeSize::require(int64_t found, int64_t most, std::string_view what,
                       std::string_view help) const {
  if (found <= most) return;
  throw Error(ErrorKind::Unsupported, cat("kernel '", kernel_.name, "' needs too much code"))
      .expected(cat("at most ", most, ' ', what))
      .help(help);
}

void CodeSize::add_block() {
  require(++blocks_, kMaxBlocks, "basic blocks, each copy counted", kShorter);
}

void CodeSize::require_few(int64_t blocks, int64_t sizes) const {
  require(blocks * sizes, kMaxLive, "basic blocks times sizes that it computes", kShorter);
}

void CodeSize::add_cost(int64_t cost) {
  cost_ += cost;
  require(cost_, kMaxCost, "units of cost, each copy counted", kShorter);
}

void CodeSize::add_parameters(size_t tensors_and_integers, size_t symbols) {
  require(static_cast<int64_t>(tensors_and_integers), kMaxParameters, "tensors and integers",
          kFewer);
  require(static_cast<int64_t>(symbols), kMaxSymbols, "symbols in the sizes of its tensors",
          kFewer);
}

}  // namespace tenon::codegen
