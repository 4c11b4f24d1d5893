#include "support/phase.h"

#include <algorithm>
#include <utility>

namespace tenon {
namespace {
constinit thread_local PhaseTimes* times_of_thread = nullptr;
}  // namespace

PhaseTimes::PhaseTimes() : outer_(std::exchange(times_of_thread, this)) {}
PhaseTimes::~PhaseTimes() {
  times_of_thread = outer_;
}

PhaseTimes* PhaseTimes::current() {
  return times_of_thread;
}

PhaseTimes::Scope::Scope(PhaseTimes* times) : outer_(std::exchange(times_of_thread, times)) {}
PhaseTimes::Scope::~Scope() {
  times_of_thread = outer_;
}

Phase::Phase(std::string_view name, Within within, double* seconds)
    : recorded_(trace::Kind::Phase, name),
      times_(times_of_thread),
      within_(within),
      seconds_(seconds) {
  if (times_ || seconds_) begin_ = std::chrono::steady_clock::now();
  if (!times_) return;
  outer_ = times_->innermost_;
  if (outer_ && outer_->within_ == Within::Included) {
    times_ = nullptr;
    return;
  }
  auto& rows = times_->rows_;
  const auto at =
      std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; });
  row_ = static_cast<size_t>(at - rows.begin());
  if (at == rows.end()) rows.push_back({std::string(name)});
  times_->innermost_ = this;
}

Phase::~Phase() {
  if (!times_ && !seconds_) return;
  const auto took = std::chrono::steady_clock::now() - begin_;
  if (seconds_) *seconds_ = std::chrono::duration<double>(took).count();
  if (!times_) return;
  times_->rows_[row_].seconds += std::chrono::duration<double>(took - of_inner_).count();
  if (outer_) outer_->of_inner_ += took;
  times_->innermost_ = outer_;
}

}  // namespace tenon
