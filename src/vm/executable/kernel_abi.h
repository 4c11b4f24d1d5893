// What a kernel object and the runtime promise each other: plain C layouts, no names to link.
//
// A kernel object is a closed ELF shared object: it imports nothing, needs no library, has no
// constructors. Its only exported symbol is `tenon_kernel_table`, a KernelTable. Each entry is a
// packed function whose `self` is a `const KernelRuntime*`, through which the kernel reaches the
// runtime. Arguments are the input tensors, then the destination tensors, then integers, as its
// caller and its code agree; the entry itself checks all that its body assumes.
//
//     int entry(void* self, const AnyView* args, int32_t n, Any* result)
//       args    n borrowed values, each int32 type index, uint32, 8-byte payload
//       result  left as it is (None)
//       return  0, or what KernelRuntime::raise returned: the error waits in a thread-local
//
// A change of any layout raises kKernelAbiVersion; a member is only ever added at the end.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon {
class Any;
class AnyView;
}  // namespace tenon

namespace tenon::vm {

inline constexpr uint32_t kKernelAbiVersion = 1;
inline constexpr char kKernelTableSymbol[] = "tenon_kernel_table";

// Why a kernel refused its arguments or stopped. `raise` turns one into an error that names the
// kernel, the argument, the axis, what was found and what was expected.
enum class KernelError : int32_t {
  ArgumentCount = 1,     // found n, expected n
  NotATensor = 2,        // of `argument`; found its type index
  NotAnInteger = 3,      // of `argument`; found its type index
  Dtype = 4,             // found and expected: code | bits << 8 | lanes << 16
  Rank = 5,              // found and expected rank
  Dimension = 6,         // of `axis`; found and expected size
  Device = 7,            // found and expected: type | index << 32
  NotCompact = 8,        // of `axis`; found and expected stride
  Alignment = 9,         // found address modulo the expected alignment
  NotWritable = 10,      // an output that is a constant or otherwise read-only
  Overlap = 11,          // an output overlaps argument `found`
  IndexOutOfRange = 12,  // of `axis`; found the index, expected below the size
  DivisionByZero = 13,
  NegativeSize = 14,   // found the size
  OutOfMemory = 15,    // found the bytes asked for
  NullData = 16,       // a tensor with elements but without data
  IntegerRange = 17,   // of `argument`; found outside what the kernel can take, expected the limit
  Overflow = 18,       // a size product overflows
  OutsideBuffer = 19,  // an access; of `axis` (-1: of all elements); found the index, expected
                       // below the size
  NoDevice = 20,       // a launch; expected type | index << 32 of the device
};

// A chunk of a parallel loop: iterations begin..end. Non-zero stops the loop, is returned by
// parallel_for, and must come from `raise`. Runs on any thread, several at once.
using KernelBody = int32_t (*)(void* context, int64_t begin, int64_t end);

// One run of a kernel of a device image.
struct KernelLaunch {
  uint32_t size;        // sizeof(KernelLaunch) of the caller
  uint32_t image;       // its number among the target's images
  const char* kernel;   // its name there, nul-terminated
  int32_t device_type;  // as DLPack numbers them
  int32_t device_index;
  uint32_t grid[3];       // blocks
  uint32_t block[3];      // threads of a block
  uint32_t shared_bytes;  // memory that a block's threads share, beyond what the kernel declares
  uint32_t argument_count;
  const void* const* arguments;  // where each argument lies
};

// The runtime's functions for kernels. One constant table per process.
struct KernelRuntime {
  uint32_t abi_version;
  uint32_t size;  // sizeof(KernelRuntime) of the runtime: what lies past it is absent

  // Records the error for this thread and returns the code to return from the entry. `kernel` is
  // the entry's name, nul-terminated; `argument` and `axis` are -1 when they have no meaning.
  int32_t (*raise)(const KernelRuntime* self, const char* kernel, KernelError code,
                   int32_t argument, int32_t axis, int64_t found, int64_t expected);

  // Runs body over 0..count in chunks of at least `grain` iterations (>= 1), and returns when all
  // have ended. Chunk borders depend on count, grain and the thread count: a body that must not
  // depend on them computes each iteration independently. Returns 0 or the first body's code.
  int32_t (*parallel_for)(const KernelRuntime* self, KernelBody body, void* context, int64_t count,
                          int64_t grain);

  // Workspace of `bytes`, aligned to 64, under the memory cap of the machine's call; null after
  // an error was recorded (then return -1). On any thread; give it back with release before return.
  void* (*allocate)(const KernelRuntime* self, const char* kernel, uint64_t bytes);
  void (*release)(const KernelRuntime* self, void* workspace);

  // Queues a kernel on a device and returns; what it does ends before a value leaves the machine.
  // Returns 0 or what `raise` returned: NoDevice where the runtime drives no such device.
  int32_t (*launch)(const KernelRuntime* self, const KernelLaunch* launch);

  // Asks whether the call that this thread works for is to stop: 0, or -1 after an error was
  // recorded (then return -1 soon). Loops ask every few milliseconds. On any thread.
  int32_t (*poll)(const KernelRuntime* self);
};

using KernelEntryFunction = int32_t (*)(void* self, const AnyView* args, int32_t count,
                                        Any* result);

struct KernelEntry {
  const char* name;  // as the file's primitive names call it
  KernelEntryFunction function;
};

// CPU features that a kernel object needs: bit i of word i / 64, numbered in cpu_features.def.
inline constexpr size_t kCpuFeatureWords = 2;

struct KernelTable {
  uint32_t abi_version;
  uint32_t count;
  uint64_t cpu_features[kCpuFeatureWords];
  const KernelEntry* entries;  // `count` of them, names ascending
};

// For pointers of 32 and of 64 bits.
inline constexpr size_t kPointer = sizeof(void*);
static_assert(offsetof(KernelRuntime, raise) == 8);
static_assert(offsetof(KernelRuntime, parallel_for) == 8 + kPointer);
static_assert(offsetof(KernelRuntime, allocate) == 8 + 2 * kPointer);
static_assert(offsetof(KernelRuntime, release) == 8 + 3 * kPointer);
static_assert(offsetof(KernelRuntime, launch) == 8 + 4 * kPointer);
static_assert(offsetof(KernelRuntime, poll) == 8 + 5 * kPointer);
static_assert(sizeof(KernelRuntime) == 8 + 6 * kPointer);
static_assert(offsetof(KernelLaunch, device_type) == 8 + kPointer);
static_assert(offsetof(KernelLaunch, arguments) == 48 + kPointer);
static_assert(sizeof(KernelLaunch) == 48 + 2 * kPointer);
static_assert(sizeof(KernelEntry) == 2 * kPointer);
static_assert(offsetof(KernelTable, cpu_features) == 8 && offsetof(KernelTable, entries) == 24);

}  // namespace tenon::vm
