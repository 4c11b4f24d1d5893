// Schedules: from what is computed (a Compute) to in which order (a Kernel).
#pragma once

#include <string>

#include "loop/kernel.h"

namespace tenon::loop {

struct ScheduleOptions {
  std::string name;  // of the kernel
  // 0: plain loops in the order of the stages, each stage in scratch of its own; the oracle.
  // 1: the schedules that fit the shape of the Compute.
  int level = 1;
  int64_t vector_bytes = 32;  // of one vector register of the target
  int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20;
};

// Symbols that no parameter's dimension binds alone become the kernel's integers, by name in the
// order of first appearance.
KernelRef schedule(const Compute& compute, const ScheduleOptions& options);

}  // namespace tenon::loop
