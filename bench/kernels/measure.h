// Runs one kernel repeatedly on one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "loop/schedule.h"
#include "object/tensor.h"

namespace tenon::bench {

// CPU time of this thread, since the machine may be shared.
double seconds();
// The best time of several runs, within about `budget` seconds.
double best_time(const std::function<void()>& run, double budget = 0.25);

// A kernel that is compiled for this machine and loaded, with arguments of the given sizes.
class OpenedKernel {
 public:
  using Sizes = std::function<std::optional<int64_t>(std::string_view symbol)>;
  // If not null, `text` receives the loop nest and its assembly.
  OpenedKernel(const loop::KernelRef& kernel, const Sizes& sizes, std::string* text = nullptr);
  ~OpenedKernel();
  OpenedKernel(const OpenedKernel&) = delete;
  OpenedKernel& operator=(const OpenedKernel&) = delete;

  void run() const;
  double compile_seconds() const { return compile_seconds_; }

 private:
  int file_ =
      -1;  // open while the library is, because dlopen takes a path for a library's identity
  void* library_ = nullptr;
  std::vector<Any> arguments_;
  double compile_seconds_ = 0;
};

// Multiplications and additions of f32 per second in registers, on one thread: an upper bound for
// kernels.
double peak_flops();

}  // namespace tenon::bench
