// Times convolutions of 3 by 3 in turns: as oneDNN computes them directly and the library by
// Winograd's algorithm, for the costs in src/library/onednn/winograd.cc, and, on
// one thread, the same three ways in kernels of the compiler, for src/loop/tiling.cc.
//
// Usage: bench_convolutions [THREADS [SECONDS_PER_ROW]]
//
// Between two calls, other memory passes through the caches, as the other layers of a model do; the
// image is then read, because a layer before has just written it. One thread's time is the
// processor's, since the machine may be shared.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <time.h>

#include "bench/kernels/measure.h"
#include "codegen/llvm/emit.h"
#include "device/parallel.h"
#include "library/onednn/kernel_sets.h"
#include "library/onednn/register.h"
#include "library/onednn/winograd.h"
#include "loop/convolution_testing.h"
#include "object/registry.h"

namespace {

using namespace tenon;  // NOLINT: a program of one file

struct Row {
  int64_t images, height, width, channels, filters, pad;
};

// VGG, ResNet-18 and -50, GoogLeNet, Inception v3, SSD and YOLO; then other batches.
constexpr Row kRows[] = {
    {1, 224, 224, 64, 64, 1}, {1, 112, 112, 64, 128, 1}, {1, 112, 112, 128, 128, 1},
    {1, 56, 56, 128, 256, 1}, {1, 56, 56, 256, 256, 1},  {1, 28, 28, 256, 512, 1},
    {1, 28, 28, 512, 512, 1}, {1, 14, 14, 512, 512, 1},  {1, 56, 56, 64, 64, 1},
    {1, 28, 28, 128, 128, 1}, {1, 14, 14, 256, 256, 1},  {1, 7, 7, 512, 512, 1},
    {1, 56, 56, 64, 192, 1},  {1, 28, 28, 96, 128, 1},   {1, 28, 28, 128, 192, 1},
    {1, 28, 28, 16, 32, 1},   {1, 28, 28, 32, 96, 1},    {1, 14, 14, 96, 208, 1},
    {1, 14, 14, 16, 48, 1},   {1, 14, 14, 32, 128, 1},   {1, 14, 14, 112, 224, 1},
    {1, 14, 14, 160, 320, 1}, {1, 7, 7, 160, 320, 1},    {1, 7, 7, 192, 384, 1},
    {1, 7, 7, 32, 128, 1},    {1, 147, 147, 32, 64, 1},  {1, 73, 73, 80, 192, 0},
    {1, 35, 35, 64, 96, 1},   {1, 35, 35, 96, 96, 1},    {1, 8, 8, 448, 384, 1},
    {1, 38, 38, 512, 512, 1}, {1, 19, 19, 256, 512, 1},  {1, 10, 10, 128, 256, 1},
    {1, 5, 5, 128, 256, 1},   {1, 80, 80, 64, 64, 1},    {1, 40, 40, 128, 128, 1},
    {1, 20, 20, 256, 256, 1}, {1, 13, 13, 512, 1024, 1}, {1, 26, 26, 256, 512, 1},
    {1, 160, 160, 16, 16, 1}, {1, 160, 160, 32, 32, 1},  {1, 56, 56, 16, 64, 1},
    {1, 17, 17, 64, 64, 1},   {1, 12, 12, 64, 64, 1},    {1, 10, 10, 64, 64, 1},
    {1, 10, 10, 512, 512, 1}, {1, 12, 12, 512, 512, 1},  {1, 17, 17, 512, 512, 1},
    {1, 20, 20, 512, 512, 1}, {4, 56, 56, 64, 64, 1},    {4, 28, 28, 128, 128, 1},
    {4, 14, 14, 256, 256, 1}, {4, 7, 7, 512, 512, 1},    {4, 14, 14, 512, 512, 1},
    {16, 7, 7, 512, 512, 1},
};

double milliseconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

Tensor random(std::vector<int64_t> shape, float scale) {
  static std::mt19937 engine(1);
  std::normal_distribution<float> distribution(0, scale);
  Tensor t = Tensor::empty(shape, f32);
  for (int64_t i = 0; i < t.count(); ++i) t.data_as<float>()[i] = distribution(engine);
  return t;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

class Caches {
 public:
  Caches() : other_(size_t{12} << 20, 1.f) {}
  void replace(const Tensor& image) {
    for (size_t i = 0; i < other_.size(); i += 16) other_[i] += 1;
    float sum = 0;
    for (int64_t i = 0; i < image.count(); i += 16) sum += image.data_as<float>()[i];
    other_[0] += sum;
  }

 private:
  std::vector<float> other_;
};

// A kernel of the compiler that computes the convolution in tiles of this size, or directly.
std::unique_ptr<bench::OpenedKernel> own_kernel(const Row& row, std::optional<int64_t> tile) {
  const int64_t cut = 2 - 2 * row.pad;
  loop::ScheduleOptions options;
  options.target = codegen::host_target().facts();
  options.winograd_tile = [&](const ConvolutionShape&) { return tile; };
  const auto panel = loop::worthwhile_panel(f32, row.filters, options.target);
  const loop::ConvolutionForm form = {
      {row.images, row.height - cut, row.width - cut, row.channels, row.filters},
      row.pad,
      panel.value_or(0)};
  const auto none = [](std::string_view) { return std::optional<int64_t>(); };
  return std::make_unique<bench::OpenedKernel>(
      loop::lower(*loop::convolution(form), "convolution", options), none);
}

void measure(const Row& row, double seconds, Caches* caches) {
  const int64_t cut = 2 - 2 * row.pad;
  const Tensor x = random({row.images, row.height, row.width, row.channels}, 1);
  const Tensor weights = random({3, 3, row.channels, row.filters}, 0.05f).as_constant();
  const Tensor bias = random({row.filters}, 1), none;
  const Tensor out = random({row.images, row.height - cut, row.width - cut, row.filters}, 1);
  const Shape ones({1, 1}), pads({row.pad, row.pad, row.pad, row.pad});
  const onednn::Convolution convolution{
      x, weights, bias, none, out, ones, ones, pads, 1, library::Activation::None, 0, 0, true};
  std::vector<std::function<void()>> ways = {[&] {
    function_named("onednn.convolution")(x, weights, bias, Any(), out, ones, ones, pads, int64_t{1},
                                         int64_t{0}, 0.0, 0.0, int64_t{0});
  }};
  for (const onednn::WinogradKernels& kernels : onednn::kernel_set().winograd)
    ways.emplace_back([&] { onednn::run_winograd(convolution, kernels); });
  std::vector<std::unique_ptr<bench::OpenedKernel>> own;
  if (threads_in_scope() == 1) {
    for (const std::optional<int64_t> tile : {std::optional<int64_t>(), {4}, {2}}) {
      own.push_back(own_kernel(row, tile));
      ways.emplace_back([&kernel = *own.back()] { kernel.run(); });
    }
  }
  std::vector<std::vector<double>> times(ways.size());
  for (auto& way : ways) way();
  const auto now = [] { return milliseconds(CLOCK_MONOTONIC); };
  const clockid_t clock = threads_in_scope() > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
  for (const double end = now() + seconds * 1000; now() < end || times[0].size() < 5;) {
    for (size_t i = 0; i < ways.size(); ++i) {
      caches->replace(x);
      const double start = milliseconds(clock);
      ways[i]();
      times[i].push_back(milliseconds(clock) - start);
    }
  }
  std::printf("%3ld x %3ldx%3ldx%4ld -> %4ld", static_cast<long>(row.images),
              static_cast<long>(row.height), static_cast<long>(row.width),
              static_cast<long>(row.channels), static_cast<long>(row.filters));
  const auto print = [&](size_t first, std::optional<int64_t> tile) {
    const double direct = median(times[first]), four = median(times[first + 1]),
                 two = median(times[first + 2]);
    const double taken = !tile ? direct : *tile == 4 ? four : two;
    std::printf(" | %8.3f %8.3f %5.2f %8.3f %5.2f %s %5.2f", direct, four, four / direct, two,
                two / direct,
                !tile        ? "direct"
                : *tile == 4 ? "4x4   "
                             : "2x2   ",
                taken / std::min({direct, four, two}));
  };
  const onednn::WinogradKernels* const chosen = onednn::choose_winograd(convolution);
  print(0, chosen ? std::optional<int64_t>(chosen->tile) : std::nullopt);
  if (!own.empty()) {
    print(3, loop::measured_winograd_tile(
                 {row.images, row.height - cut, row.width - cut, row.channels, row.filters}));
  }
  std::puts("");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  register_onednn();
  function_named("onednn.lend_threads")();
  if (onednn::kernel_set().winograd.empty()) {
    std::puts("this processor has no AVX2");
    return 1;
  }
  const ThreadsScope threads(argc > 1 ? std::atoi(argv[1]) : 1);
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.5;
  std::puts(
      "images x size x channels -> filters | the library: direct ms, 4x4 ms, ratio, 2x2 ms, ratio,"
      " chosen, to the best | the compiler's kernels: the same");
  Caches caches;
  for (const Row& row : kRows) measure(row, seconds, &caches);
}
