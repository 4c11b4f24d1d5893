// Decision trees, in the form that the operator tree_ensemble takes (docs/operators.md).
#pragma once

#include "import/onnx/node_context.h"
#include "library/signatures/learned.h"

namespace tenon::onnx {

// An ensemble as ONNX has it, whose nodes may be in any order. A branch b >= 0 leads to node b, a
// branch b < 0 to leaf -1 - b.
struct TreeNodes {
  // Of a node that tests whether a feature is among members[first .. end).
  struct Members {
    size_t first = 0, end = 0;
  };
  // TreeEnsemble's test beside those of library::TreeTest.
  static constexpr int64_t kMember = static_cast<int64_t>(library::TreeTest::NotEqual) + 1;

  Ints features, tests, passed, failed;  // of each node
  std::vector<double> splits;
  std::vector<bool> missing_passes;
  std::vector<Members> members_of;  // empty if no node has this test
  std::vector<double> members;
  Ints roots;          // a branch per tree
  int64_t leaves = 0;  // how many
  Ints leaf_of;        // of each weight: its leaf, or -1 if it has none
  Ints targets;        // of each weight
  std::vector<double> weights;
};

enum class Aggregate : int64_t { Average, Sum, Min, Max };  // numbered as in TreeEnsemble

// x [rows, features] of f32 or f64 to [rows, outputs]: what the trees' leaves give. Checks that the
// trees are trees, and that x has the features that they read.
Operand tree_scores(NodeContext& cx, const Operand& x, const TreeNodes& trees, int64_t outputs,
                    Aggregate aggregate);

}  // namespace tenon::onnx
