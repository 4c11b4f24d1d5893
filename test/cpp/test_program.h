// The program of program.tna, and what tests of programs share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tenon/tenon.h"

// The text of the exception of type E that f throws.
template <class E, class F>
std::string caught(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing was thrown";
}

inline const tenon::Program& program() {
  static const tenon::Program loaded = [] {
    tenon::register_function("host.twice", [](int64_t n) {
      if (n == 13) throw std::domain_error("not 13");
      return 2 * n;
    });
    tenon::register_function(
        "host.fill", [](tenon::Tensor t) { std::ranges::fill(t.mutable_view<float>(), 7.0f); });
    return tenon::Program::load(TENON_TEST_PROGRAM);
  }();
  return loaded;
}
inline tenon::Tensor row() {
  return tenon::Tensor::copy({1.0f, 2.0f, 3.0f}, {1, 3});
}
