// Kernels of whole loops: a Compute that is repeated, each iteration with results of the one
// before.
//
//   for i in 0 .. trip count:  next state, row i = step(state, i, other inputs)
//
// Beside the kernel's inputs, an iteration reads its number and the state that the last one left.
// The results are the last state, and the rows of all iterations, which lie one after another.
//
//   an Elman network over x[t, m], whose products with x are p[t, n]:
//     counter i, state h[1, n] becomes y, rows y
//     stage sum[0, j] = sum over k < n of h[0, k] * r[k, j]
//     stage y[0, j]   = tanh(p[i, j] + sum[0, j])
#pragma once

#include "loop/compute.h"

namespace tenon::loop {

// An input of the step, and the output that it is in the next iteration. Of the same type.
struct State : IndexPair {
  using IndexPair::IndexPair;
  int64_t input() const { return (*this)[0]; }
  int64_t output() const { return (*this)[1]; }
};

// The inputs are those of `step` without the counter; an input that is a state gives its value in
// the first iteration. The outputs are the last states, in the order of `states`, then the rows:
// [trip_count, ...].
struct Recurrence : KernelInterface {
  ComputeRef step;  // a whole kernel
  Dim trip_count;   // no iteration if negative
  // The input of `step` that is the iteration's number: an i64 of rank 0.
  int64_t counter = kNoCounter;
  Array<State> states;
  Array<int64_t> rows;  // outputs of `step` of which every iteration's is kept

  static constexpr int64_t kNoCounter = -1;
  TENON_TYPE(TypeIndex::LoopRecurrence);
};
using RecurrenceRef = Ref<const Recurrence>;

// A Recurrence with the parameters that follow from its fields; accesses are trusted if the step's
// are. Throws an Internal error that names the rule that they break.
RecurrenceRef recurrence(const ComputeRef& step, const Dim& trip_count, int64_t counter,
                         Array<State> states, Array<int64_t> rows);

// Throws an Internal error with the rule above that is broken, or if the parameters are others than
// those of recurrence().
void check(const Recurrence& recurrence);

}  // namespace tenon::loop
