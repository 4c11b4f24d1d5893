// Outputs: tensors of the host in which a call returns its results.
//
// Code writes a result there from the start where an alloc_result allocates it in the frame that
// the host entered. All others are copied there at the end: a result that is an argument or a
// constant, one that a called function or a branch made. Nothing is written before the end if an
// argument or a result may hold other values (an array, a function): what an argument refers to may
// overlap an output, and what a result refers to must not change when the host uses the output
// again.
#pragma once

#include <cstdint>
#include <span>

#include "object/tensor.h"
#include "vm/isa/unit.h"

namespace tenon::vm {

class Outputs {
 public:
  // An output per result of the function; None for a result that is to be allocated. They are
  // borrowed as long as this lives. A Usage error if their number is wrong, if one is not a
  // writable, compact tensor on the CPU that fits the result's type, or if one overlaps an argument
  // or another output.
  Outputs(const FunctionUnit& function, std::span<const AnyView> given,
          std::span<const AnyView> args);

  // The frame that the host enters, whose results these are.
  void enter(const void* frame) { frame_ = frame; }
  // The memory of an output as a tensor of that type, for alloc_result in `frame`; null in another
  // frame, if there is no output of that size, or if it was taken before.
  Tensor take(const void* frame, int64_t index, DataType dtype, std::span<const int64_t> dims);
  // The call's result with the outputs in place of the results, after copying those that are not
  // there yet. A Usage error if an output doesn't have the type of its result.
  Any filled(Any result);

 private:
  Tensor output(size_t i) const;  // null for none
  bool is_output(const Tensor& t) const;

  const FunctionUnit& function_;
  std::span<const AnyView> given_;  // by result
  static constexpr size_t kMostTaken = 64;
  uint64_t available_ = 0;  // of the first kMostTaken, a bit for each that is still to be taken
  const void* frame_ = nullptr;
};

}  // namespace tenon::vm
