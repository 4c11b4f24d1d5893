// bind_symbols: puts sizes that are known by now in place of the symbols that stand for them.
//
//   %i = match_elements(tensor[2; i64]{0, 3}, [a, b])
//   %y: tensor[n + a + b; f32] = pad(%x, ..., before=[a], after=[b])
//   becomes
//   %y: tensor[n + 3; f32] = pad(%x, ..., before=[0], after=[3])
//
// A model computes sizes by operators whose values its types can't follow, so that its importer
// names what they give. Once fold_constants has computed them, the sizes are numbers, and so may be
// others that are computed from these: simplify and fold_constants run again until no more sizes
// are found. The types of exported functions' results have them, too.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module bind_symbols(const Module& module, PassContext& cx);

}  // namespace tenon::graph
