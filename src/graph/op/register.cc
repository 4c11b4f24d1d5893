#include "graph/op/register.h"

#include "graph/op/families.h"

namespace tenon::graph {

void register_operators() {
  static const bool done = [] {
    OperatorTable& table = OperatorTable::global();
    register_elementwise(table);
    register_broadcast(table);
    register_reduce(table);
    register_norm(table);
    register_matmul(table);
    register_pack(table);
    register_conv(table);
    register_pool(table);
    register_movement(table);
    register_fill(table);
    register_gather(table);
    register_scatter(table);
    register_scan(table);
    register_pad(table);
    register_resize(table);
    register_quantize(table);
    register_search(table);
    return true;
  }();
  (void)done;
}

}  // namespace tenon::graph
