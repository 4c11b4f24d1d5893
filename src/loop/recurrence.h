// Kernels of whole loops: a Compute that is repeated, each turn with results of the one before.
//
//   for i in 0 .. turns:  next state, row i = step(state, i, other inputs)
//
// Beside what it is given, a turn reads its number and the state that the last one left. Of all
// turns, the last state remains, and the rows, which lie one after another.
//
//   an Elman network over x[t, m], whose products with x are p[t, n]:
//     counter i, state h[1, n] becomes y, rows y
//     stage sum[0, j] = sum over k < n of h[0, k] * r[k, j]
//     stage y[0, j]   = tanh(p[i, j] + sum[0, j])
#pragma once

#include "loop/compute.h"

namespace tenon::loop {

// The inputs are those of `step` without the counter; an input that is a state gives the first
// turn's. The outputs are the last states, in the order of `states`, then the rows: [turns, ...].
struct Recurrence : KernelInterface {
  ComputeRef step;               // a whole kernel
  Dim turns;                     // none if negative
  int64_t counter = kNoCounter;  // the input of `step` that is a turn's number: an i64 of rank 0
  // Pairs: an input of `step`, and the output that it is in the next turn. Of the same type.
  Array<Array<int64_t>> states;
  Array<int64_t> rows;  // outputs of `step` of which every turn's is kept

  static constexpr int64_t kNoCounter = -1;
  TENON_TYPE(TypeIndex::LoopRecurrence);
};
using RecurrenceRef = Ref<const Recurrence>;

// A Recurrence with the parameters that follow from its fields; accesses are trusted if the step's
// are. Throws an Internal error that names the rule that they break.
RecurrenceRef recurrence(const ComputeRef& step, const Dim& turns, int64_t counter,
                         Array<Array<int64_t>> states, Array<int64_t> rows);

// Throws an Internal error with the rule above that is broken, or if the parameters are others than
// those of recurrence().
void check(const Recurrence& recurrence);

}  // namespace tenon::loop
