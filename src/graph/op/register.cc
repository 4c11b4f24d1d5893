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
    register_movement(table);
    register_fill(table);
    return true;
  }();
  (void)done;
}

}  // namespace tenon::graph
