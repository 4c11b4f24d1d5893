#include "graph/op/register.h"

#include "graph/op/families.h"

namespace tenon::graph {

void register_operators() {
  static const bool done = [] {
    OperatorTable& table = OperatorTable::global();
#define TENON_FAMILY(name) register_##name(table);
#include "graph/op/families.def"
    return true;
  }();
  (void)done;
}

}  // namespace tenon::graph
