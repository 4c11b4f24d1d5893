#include "bench/kernels/measure.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "codegen/llvm/emit.h"
#include "support/error.h"
#include "vm/executable/kernel_abi.h"

namespace tenon::bench {

using namespace loop;

namespace {

// Memory that kernels have used, for later calls.
struct Scratch {
  void* data;
  uint64_t bytes;
  bool used;
};
thread_local std::vector<Scratch> scratch;

struct Host : vm::KernelRuntime {
  Host() {
    abi_version = vm::kKernelAbiVersion;
    size = sizeof(vm::KernelRuntime);
    raise = [](const vm::KernelRuntime*, const char* kernel, vm::KernelError code, int32_t argument,
               int32_t axis, int64_t found, int64_t expected) -> int32_t {
      std::printf("%s: error %d, argument %d, axis %d, found %lld, expected %lld\n", kernel,
                  static_cast<int>(code), argument, axis, static_cast<long long>(found),
                  static_cast<long long>(expected));
      return 1;
    };
    parallel_for = [](const vm::KernelRuntime*, vm::KernelBody body, void* context, int64_t count,
                      int64_t) -> int32_t { return body(context, 0, count); };
    allocate = [](const vm::KernelRuntime*, const char*, uint64_t bytes) -> void* {
      for (Scratch& s : scratch) {
        if (s.used || s.bytes < bytes) continue;
        s.used = true;
        return s.data;
      }
      scratch.push_back({std::aligned_alloc(64, (bytes + 127) & ~uint64_t{63}), bytes, true});
      return scratch.back().data;
    };
    release = [](const vm::KernelRuntime*, void* data) {
      for (Scratch& s : scratch) s.used = s.used && s.data != data;
    };
    poll = [](const vm::KernelRuntime*) -> int32_t { return 0; };
  }
};

const vm::KernelTable* table_of(void* library) {
  return static_cast<const vm::KernelTable*>(dlsym(library, vm::kKernelTableSymbol));
}

}  // namespace

double seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double best_time(const std::function<void()>& run, double budget) {
  double best = 1e9, begin = seconds();
  for (int i = 0; i < 5 || seconds() - begin < budget; ++i) {
    double t = seconds();
    run();
    best = std::min(best, seconds() - t);
  }
  return best;
}

OpenedKernel::OpenedKernel(const KernelRef& kernel, const Sizes& sizes, std::string* text) {
  codegen::EmitOptions emit;
  if (text) {
    *text += to_text(*kernel);
    emit.assembly_text = text;
  }
  const double begin = seconds();
  std::vector<uint8_t> object = codegen::compile_kernels({kernel}, codegen::host_target(), emit);
  compile_seconds_ = seconds() - begin;
  file_ = memfd_create("kernels", MFD_CLOEXEC);
  if (write(file_, object.data(), object.size()) != static_cast<ssize_t>(object.size()))
    std::abort();
  library_ = dlopen(cat("/proc/self/fd/", file_).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) throw Error(ErrorKind::Internal, dlerror());
  for (const auto& list : {kernel->inputs, kernel->outputs}) {
    for (const auto& b : list) {
      std::vector<int64_t> shape;
      for (const Dim& d : b->shape) shape.push_back(*evaluate(d, sizes));
      Tensor t = Tensor::empty(shape, b->dtype);
      for (int64_t i = 0; i < t.count(); ++i) {
        if (b->dtype == f32) t.data_as<float>()[i] = static_cast<float>(i % 17) * 0.1f;
        if (b->dtype == i64) t.data_as<int64_t>()[i] = i * 37 % 1000;
      }
      arguments_.push_back(Any(t));
    }
  }
  for (const String& s : kernel->integers) arguments_.push_back(Any(*sizes(s.view())));
}

OpenedKernel::~OpenedKernel() {
  if (library_) dlclose(library_);
  close(file_);
}

void OpenedKernel::run() const {
  static Host host;
  Any result;
  if (table_of(library_)->entries[0].function(
          &host, arguments_.data(), static_cast<int32_t>(arguments_.size()), &result) != 0) {
    std::abort();
  }
}

double peak_flops() {
  constexpr int64_t kChains = 12, kSteps = 100000;
  const TargetFacts target = codegen::host_target().facts();
  const int64_t lanes = target.vector_bytes / 4;
  // Enough independent sums to hide the latency of one step. They approach b / (1 - a), so nothing
  // overflows or becomes denormal.
  auto x = buffer("x", f32, {lanes}), y = buffer("y", f32, {kChains * lanes}),
       acc = buffer("acc", f32, {kChains * lanes});
  auto lane = var("lane", i64), step = var("step", i64);
  const auto each = [&](const std::function<StmtRef(const ExprRef& place)>& body) {
    std::vector<StmtRef> all;
    for (int64_t c = 0; c < kChains; ++c) {
      const ExprRef place = binary(BinaryOp::kAdd, index(c * lanes), lane);
      all.push_back(for_loop(lane, index(0), index(lanes), ForKind::kVector, body(place)));
    }
    return seq(all);
  };
  const ExprRef a = load(x, {lane});
  const StmtRef begin = each([&](const ExprRef& p) { return store(acc, {p}, a); });
  const StmtRef steps = each([&](const ExprRef& p) {
    const ExprRef product = binary(BinaryOp::kMul, load(acc, {p}), literal(f32, 0.5));
    return store(acc, {p}, binary(BinaryOp::kAdd, product, a));
  });
  const StmtRef end = each([&](const ExprRef& p) { return store(y, {p}, load(acc, {p})); });
  auto kernel = make<Kernel>();
  kernel->name = "peak";
  kernel->inputs = {x};
  kernel->outputs = {y};
  kernel->in_bounds = true;
  kernel->body = alloc(
      acc, seq({begin, for_loop(step, index(0), index(kSteps), ForKind::kSerial, steps), end}));
  const OpenedKernel opened(kernel, [](std::string_view) { return std::nullopt; });
  return 2.0 * kChains * kSteps * double(lanes) / best_time([&] { opened.run(); });
}

}  // namespace tenon::bench
