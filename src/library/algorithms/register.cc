#include "library/algorithms/register.h"

#include "library/algorithms/functions.h"
#include "object/library.h"

namespace tenon {

void register_algorithm_functions() {
  Registration functions;
  algorithms::register_boxes(functions);
  algorithms::register_fourier(functions);
  algorithms::register_matrix(functions);
  algorithms::register_random(functions);
  algorithms::register_search(functions);
  functions.commit();
}

void register_algorithms() {
  define_library("tenon_algorithms", register_algorithm_functions);
}

}  // namespace tenon
