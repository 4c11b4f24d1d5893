// For tests: runs a compute as it is scheduled, and as it is defined.
#pragma once

#include <gtest/gtest.h>

#include "loop/schedule.h"
#include "loop/tensors_testing.h"

namespace tenon::loop {

// Whether the shaped schedules agree with the compute, on targets of short and long vectors.
struct Agreement {
  std::mt19937 rng{11};

  void check(const ComputeRef& c, const std::vector<Tensor>& inputs, double tolerance = 1e-5) {
    for (int64_t bytes : {16, 64}) {
      ScheduleOptions options;
      options.target = {bytes, bytes >= 64 ? 32 : 16};
      KernelRef kernel = lower(*c, "k", options);
      std::vector<Tensor> found = evaluate(*kernel, inputs), expected = evaluate(*c, inputs);
      for (size_t i = 0; i < found.size(); ++i) {
        SCOPED_TRACE(to_text(*kernel));
        expect_close(found[i], expected[i], tolerance);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
  Tensor random(const std::vector<int64_t>& shape, DataType t = f32, int64_t below = 0) {
    return random_tensor(t, shape, &rng, below);
  }
};

}  // namespace tenon::loop
