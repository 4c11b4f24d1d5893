// group_calls: heads calls that don't depend on each other with memory.concurrent, so that they may
// run at the same time, each on one thread. It moves calls of kernels and of Tenon's own functions
// with destinations to the first level that their operands allow: a level's calls are a group.
// Storages and views go before the first call that needs them; everything else stays where it is,
// and no call passes it. A group's calls are of the same block. Does nothing unless
// PassContext::inter_op is greater than 1.
//
// A group makes memory live longer, and each of its calls uses one thread. So calls of much work,
// which keep several threads busy, stay out of groups, as do calls of so little work that waking a
// thread takes longer, and one call that has most of a group's work. Below -O2, every call that may
// be in a group is.
#pragma once

#include "graph/pass/pass.h"

namespace tenon::graph {

Module group_calls(const Module& module, PassContext& cx);

}  // namespace tenon::graph
