#include "library/ml/register.h"

#include "library/ml/functions.h"
#include "object/library.h"

namespace tenon {

void register_ml_functions() {
  Registration functions;
  ml::register_coupling(functions);
  ml::register_trees(functions);
  functions.commit();
}

void register_ml() {
  define_library("tenon_ml", register_ml_functions);
}

}  // namespace tenon
