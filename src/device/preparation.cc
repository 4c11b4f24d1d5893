#include "device/preparation.h"

#include <utility>

namespace tenon {
namespace {
constinit thread_local bool preparing = false;
}  // namespace

[[gnu::cold]] bool is_preparing() {
  return preparing;
}

[[gnu::cold]] PreparationScope::PreparationScope() : outer_(std::exchange(preparing, true)) {}

[[gnu::cold]] PreparationScope::~PreparationScope() {
  preparing = outer_;
}

}  // namespace tenon
