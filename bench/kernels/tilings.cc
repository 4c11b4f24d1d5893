// Measures tilings of sums of products on this machine and writes the table that schedules choose
// from. It replaces the rows for this machine's kind of vector registers and keeps all others.
//
//   bench_tilings [--write src/loop/tilings.def]    without --write, prints the rows
//
// Each row is measured on the shapes listed with it; the best tiling has the lowest geometric mean
// of their times. Run it on an idle machine: changing a row changes every file that is compiled for
// such CPUs.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "bench/kernels/measure.h"
#include "codegen/llvm/target.h"
#include "loop/schedule.h"
#include "support/error.h"

namespace tenon {
namespace {

using namespace loop;

ComputeRef product(int64_t m, int64_t k, int64_t n) {
  auto a = buffer("a", f32, {m, k}), b = buffer("b", f32, {k, n}), y = buffer("y", f32, {m, n});
  auto stage = reduce_stage(
      y, Reduction::kSum, {k},
      [&](const std::vector<ExprRef>& i, const std::vector<ExprRef>& over) {
        return binary(BinaryOp::kMul, load(a, {i[0], over[0]}), load(b, {over[0], i[1]}));
      });
  return whole_kernel({a, b}, {stage}, {y}, /*in_bounds=*/true);
}

// 3x3, channels last, without padding; h and w are those of the result.
ComputeRef convolution(int64_t size, int64_t in, int64_t out) {
  auto x = buffer("x", f32, {size + 2, size + 2, in}), w = buffer("w", f32, {3, 3, in, out}),
       y = buffer("y", f32, {size, size, out});
  auto stage = reduce_stage(y, Reduction::kSum, {3, 3, in},
                            [&](const std::vector<ExprRef>& i, const std::vector<ExprRef>& k) {
                              return binary(BinaryOp::kMul,
                                            load(x, {binary(BinaryOp::kAdd, i[0], k[0]),
                                                     binary(BinaryOp::kAdd, i[1], k[1]), k[2]}),
                                            load(w, {k[0], k[1], k[2], i[2]}));
                            });
  return whole_kernel({x, w}, {stage}, {y}, /*in_bounds=*/true);
}

struct Row {
  const char* columns;  // in vectors, as in the table
  std::vector<ComputeRef> shapes;
};

std::vector<Row> rows(int64_t lanes) {
  return {{"1",
           {product(128, 256, lanes), product(1024, 64, lanes), convolution(28, 32, lanes),
            convolution(14, 128, lanes)}},
          {"kAny",
           {product(128, 768, 768), product(128, 3072, 768), product(784, 256, 128),
            product(49, 512, 2048), convolution(56, 64, 64), convolution(28, 128, 128),
            convolution(7, 512, 512)}}};
}

// The sum of logarithms of the shapes' times.
double cost(const Row& row, const Tiling& tiling, const TargetFacts& target) {
  ScheduleOptions options;
  options.target = target;
  options.tiling = [&](const ContractionShape&, const TargetFacts&) { return tiling; };
  double sum = 0;
  for (const ComputeRef& shape : row.shapes) {
    const bench::OpenedKernel kernel(lower(*shape, "k", options),
                                     [](std::string_view) { return std::nullopt; });
    sum += std::log(bench::best_time([&] { kernel.run(); }, 0.1));
  }
  return sum;
}

// Chooses first the register tile, then the block of a task with that tile.
Tiling best_tiling(const Row& row, const TargetFacts& target) {
  Tiling best;
  double least = HUGE_VAL;
  const auto try_one = [&](const Tiling& tiling) {
    const double now = cost(row, tiling, target);
    if (now < least) {
      least = now;
      best = tiling;
    }
  };
  for (int64_t vectors = 1; vectors <= 4; ++vectors) {
    for (int64_t tile_rows = 4; tile_rows <= 16; tile_rows += 2) {
      // Registers for the sums, a row of the right operand, and one element of the left operand.
      const int64_t registers = tile_rows * vectors + vectors + 1;
      if (registers > target.vector_registers || registers * 2 < target.vector_registers) continue;
      Tiling t;
      t.rows = tile_rows;
      t.vectors = vectors;
      try_one(t);
    }
  }
  const Tiling tile = best;
  for (int64_t row_tiles : {4, 8, 16}) {
    for (int64_t column_tiles : {4, 8, 16}) {
      Tiling t = tile;
      t.row_tiles = row_tiles;
      t.column_tiles = column_tiles;
      try_one(t);
    }
  }
  return best;
}

// How the rows of a target begin.
std::string target_text(const TargetFacts& target) {
  return cat("TENON_TILING(", target.vector_bytes, ", ", target.vector_registers, ", ");
}

std::string row_text(const Row& row, const TargetFacts& target, const Tiling& t) {
  return cat(target_text(target), row.columns, ", ", t.rows, ", ", t.vectors, ", ", t.row_tiles,
             ", ", t.column_tiles, ")\n");
}

void replace_rows(const std::string& path, const TargetFacts& target, const std::string& rows) {
  std::ifstream in(path);
  std::string line, kept;
  while (std::getline(in, line)) {
    if (!line.starts_with(target_text(target))) kept += line + "\n";
  }
  if (kept.find("TENON_TILING(vector bytes") == std::string::npos) {
    throw Error(ErrorKind::Usage, cat(path, " is not the table of tilings"));
  }
  std::ofstream(path, std::ios::trunc) << kept << rows;
}

void run(const std::string& path) {
  const TargetFacts target = codegen::host_target().facts();
  std::string text;
  for (const Row& row : rows(target.vector_bytes / 4)) {
    text += row_text(row, target, best_tiling(row, target));
    std::fprintf(stderr, "%s", text.c_str() + text.rfind("TENON_"));
  }
  if (path.empty()) {
    std::printf("%s", text.c_str());
  } else {
    replace_rows(path, target, text);
  }
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const bool writes = argc == 3 && std::string(argv[1]) == "--write";
  if (argc != 1 && !writes) {
    std::fprintf(stderr, "usage: bench_tilings [--write src/loop/tilings.def]\n");
    return 2;
  }
  try {
    tenon::run(writes ? argv[2] : "");
  } catch (const tenon::Error& e) {
    std::fprintf(stderr, "%s\n", e.render().c_str());
    return e.exit_code();
  }
  return 0;
}
