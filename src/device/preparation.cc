#include "device/preparation.h"

namespace tenon {
namespace {
constinit thread_local bool is_preparing_here = false;
}  // namespace

[[gnu::cold]] bool is_preparing() {
  return is_preparing_here;
}

[[gnu::cold]] void set_preparing(bool preparing) {
  is_preparing_here = preparing;
}

}  // namespace tenon
