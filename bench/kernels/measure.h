// Running one kernel on one thread, over and over.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "loop/schedule.h"
#include "object/tensor.h"

namespace tenon::bench {

// This thread's own time: others on the machine don't count.
double seconds();
// The best time of several runs, within `budget` seconds or so.
double best_time(const std::function<void()>& run, double budget = 0.25);

// A kernel compiled for this machine and opened, with arguments of the sizes that its symbols have.
class OpenedKernel {
 public:
  using Sizes = std::function<std::optional<int64_t>(std::string_view symbol)>;
  // `text`, when not null, gets the loop nest and its assembly.
  OpenedKernel(const loop::KernelRef& kernel, const Sizes& sizes, std::string* text = nullptr);
  ~OpenedKernel();
  OpenedKernel(const OpenedKernel&) = delete;
  OpenedKernel& operator=(const OpenedKernel&) = delete;

  void run() const;
  double compile_seconds() const { return compile_seconds_; }

 private:
  void* library_ = nullptr;
  std::vector<Any> arguments_;
  double compile_seconds_ = 0;
};

// Multiplications and additions of f32 per second in registers, one thread: what no kernel exceeds.
double peak_flops();

}  // namespace tenon::bench
