// How fast this machine can compute and read memory: the roofline of kernels.
#pragma once

#include <cstdint>
#include <optional>

namespace tenon::report {

struct Peak {
  double flops_per_second = 0;  // f32 multiplications and additions
  double bytes_per_second = 0;  // read from memory
};

// Measures both in about 60 ms with so many threads; 0 for all that the process may use.
Peak measure_peak(int32_t threads);

// The least time that the work can take over the time that it took: 1 is the roofline. More than 1
// is possible if data was in caches. Without `flops`, only memory is considered; nullopt if nothing
// can be said.
std::optional<double> share_of_roofline(const std::optional<double>& flops, int64_t bytes,
                                        int64_t ns, const Peak& peak);

}  // namespace tenon::report
