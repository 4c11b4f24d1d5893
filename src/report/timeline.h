// A recording (support/trace.h) as intervals with names: what the writers of this folder write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "object/dtype.h"
#include "support/error.h"
#include "support/trace_recording.h"
#include "vm/interp/program.h"

namespace tenon::report {

// A tensor that was passed to a call.
struct Argument {
  DataType dtype;
  std::vector<int64_t> shape;
  bool is_constant = false;  // a weight of the program

  int64_t bytes() const;
};

// What a call of a kernel or packed function does.
struct Call {
  std::string op;      // the operators that it computes, such as "conv2d" or "relu_max_pool"
  std::string caller;  // the function whose code makes the call
  uint64_t site = 0;   // equal for calls from the same place in the code
  Span from;           // the source of that place, such as ONNX nodes (driver/shown_names.h)
  std::vector<Argument> inputs, outputs;
  std::optional<double> flops;  // unless unknown
  // Bytes of storage that the machine's call uses.
  int64_t storage_before = 0, storage_after = 0;

  int64_t bytes() const;  // of all these tensors, each read or written once
};

struct Interval {
  trace::Kind kind = trace::Kind::Phase;
  std::string name;
  size_t thread = 0;                 // of Timeline::threads
  int64_t begin_ns = 0, end_ns = 0;  // since the recording began
  int64_t parent = -1;               // the interval of the same thread around it, or -1
  // The interval that it continues, or -1: of a thread's part in a loop, the part of the thread
  // that began the loop; of a kernel's first call, the kernel's code generation.
  int64_t caused_by = -1;
  int64_t inner_ns = 0;      // in calls of kernels and packed functions directly within it
  std::string file;          // of an Entry: the program's name
  std::optional<Call> call;  // of a Kernel or Packed

  int64_t ns() const { return end_ns - begin_ns; }
};

// What the calls of a timeline have of names at most, in bytes. Calls of a loop share them.
inline constexpr size_t kMostCallText = size_t{64} << 20;

struct Timeline {
  int64_t ns = 0;                    // the recording's length
  std::vector<std::string> threads;  // names, in the order of their first events
  std::vector<Interval> intervals;   // by thread, in the order in which they began
  uint64_t dropped = 0;              // events that were not recorded, for lack of memory
  // Calls without `op`, `caller` and `from`, which don't fit kMostCallText.
  uint64_t without_source = 0;
};

// The program that the machine kept in a recording.
Ref<const vm::Program> program_of(const trace::Recording::Kept& kept);

Timeline read_timeline(const trace::Recording& recording);

// The calls of a kernel or packed function from one place in the code.
struct Layer {
  std::string name;  // of the kernel or packed function
  bool is_kernel = false;
  std::vector<int64_t> each_ns;  // of each call, without the calls within it
  int64_t total_ns = 0;
  Call first;                   // the first call
  int64_t bytes = 0;            // of all calls
  std::optional<double> flops;  // of all calls, unless one is unknown
};
// In the order of their first calls.
std::vector<Layer> layers_of(const Timeline& timeline);

}  // namespace tenon::report
