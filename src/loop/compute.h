// Compute descriptions: the result of an operator's lowering, and what fusion combines.
//
// A Compute defines every element of every buffer as a scalar expression; it has no loops, order or
// storage, which schedules (loop/schedule.h) add. It is a list of stages in dependency order; a
// stage reads the inputs and the results of earlier stages. Outputs are results of stages.
//
//   softmax over the last axis of x[n, m]:
//     stage top[i]    = max over k < m of x[i, k]
//     stage sum[i]    = sum over k < m of exp(x[i, k] - top[i])
//     stage y[i, j]   = exp(x[i, j] - top[i]) / sum[i]          output y
#pragma once

#include <iterator>
#include <string_view>

#include "loop/expr.h"
#include "loop/index_pair.h"

namespace tenon::loop {

enum class StageKind : uint8_t {
  kMap,      // out[axes] = body
  kReduce,   // out[axes] = reduction over reduce_axes of body
  kScan,     // along scan_axis in rising order: out[.., k, ..] = body, which may load `out` at
             // lower k; it guards the first element itself (Select)
  kScatter,  // first out[axes] = body everywhere; then for every point of reduce_axes, in row-major
             // order, out[scatter_indices] = combine(out[scatter_indices], update)
};

inline constexpr const char* kStageNames[] = {"map", "reduce", "scan", "scatter"};
static_assert(std::size(kStageNames) == static_cast<size_t>(StageKind::kScatter) + 1);

enum class Reduction : uint8_t {
  kNone,  // scatter only: the update replaces the element
  kSum,
  kProd,
  kMax,
  kMin,
  kAnd,
  kOr,
  kArgMaxFirst,
  kArgMaxLast,
  kArgMinFirst,
  kArgMinLast,  // one reduce axis; out is i64: its index
};
// The names in text.
inline constexpr const char* kReductionNames[] = {
    "set", "sum",          "prod",        "max",          "min",        "and",
    "or",  "argmax_first", "argmax_last", "argmin_first", "argmin_last"};
static_assert(std::size(kReductionNames) == static_cast<size_t>(Reduction::kArgMinLast) + 1);

struct Stage : Object {
  StageKind kind = StageKind::kMap;
  Ref<const Buffer> out;
  Array<Ref<const Var>> axes;  // one per dimension of out
  ExprRef body;

  Reduction reduction = Reduction::kNone;
  Array<Ref<const Var>> reduce_axes;
  Array<Dim> reduce_extents;
  // The dtype in which a kSum or kProd accumulates (f32 for f16): the body is converted to it, and
  // the result to out's dtype. void: the body's dtype. All other reductions have a body of out's
  // dtype.
  DataType accumulate;

  // A sum of products where one factor is `select(inside, x, 0)` for padding: the zeros may be left
  // out instead of multiplied, which only makes a difference next to an infinity or a NaN.
  bool padding_is_skippable = false;
  // Winograd's algorithm may compute the sum (rounding errors: docs/semantics.md). Only of
  // convolutions.
  bool may_use_winograd = false;

  int64_t scan_axis = 0;

  Array<ExprRef> scatter_indices;  // one per dimension of out, over reduce_axes
  ExprRef update;

  TENON_TYPE(TypeIndex::LoopStage);
};

// An output and an input that may share memory: every element is read before, and only for, the
// write of the same element.
struct InPlace : IndexPair {
  using IndexPair::IndexPair;
  int64_t output() const { return (*this)[0]; }
  int64_t input() const { return (*this)[1]; }
};

// A kernel as its callers see it. Derived types define its computation: a Compute, a Recurrence
// (loop/recurrence.h) or a loop nest (loop/kernel.h).
//
// The parameters are the input buffers, then the output buffers, then integers: the symbols that no
// parameter's dimension binds. A symbol that alone is a parameter's dimension is bound by that
// tensor; every other dimension must equal its expression, which the kernel's entry checks.
struct KernelInterface : Object {
  Array<Ref<const Buffer>> inputs;
  Array<Ref<const Buffer>> outputs;
  Array<String> integers;  // symbols passed as integers
  Array<InPlace> in_place;
  // Whether every access is within its buffer and no index overflows, by construction, as in
  // lowered operators. Not a reflected field, so that no external data can claim it: in all other
  // kernels, code checks each access and stops the kernel with an error.
  bool in_bounds = false;
  TENON_BASE_TYPE(TypeIndex::LoopKernelInterface, TypeIndex::LoopKernelInterfaceLast);
};
using KernelInterfaceRef = Ref<const KernelInterface>;

struct Compute : KernelInterface {
  Array<Ref<const Stage>> stages;

  TENON_TYPE(TypeIndex::LoopCompute);
};
using ComputeRef = Ref<const Compute>;

// A whole kernel: a Compute with `integers` and `in_place` derived from its stages. Integers are
// ordered by first appearance.
ComputeRef whole_kernel(Array<Ref<const Buffer>> inputs, Array<Ref<const Stage>> stages,
                        Array<Ref<const Buffer>> outputs, bool in_bounds);

// out[i...] = body(i...): the commonest case.
Ref<const Stage> map_stage(const Ref<const Buffer>& out,
                           const std::function<ExprRef(const std::vector<ExprRef>& indices)>& body);

// out[i...] = reduction over k... < extents of body(i..., k...).
Ref<const Stage> reduce_stage(
    const Ref<const Buffer>& out, Reduction reduction, const std::vector<Dim>& extents,
    const std::function<ExprRef(const std::vector<ExprRef>& indices,
                                const std::vector<ExprRef>& reduce_indices)>& body);

Ref<const Buffer> buffer(std::string_view name, DataType dtype, const std::vector<Dim>& shape);

// The indices into `b`, whose shape broadcasts to the space of `indices` (aligned at the last
// axis): 0 if the size is 1, a run-time choice if the broadcast isn't proved.
std::vector<ExprRef> broadcast_indices(const Ref<const Buffer>& b,
                                       const std::vector<ExprRef>& indices,
                                       const std::vector<Dim>& space);
// Loads the element at these.
ExprRef load_broadcast(const Ref<const Buffer>& b, const std::vector<ExprRef>& indices,
                       const std::vector<Dim>& space);

// A reduction's initial value in `dtype`; null for kNone and arg reductions.
ExprRef identity(Reduction reduction, DataType dtype);
// One step of a reduction; `acc` and `value` agree in dtype.
ExprRef combine(Reduction reduction, const ExprRef& acc, const ExprRef& value);
bool is_arg_reduction(Reduction reduction);
// Of an arg reduction: whether it finds the greatest element, otherwise the least; and whether
// among equals the last, otherwise the first.
bool finds_greatest(Reduction reduction);
bool finds_last(Reduction reduction);
// The accumulator dtype of a stage's reduction: `accumulate` for sums and products, otherwise the
// body's.
DataType accumulator_type(const Stage& stage);

// Throws an Internal error that names the stage that breaks a rule above.
void check(const Compute& compute);
// Also checks that `integers` and `in_place` are those of whole_kernel.
void check_whole(const Compute& compute);

std::string to_text(const Compute& compute);

}  // namespace tenon::loop
