// The maximum sizes in a file. The verifier enforces them, so that later code needn't consider
// sizes that overflow or exhaust memory before a call's limit applies.
#pragma once

#include <cstdint>

namespace tenon::vm {

// The file format that this build writes; it reads every format from 1 to this one.
inline constexpr uint32_t kFormatVersion = 2;

inline constexpr uint32_t kMaxFunctions = 1u << 20;
inline constexpr uint32_t kMaxConstants = 1u << 20;
inline constexpr uint32_t kMaxPacked = 1u << 20;
inline constexpr uint32_t kMaxLibraries = 256;
inline constexpr uint32_t kMaxTypes = 1u << 16;  // data types
inline constexpr uint32_t kMaxKernelTargets = 64;
inline constexpr uint32_t kMaxKernelImages = 64;  // per target
inline constexpr uint32_t kMaxSections = 64;
inline constexpr uint64_t kMaxComputesBytes = uint64_t{1} << 30;  // of the graph, too
inline constexpr uint32_t kMaxSpans = 1u << 24;

// Per function. A frame of kMaxRegisters takes 1 MiB of register stack.
inline constexpr uint32_t kMaxRegisters = 1u << 16;
inline constexpr uint32_t kMaxParams = 1u << 12;
inline constexpr uint32_t kMaxCodeWords = 1u << 26;

// Per instruction: operand words after the header.
inline constexpr uint32_t kMaxOperandWords = 1u << 16;

inline constexpr uint32_t kMaxNameBytes = 1u << 16;
// Of a type's text; nesting is limited so that parsing needs little native stack.
inline constexpr uint32_t kMaxTypeBytes = 1u << 20;
inline constexpr uint32_t kMaxTypeDepth = 128;

// Of a storage block or a constant, so that byte counts and offsets never overflow.
inline constexpr uint64_t kMaxStorageBytes = uint64_t{1} << 48;
inline constexpr uint64_t kMaxStorageAlignment = 4096;
inline constexpr int64_t kMaxConcurrent = 256;  // calls of a group
inline constexpr int64_t kMaxTag = (int64_t{1} << 31) - 1;

}  // namespace tenon::vm
