// All library functions that a program may call by name: those of the runtime (src/vm/builtin and
// src/library/core) and those of libraries that a file names.
//
// Callers (operators, offers, the emitter) and implementations use the same rows and look up
// positions with `argument`. docs/packed-functions.md is generated from this table.
#pragma once

#include <algorithm>
#include <span>
#include <string>

#include "library/signatures/learned.h"
#include "library/signatures/signature.h"

namespace tenon::library {

// What oneDNN applies after a convolution or product; Clip clips to [alpha, beta]. Files contain
// these numbers, so they never change.
enum class Activation : int64_t { None, Relu, Clip, Sigmoid, Tanh };
inline constexpr std::string_view kActivationNames[] = {"none", "relu", "clip", "sigmoid", "tanh"};
inline constexpr Choices kActivations{kActivationNames, std::size(kActivationNames)};

namespace detail {
constexpr Parameter tensor(std::string_view name) {
  return {name};
}
constexpr Parameter optional(std::string_view name) {
  return {name, ValueKind::Tensor, true};
}
constexpr Parameter integer(std::string_view name) {
  return {name, ValueKind::Int};
}
constexpr Parameter truth(std::string_view name) {
  return {name, ValueKind::Bool};
}
constexpr Parameter number(std::string_view name) {
  return {name, ValueKind::Float};
}
constexpr Parameter shape(std::string_view name) {
  return {name, ValueKind::Shape};
}
constexpr Parameter array(std::string_view name) {
  return {name, ValueKind::Array};
}
constexpr Parameter any(std::string_view name) {
  return {name, ValueKind::Any};
}
constexpr Parameter text(std::string_view name) {
  return {name, ValueKind::String};
}
constexpr Parameter dtype(std::string_view name) {
  return {name, ValueKind::Dtype};
}
constexpr Parameter choice(std::string_view name, Choices choices) {
  return {name, ValueKind::Choice, false, choices};
}

// clang-format off: keeps the rows readable
inline constexpr Signature kTable[] = {
    // ---- the machine: src/vm/builtin ----
    {.name = "vm.tensor_copy",
     .operands = {tensor("x")},
     .results = {tensor("copy")},
     .for_files = true,
     .summary = "a copy of a compact tensor, in memory of its own"},
    {.name = "vm.tensor_copy_to",
     .operands = {tensor("from"), tensor("to")},
     .effect = Effect::Ordered,
     .for_files = true,
     .summary = "copies the elements of one tensor into another of its dtype and shape"},
    {.name = "vm.shape_to_tensor",
     .operands = {shape("shape")},
     .results = {tensor("dims")},
     .for_files = true,
     .summary = "the dimensions as i64[rank]"},
    {.name = "vm.tensor_to_shape",
     .operands = {tensor("dims")},
     .results = {shape("shape")},
     .for_files = true,
     .summary = "the shape whose dimensions are the elements of an i64[n]"},
    {.name = "vm.array_size",
     .operands = {array("array")},
     .results = {integer("size")},
     .for_files = true,
     .summary = "the number of elements of an array"},
    {.name = "vm.array_get",
     .operands = {array("array"), integer("index")},
     .results = {any("element")},
     .for_files = true,
     .summary = "the element at an index"},
    {.name = "vm.array_append",
     .operands = {array("array"), any("value")},
     .results = {array("longer")},
     .keeps_arguments = true,
     .for_files = true,
     .summary = "the array with a value appended; in place at the last use of its "
                "only owner"},
    {.name = "vm.array_set",
     .operands = {array("array"), integer("index"), {"value", ValueKind::Any, true}},
     .results = {array("changed")},
     .keeps_arguments = true,
     .for_files = true,
     .summary = "the array with another element at an index, None if it is absent; in place at "
                "the last use of its only owner"},
    {.name = "vm.array_empty",
     .results = {array("array")},
     .for_files = true,
     .summary = "an array without elements"},
    {.name = "vm.array_slice",
     .operands = {array("array"), integer("start"), integer("end")},
     .results = {array("slice")},
     .keeps_arguments = true,
     .for_files = true,
     .summary = "the elements from `start` up to `end`"},
    {.name = "vm.array_concat",
     .operands = {array("a"), array("b")},
     .results = {array("both")},
     .keeps_arguments = true,
     .for_files = true,
     .summary = "the elements of a, then those of b; in place at the last use of a's only owner"},
    {.name = "vm.string_equal",
     .operands = {any("a"), any("b")},
     .results = {truth("equal")},
     .for_files = true,
     .summary = "whether two strings have the same bytes"},
    {.name = "vm.string_concat",
     .operands = {any("a"), any("b")},
     .results = {any("both")},
     .for_files = true,
     .summary = "the bytes of a, then those of b"},
    {.name = "vm.check_returned",
     .operands = {any("value"), any("type"), any("function")},
     .results = {any("value")},
     .effect = Effect::Ordered,
     .for_files = true,
     .summary = "the function's result, of that type, or an error"},

    // ---- the core library: src/library/core ----
    {.name = "tenon.append",
     .operands = {tensor("x"), tensor("row")},
     .results = {tensor("longer")},
     .keeps_arguments = true,
     .for_files = true,
     .summary = "x with the row appended; in place at the last use of its only owner"},
    {.name = "tenon.shape.reshape",
     .operands = {tensor("shape"), tensor("x_shape")},
     .results = {tensor("dims")},
     .attributes = {truth("allowzero")},
     .for_files = true,
     .summary = "the dimensions of a reshape whose shape may contain -1 and 0"},
    {.name = "tenon.shape.slice",
     .operands = {tensor("x_shape"), tensor("starts"), tensor("ends"), optional("axes"),
                  optional("steps")},
     .results = {tensor("starts"), tensor("sizes"), tensor("steps")},
     .for_files = true,
     .summary = "i64[rank] each: the first elements, sizes and steps of a slice"},
    {.name = "tenon.shape.range_count",
     .operands = {tensor("start"), tensor("limit"), tensor("delta")},
     .results = {tensor("count")},
     .for_files = true,
     .summary = "max(0, ceil((limit - start) / delta)), i64 of rank 0"},

    // ---- algorithms on tensors: src/library/algorithms ----
    {.name = "tenon.nonzero",
     .library = "algorithms",
     .operands = {tensor("x")},
     .results = {tensor("indices")},
     .for_files = true,
     .summary = "i64[rank, count]: the index of each element that is not 0"},
    {.name = "tenon.topk",
     .library = "algorithms",
     .operands = {tensor("x")},
     .results = {tensor("values"), tensor("indices")},
     .attributes = {integer("k"), integer("axis"), truth("largest"), truth("sorted")},
     .for_files = true,
     .summary = "the k greatest or least elements along an axis, and their indices"},
    {.name = "tenon.compress",
     .library = "algorithms",
     .operands = {tensor("x"), tensor("condition")},
     .results = {tensor("selected")},
     .attributes = {integer("axis"), truth("flatten")},
     .for_files = true,
     .summary = "the slices along an axis whose entry in the condition is true"},
    {.name = "tenon.unique",
     .library = "algorithms",
     .operands = {tensor("x")},
     .results = {tensor("values"), tensor("first"), tensor("inverse"), tensor("counts")},
     .attributes = {integer("axis"), truth("flatten"), truth("sorted")},
     .for_files = true,
     .summary =
         "the distinct slices along an axis, their first indices, each slice's number, and counts"},
    {.name = "tenon.non_max_suppression",
     .library = "algorithms",
     .operands = {tensor("boxes"), tensor("scores"), optional("max_output"),
                  optional("iou_threshold"), optional("score_threshold")},
     .results = {tensor("selected")},
     .attributes = {truth("center_point_box")},
     .for_files = true,
     .summary = "i64[count, 3] of (batch, class, box): the boxes that ONNX's operator keeps"},
    {.name = "tenon.dft",
     .library = "algorithms",
     .operands = {tensor("x")},
     .results = {tensor("transformed")},
     .attributes = {integer("length"), integer("axis"), truth("inverse"), truth("onesided")},
     .for_files = true,
     .summary = "the discrete Fourier transform along an axis, of real [..., 1] or complex numbers "
                "[..., 2]"},
    {.name = "tenon.det",
     .library = "algorithms",
     .operands = {tensor("x")},
     .results = {tensor("determinants")},
     .for_files = true,
     .summary = "the determinants of matrices [..., n, n]"},

    {.name = "tenon.random",
     .library = "algorithms",
     .results = {tensor("words")},
     .attributes = {shape("shape"), integer("seed"), truth("seeded")},
     .effect = Effect::Ordered,
     .for_files = true,
     .summary = "u32 of that shape, uniform: of a seed the same in every call, else of the "
                "system's randomness"},

    // ---- models trained on tables: src/library/ml ----
    // x T[rows, features], nodes i32[n, 4], splits T[n], roots i32[trees], leaves i32[l + 1],
    // targets i32[w], weights T[w]; T is f32 or f64 (library/ml/trees.cc)
    {.name = "tenon.tree_ensemble",
     .library = "ml",
     .operands = {tensor("x"), tensor("nodes"), tensor("splits"), tensor("roots"), tensor("leaves"),
                  tensor("targets"), tensor("weights")},
     .results = {tensor("scores")},
     .attributes = {integer("outputs"), choice("aggregate", kAggregates)},
     .for_files = true,
     .summary = "[rows, outputs]: the sum, least or greatest of the weights that decision trees "
                "give"},
    {.name = "tenon.pairwise_coupling",
     .library = "ml",
     .operands = {tensor("pairs")},
     .results = {tensor("probabilities")},
     .attributes = {integer("classes")},
     .for_files = true,
     .summary = "[rows, classes]: the classes' probabilities from those of pairs, as libsvm "
                "couples them"},

    // ---- strings: src/library/text ----
    {.name = "tenon.text.take",
     .library = "text",
     .operands = {tensor("x"), tensor("indices")},
     .results = {tensor("taken")},
     .for_files = true,
     .summary = "the strings of a list at indices i64"},
    {.name = "tenon.text.join",
     .library = "text",
     .operands = {tensor("a"), tensor("b")},
     .results = {tensor("both")},
     .for_files = true,
     .summary = "the strings of one list, then those of another"},
    {.name = "tenon.text.rank",
     .library = "text",
     .operands = {tensor("x")},
     .results = {tensor("ranks")},
     .for_files = true,
     .summary = "i64[n]: for each string of a list, how many different ones are less"},
    {.name = "tenon.text.concat",
     .library = "text",
     .operands = {tensor("a"), tensor("b")},
     .results = {tensor("both")},
     .for_files = true,
     .summary = "each string of a followed by that of b, of equal shapes"},
    {.name = "tenon.text.split",
     .library = "text",
     .operands = {tensor("x")},
     .results = {tensor("parts"), tensor("counts")},
     .attributes = {text("delimiter"), integer("most")},
     .for_files = true,
     .summary = "the parts of each string between delimiters, at most `most` + 1, and how many"},
    {.name = "tenon.text.case",
     .library = "text",
     .operands = {tensor("x")},
     .results = {tensor("changed")},
     .attributes = {truth("upper")},
     .for_files = true,
     .summary = "each string in lower or upper case"},
    {.name = "tenon.text.find",
     .library = "text",
     .operands = {tensor("x"), tensor("keys")},
     .results = {tensor("indices")},
     .for_files = true,
     .summary = "i64: the index of the first key that equals each string, or -1"},
    {.name = "tenon.text.match",
     .library = "text",
     .operands = {tensor("x")},
     .results = {tensor("matches")},
     .attributes = {text("pattern")},
     .for_files = true,
     .summary = "bool: whether an RE2 expression matches each whole string"},
    // patterns: a list of RE2 expressions. With `separators` they match what lies between tokens.
    {.name = "tenon.text.tokens",
     .library = "text",
     .operands = {tensor("x"), tensor("patterns")},
     .results = {tensor("tokens"), tensor("counts")},
     .attributes = {truth("separators"), integer("least")},
     .for_files = true,
     .summary = "the tokens of each string of at least `least` characters, and how many"},
    {.name = "tenon.text.parse",
     .library = "text",
     .operands = {tensor("x")},
     .results = {tensor("numbers")},
     .attributes = {dtype("dtype")},
     .for_files = true,
     .summary = "the numbers that strings are"},
    {.name = "tenon.text.format",
     .library = "text",
     .operands = {tensor("x")},
     .results = {tensor("texts")},
     .for_files = true,
     .summary = "numbers as strings"},
    // x i64[rows, n], pool i64[p], starts i64[most], columns i64[n-grams]
    {.name = "tenon.text.ngrams",
     .library = "text",
     .operands = {tensor("x"), tensor("pool"), tensor("starts"), tensor("columns")},
     .results = {tensor("counts")},
     .attributes = {integer("least"), integer("most"), integer("skips"), integer("outputs")},
     .for_files = true,
     .summary = "f32[rows, outputs]: how often n-grams occur, each in its column"},

    // ---- oneDNN: src/library/onednn ----
    // x [N, s..., C], weights [k..., C/groups, M], bias [M], residual and out [N, t..., M]; f32.
    // `winograd` allows Winograd's algorithm, whose error is greater.
    {.name = "onednn.convolution",
     .library = "onednn",
     .operands = {tensor("x"), tensor("weights"), optional("bias"), optional("residual")},
     .results = {tensor("out")},
     .writes_results = true,
     .attributes = {shape("strides"), shape("dilations"), shape("pads"), integer("groups"),
                    choice("activation", kActivations), number("alpha"), number("beta"),
                    truth("winograd")},
     .prepares = true,
     .summary = "activation(x * weights + bias + residual), channels last, f32"},
    // a and b permuted by a_perm and b_perm, then multiplied as by numpy.matmul for rank >= 2
    {.name = "onednn.matmul",
     .library = "onednn",
     .operands = {tensor("a"), tensor("b"), optional("bias"), optional("residual")},
     .results = {tensor("out")},
     .writes_results = true,
     .attributes = {shape("a_perm"), shape("b_perm"), choice("activation", kActivations),
                    number("alpha"), number("beta")},
     .prepares = true,
     .summary = "activation(permuted a @ permuted b + bias + residual), f32"},
    // q [b, h, n, d], k [b, h, d, m], v [b, h, m, e], mask broadcast to [b, h, n, m], all permuted;
    // out is the permuted [b, h, n, e]
    {.name = "onednn.attention",
     .library = "onednn",
     .operands = {tensor("q"), tensor("k"), tensor("v"), optional("mask")},
     .results = {tensor("out")},
     .writes_results = true,
     .attributes = {shape("q_perm"), shape("k_perm"), shape("v_perm"), shape("out_perm"),
                    number("scale")},
     .summary = "softmax(scale * q @ k + mask) @ v, f32, without its scores in memory"},
};
// clang-format on
}  // namespace detail

inline constexpr std::span<const Signature> kSignatures = detail::kTable;

// Null for functions of the host.
constexpr const Signature* find_signature(std::string_view name) {
  for (const Signature& s : kSignatures) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

// The row of that name; an unknown name doesn't compile.
consteval const Signature& signature(std::string_view name) {
  // With -fsanitize=undefined, GCC refuses the null check of a pointer here as not constant.
  const auto found = std::ranges::find(kSignatures, name, &Signature::name);
  if (found == kSignatures.end()) throw "no library function has this name";
  return *found;
}

// The position of an argument; an unknown name doesn't compile.
consteval size_t argument(const Signature& function, std::string_view name) {
  const size_t at = function.position(name);
  if (at == function.arity()) throw "the function has no argument of this name";
  return at;
}

}  // namespace tenon::library
