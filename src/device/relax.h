// What a thread does between two looks at a word that another thread will change soon.
#pragma once

namespace tenon {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Looks before a waiting thread sleeps or yields, of about 10 ns each: a model's loops follow each
// other closely.
inline constexpr int kSpins = 4000;

}  // namespace tenon
