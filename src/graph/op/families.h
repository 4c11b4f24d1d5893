// The operator families, one source file each; register_operators() adds them all.
#pragma once

#include "graph/ir/op.h"

namespace tenon::graph {

void register_elementwise(OperatorTable& table);
void register_broadcast(OperatorTable& table);
void register_reduce(OperatorTable& table);
void register_norm(OperatorTable& table);
void register_matmul(OperatorTable& table);
void register_pack(OperatorTable& table);
void register_conv(OperatorTable& table);
void register_pool(OperatorTable& table);
void register_movement(OperatorTable& table);
void register_fill(OperatorTable& table);
void register_gather(OperatorTable& table);
void register_scatter(OperatorTable& table);
void register_scan(OperatorTable& table);
void register_pad(OperatorTable& table);
void register_resize(OperatorTable& table);
void register_quantize(OperatorTable& table);
void register_search(OperatorTable& table);

}  // namespace tenon::graph
