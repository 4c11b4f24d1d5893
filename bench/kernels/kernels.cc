// Measures schedules on one thread: the best time of several for each kernel, with its arithmetic
// and memory rates, for constant and for symbolic sizes. The last lines give this machine's copy
// and multiply-add rates from the same run, for comparison.
//
//   bench_kernels [WORD] [--text]    kernels whose name contains WORD; --text prints them
//   bench_kernels --peak             only the multiply-add rate, in GFLOP/s
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>

#include "bench/kernels/measure.h"
#include "codegen/llvm/target.h"
#include "loop/inline_stages.h"
#include "loop/schedule.h"
#include "support/error.h"

namespace tenon {
namespace {

using namespace loop;
using Indices = std::vector<ExprRef>;
using BufferRef = Ref<const Buffer>;

ExprRef operator+(const ExprRef& a, const ExprRef& b) {
  return binary(BinaryOp::kAdd, a, b);
}
ExprRef operator-(const ExprRef& a, const ExprRef& b) {
  return binary(BinaryOp::kSub, a, b);
}
ExprRef operator*(const ExprRef& a, const ExprRef& b) {
  return binary(BinaryOp::kMul, a, b);
}
ExprRef operator/(const ExprRef& a, const ExprRef& b) {
  return binary(BinaryOp::kDiv, a, b);
}
ExprRef at(const BufferRef& b, const Indices& i) {
  return load(b, Array<ExprRef>(i));
}
ExprRef number(double v) {
  return literal(f32, v);
}

ComputeRef compute_of(std::vector<BufferRef> inputs, std::vector<Ref<const Stage>> stages,
                      std::vector<BufferRef> outputs) {
  return whole_kernel(Array<BufferRef>(inputs), Array<Ref<const Stage>>(stages),
                      Array<BufferRef>(outputs), /*in_bounds=*/true);
}

// A compute for given sizes; `flops` and `bytes` are those of one run.
struct Case {
  std::string name;
  std::vector<int64_t> sizes;
  double flops, bytes;
  std::function<ComputeRef(const std::vector<Dim>& d)> build;
};

ComputeRef add(const std::vector<Dim>& d) {
  auto x = buffer("x", f32, d), y = buffer("y", f32, d), z = buffer("z", f32, d);
  return compute_of({x, y}, {map_stage(z, [&](const Indices& i) { return at(x, i) + at(y, i); })},
                    {z});
}
ComputeRef bias_gelu(const std::vector<Dim>& d) {
  auto x = buffer("x", f32, d), b = buffer("b", f32, {d[1]}), z = buffer("z", f32, d);
  return compute_of({x, b},
                    {map_stage(z,
                               [&](const Indices& i) {
                                 ExprRef v = at(x, i) + at(b, {i[1]});
                                 ExprRef e = unary(UnaryOp::kErf, v * number(0.70710678));
                                 return v * number(0.5) * (number(1) + e);
                               })},
                    {z});
}
ComputeRef exponential(const std::vector<Dim>& d) {
  auto x = buffer("x", f32, d), z = buffer("z", f32, d);
  return compute_of(
      {x}, {map_stage(z, [&](const Indices& i) { return unary(UnaryOp::kExp, at(x, i)); })}, {z});
}
ComputeRef softmax(const std::vector<Dim>& d) {
  auto x = buffer("x", f32, d), top = buffer("top", f32, {d[0]}), s = buffer("sum", f32, {d[0]}),
       y = buffer("y", f32, d);
  auto e = [&](const Indices& i) { return unary(UnaryOp::kExp, at(x, i) - at(top, {i[0]})); };
  return compute_of({x},
                    {reduce_stage(top, Reduction::kMax, {d[1]},
                                  [&](const Indices& i, const Indices& k) {
                                    return at(x, {i[0], k[0]});
                                  }),
                     reduce_stage(s, Reduction::kSum, {d[1]},
                                  [&](const Indices& i, const Indices& k) {
                                    return e({i[0], k[0]});
                                  }),
                     map_stage(y, [&](const Indices& i) { return e(i) / at(s, {i[0]}); })},
                    {y});
}
ComputeRef layer_norm(const std::vector<Dim>& d) {
  auto x = buffer("x", f32, d), g = buffer("g", f32, {d[1]}), b = buffer("b", f32, {d[1]}),
       s = buffer("sum", f32, {d[0]}), mean = buffer("mean", f32, {d[0]}),
       q = buffer("squares", f32, {d[0]}), inv = buffer("inv", f32, {d[0]}),
       y = buffer("y", f32, d);
  ExprRef count = cast(f32, dim_value(d[1]));
  auto off = [&](const Indices& i) { return at(x, i) - at(mean, {i[0]}); };
  return compute_of({x, g, b},
                    {reduce_stage(s, Reduction::kSum, {d[1]},
                                  [&](const Indices& i, const Indices& k) {
                                    return at(x, {i[0], k[0]});
                                  }),
                     map_stage(mean, [&](const Indices& i) { return at(s, i) / count; }),
                     reduce_stage(q, Reduction::kSum, {d[1]},
                                  [&](const Indices& i, const Indices& k) {
                                    ExprRef o = off({i[0], k[0]});
                                    return o * o;
                                  }),
                     map_stage(inv,
                               [&](const Indices& i) {
                                 return number(1) /
                                        unary(UnaryOp::kSqrt, at(q, i) / count + number(1e-5));
                               }),
                     map_stage(y,
                               [&](const Indices& i) {
                                 return off(i) * at(inv, {i[0]}) * at(g, {i[1]}) + at(b, {i[1]});
                               })},
                    {y});
}
ComputeRef transpose(const std::vector<Dim>& d) {
  auto x = buffer("x", f32, d), y = buffer("y", f32, {d[1], d[0]});
  return compute_of({x},
                    {map_stage(y,
                               [&](const Indices& i) {
                                 return at(x, {i[1], i[0]});
                               })},
                    {y});
}
ComputeRef heads(const std::vector<Dim>& d) {
  auto x = buffer("x", f32, d), y = buffer("y", f32, {d[1], d[0], d[2]});
  return compute_of({x},
                    {map_stage(y,
                               [&](const Indices& i) {
                                 return at(x, {i[1], i[0], i[2]});
                               })},
                    {y});
}
ComputeRef gather(const std::vector<Dim>& d) {
  auto x = buffer("x", f32, {d[0], d[1]}), r = buffer("r", i64, {d[2]}),
       y = buffer("y", f32, {d[2], d[1]});
  return compute_of({x, r},
                    {map_stage(y,
                               [&](const Indices& i) {
                                 return at(x, {checked_index(at(r, {i[0]}), d[0]), i[1]});
                               })},
                    {y});
}
ComputeRef sum_last(const std::vector<Dim>& d) {
  auto x = buffer("x", f32, d), y = buffer("y", f32, {d[0]});
  return compute_of({x},
                    {reduce_stage(y, Reduction::kSum, {d[1]},
                                  [&](const Indices& i, const Indices& k) {
                                    return at(x, {i[0], k[0]});
                                  })},
                    {y});
}
ComputeRef sum_first(const std::vector<Dim>& d) {
  auto x = buffer("x", f32, d), y = buffer("y", f32, {d[1]});
  return compute_of({x},
                    {reduce_stage(y, Reduction::kSum, {d[0]},
                                  [&](const Indices& i, const Indices& k) {
                                    return at(x, {k[0], i[0]});
                                  })},
                    {y});
}
// [m, k] x [k, n] + bias
ComputeRef matmul(const std::vector<Dim>& d) {
  auto a = buffer("a", f32, {d[0], d[1]}), b = buffer("b", f32, {d[1], d[2]}),
       c = buffer("c", f32, {d[2]}), p = buffer("p", f32, {d[0], d[2]}),
       y = buffer("y", f32, {d[0], d[2]});
  return compute_of({a, b, c},
                    {reduce_stage(p, Reduction::kSum, {d[1]},
                                  [&](const Indices& i, const Indices& k) {
                                    return at(a, {i[0], k[0]}) * at(b, {k[0], i[1]});
                                  }),
                     map_stage(y, [&](const Indices& i) { return at(p, i) + at(c, {i[1]}); })},
                    {y});
}
// [h, m, k] x [h, n, k]
ComputeRef scores(const std::vector<Dim>& d) {
  auto a = buffer("a", f32, {d[0], d[1], d[2]}), b = buffer("b", f32, {d[0], d[3], d[2]}),
       y = buffer("y", f32, {d[0], d[1], d[3]});
  return compute_of({a, b},
                    {reduce_stage(y, Reduction::kSum, {d[2]},
                                  [&](const Indices& i, const Indices& k) {
                                    return at(a, {i[0], i[1], k[0]}) * at(b, {i[0], i[2], k[0]});
                                  })},
                    {y});
}
ExprRef inside(const ExprRef& i, const Dim& n) {
  return binary(BinaryOp::kAnd, binary(BinaryOp::kLe, index(0), i),
                binary(BinaryOp::kLt, i, dim_value(n)));
}
// 3x3 with padding 1, stride 1, channels last: h, w, in, out
ComputeRef conv(const std::vector<Dim>& d) {
  auto x = buffer("x", f32, {d[0], d[1], d[2]}), w = buffer("w", f32, {3, 3, d[2], d[3]}),
       p = buffer("p", f32, {d[0], d[1], d[3]}), y = buffer("y", f32, {d[0], d[1], d[3]});
  return compute_of(
      {x, w},
      {reduce_stage(
           p, Reduction::kSum, {3, 3, d[2]},
           [&](const Indices& i, const Indices& k) {
             ExprRef r = i[0] + k[0] - index(1), c = i[1] + k[1] - index(1);
             ExprRef in = binary(BinaryOp::kAnd, inside(r, d[0]), inside(c, d[1]));
             return select(in, at(x, {r, c, k[2]}), number(0)) * at(w, {k[0], k[1], k[2], i[2]});
           }),
       map_stage(y, [&](const Indices& i) { return binary(BinaryOp::kMax, at(p, i), number(0)); })},
      {y});
}
ComputeRef depthwise(const std::vector<Dim>& d) {
  auto x = buffer("x", f32, d), w = buffer("w", f32, {3, 3, d[2]}), p = buffer("p", f32, d),
       y = buffer("y", f32, d);
  return compute_of(
      {x, w},
      {reduce_stage(p, Reduction::kSum, {3, 3},
                    [&](const Indices& i, const Indices& k) {
                      ExprRef r = i[0] + k[0] - index(1), c = i[1] + k[1] - index(1);
                      ExprRef in = binary(BinaryOp::kAnd, inside(r, d[0]), inside(c, d[1]));
                      return select(in, at(x, {r, c, i[2]}), number(0)) * at(w, {k[0], k[1], i[2]});
                    }),
       map_stage(y, [&](const Indices& i) { return binary(BinaryOp::kMax, at(p, i), number(0)); })},
      {y});
}
ComputeRef max_pool(const std::vector<Dim>& d) {
  Dim oh = floordiv(d[0] - Dim(1), Dim(2)) + Dim(1), ow = floordiv(d[1] - Dim(1), Dim(2)) + Dim(1);
  auto x = buffer("x", f32, d), y = buffer("y", f32, {oh, ow, d[2]});
  return compute_of({x},
                    {reduce_stage(y, Reduction::kMax, {3, 3},
                                  [&](const Indices& i, const Indices& k) {
                                    ExprRef r = i[0] * index(2) + k[0] - index(1),
                                            c = i[1] * index(2) + k[1] - index(1);
                                    ExprRef in =
                                        binary(BinaryOp::kAnd, inside(r, d[0]), inside(c, d[1]));
                                    return select(in, at(x, {r, c, i[2]}), lowest(f32));
                                  })},
                    {y});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  auto put = [&](const char* name, std::vector<int64_t> s, double flops, double floats,
                 auto build) {
    all.push_back({name, std::move(s), flops, floats * 4, build});
  };
  double e = 1 << 20;
  put("add", {1024, 1024}, e, 3 * e, add);
  put("add_small", {128, 768}, 98304, 3 * 98304.0, add);
  put("exp", {1024, 256}, e / 4, e / 2, exponential);
  put("bias_gelu", {128, 3072}, 393216, 2 * 393216.0, bias_gelu);
  put("softmax_128", {1536, 128}, 196608, 2 * 196608.0, softmax);
  put("softmax_1000", {64, 1000}, 64000, 2 * 64000.0, softmax);
  put("layer_norm", {128, 768}, 98304, 2 * 98304.0, layer_norm);
  put("transpose", {512, 768}, 0, 2 * 393216.0, transpose);
  put("transpose_pow2", {1024, 1024}, 0, 2 * e, transpose);
  put("heads", {128, 12, 64}, 0, 2 * 98304.0, heads);
  put("gather", {30000, 768, 128}, 0, 2 * 98304.0, gather);
  put("sum_last", {1024, 1000}, 1024000, 1024000, sum_last);
  put("sum_first", {1024, 1000}, 1024000, 1024000, sum_first);
  put("max_pool", {112, 112, 64}, 9.0 * 56 * 56 * 64, 112.0 * 112 * 64 * 1.25, max_pool);
  auto mm = [&](const char* name, int64_t m, int64_t k, int64_t n) {
    double x = double(m), y = double(k), z = double(n);
    put(name, {m, k, n}, 2 * x * y * z, x * y + y * z + x * z, matmul);
  };
  mm("matmul_128_768_768", 128, 768, 768);
  mm("matmul_128_768_3072", 128, 768, 3072);
  mm("matmul_128_3072_768", 128, 3072, 768);
  mm("matmul_3136_64_256", 3136, 64, 256);
  mm("matmul_49_512_2048", 49, 512, 2048);
  mm("matmul_1_2048_1000", 1, 2048, 1000);
  put("scores", {12, 128, 64, 128}, 2.0 * 12 * 128 * 128 * 64, 12.0 * 128 * 256, scores);
  auto cv = [&](const char* name, int64_t s, int64_t c) {
    double p = double(s * s), q = double(c);
    put(name, {s, s, c, c}, 2 * p * q * q * 9, 2 * p * q + 9 * q * q, conv);
  };
  cv("conv_56_64", 56, 64);
  cv("conv_28_128", 28, 128);
  cv("conv_14_256", 14, 256);
  cv("conv_7_512", 7, 512);
  put("depthwise_112_32", {112, 112, 32}, 18.0 * 112 * 112 * 32, 2.0 * 112 * 112 * 32, depthwise);
  put("depthwise_14_576", {14, 14, 576}, 18.0 * 14 * 14 * 576, 2.0 * 14 * 14 * 576, depthwise);
  return all;
}

// ---- running

double compile_seconds;  // of the last kernel

double measure(const Case& c, bool symbolic, bool print) {
  std::vector<Dim> dims;
  for (size_t i = 0; i < c.sizes.size(); ++i) {
    dims.push_back(symbolic ? Dim::symbol(cat("d", i)) : Dim(c.sizes[i]));
  }
  ScheduleOptions options;
  options.target = codegen::host_target().facts();
  const auto size = [&](std::string_view s) -> std::optional<int64_t> {
    return c.sizes[static_cast<size_t>(std::stoi(std::string(s.substr(1))))];
  };
  std::string text;
  const bench::OpenedKernel kernel(lower(*inline_stages(c.build(dims)), c.name, options), size,
                                   print ? &text : nullptr);
  std::printf("%s", text.c_str());
  compile_seconds = kernel.compile_seconds();
  return bench::best_time([&] { kernel.run(); });
}

void machine() {
  std::vector<float> a(1 << 18), b(1 << 18);
  double t = bench::best_time([&] { std::memcpy(b.data(), a.data(), a.size() * 4); });
  std::printf("memcpy, 1 MB               %8.1f GB/s read and written\n",
              2 * 4.0 * double(a.size()) / t / 1e9);
  std::printf("multiply-add in registers  %8.1f GFLOP/s\n", bench::peak_flops() / 1e9);
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  using namespace tenon;
  std::string word;
  bool print = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--peak") {
      std::printf("%.1f\n", bench::peak_flops() / 1e9);
      return 0;
    }
    if (std::string(argv[i]) == "--text") {
      print = true;
    } else {
      word = argv[i];
    }
  }
  try {
    std::printf("%-22s %10s %9s %8s %10s %6s %10s\n", "kernel", "us", "GFLOP/s", "GB/s", "symbolic",
                "ratio", "compile ms");
    for (const Case& c : cases()) {
      if (c.name.find(word) == std::string::npos) continue;
      double fixed = measure(c, false, print), symbolic = measure(c, true, print);
      std::printf("%-22s %10.1f %9.1f %8.1f %10.1f %6.2f %10.1f\n", c.name.c_str(), fixed * 1e6,
                  c.flops / fixed / 1e9, c.bytes / fixed / 1e9, symbolic * 1e6, symbolic / fixed,
                  compile_seconds * 1e3);
      std::fflush(stdout);
    }
    machine();
  } catch (const Error& e) {
    std::printf("%s\n", e.render().c_str());
    return e.exit_code();
  }
  return 0;
}
