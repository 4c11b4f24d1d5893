// Numbers and bounds in the contracts of tenon.tree_ensemble and tenon.pairwise_coupling. Files
// contain them, so they never change.
#pragma once

#include <cstdint>
#include <iterator>
#include <string_view>

#include "library/signatures/signature.h"

namespace tenon::library {

// How a node compares a feature with its split, as numbered in ONNX's TreeEnsemble.
enum class TreeTest : int32_t { AtMost, Less, AtLeast, Greater, Equal, NotEqual };
inline constexpr int32_t kOrMissing = 8;  // added to a test that NaN passes, too

// What an output is of the weights that its leaves give.
enum class Aggregate : int64_t { Sum, Min, Max };
inline constexpr std::string_view kAggregateNames[] = {"sum", "min", "max"};
inline constexpr Choices kAggregates{kAggregateNames, std::size(kAggregateNames)};

inline constexpr int64_t kMaxCoupledClasses = 1 << 15;  // a square of them is allocated

}  // namespace tenon::library
