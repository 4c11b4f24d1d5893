// The contract between a kernel object and the runtime: plain C layouts, no names to link.
//
// A kernel object is a closed ELF shared object: it imports nothing, needs no library, has no
// constructors. What it writes in its own data changes in which order kernels read their arguments,
// never what they compute. Its only exported symbol is `tenon_kernel_table`, a KernelTable. Each
// entry is a packed function whose `self` is a `const KernelRuntime*`, through which the kernel
// calls the runtime. The arguments are input tensors, then destination tensors, then integers, as
// the caller and the kernel agree; the entry checks everything that its body assumes.
//
//     int entry(void* self, const AnyView* args, int32_t n, Any* result)
//       args    n borrowed values, each int32 type index, uint32, 8-byte payload
//       result  left unchanged (None)
//       return  0, or what KernelRuntime::raise returned: the thread's waiting error is set
//
// A change of any layout raises kKernelAbiVersion; members are only added at the end.
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

// Why a kernel refused its arguments or stopped: kernel_errors.def has the meanings.
enum class KernelError : int32_t {
#define TENON_KERNEL_ERROR(number, identifier, ...) identifier = number,
#include "vm/executable/kernel_errors.def"
};

// A chunk of a parallel loop: iterations begin..end. A non-zero result, which must come from
// `raise`, stops the loop and is returned by parallel_for. Runs on any thread, several at once.
using KernelBody = int32_t (*)(void* context, int64_t begin, int64_t end);

// One run of a kernel of a device image.
struct KernelLaunch {
  uint32_t size;        // sizeof(KernelLaunch) of the caller
  uint32_t image;       // its index in the target's images
  const char* kernel;   // its name in the image, NUL-terminated
  int32_t device_type;  // a DLDeviceType
  int32_t device_index;
  uint32_t grid[3];       // blocks
  uint32_t block[3];      // threads per block
  uint32_t shared_bytes;  // dynamic shared memory per block
  uint32_t argument_count;
  const void* const* arguments;  // the address of each argument
};

// The runtime's functions for kernels. One constant table per process.
struct KernelRuntime {
  uint32_t abi_version;
  uint32_t size;  // sizeof(KernelRuntime) in the runtime; later members are absent

  // Sets the thread's waiting error, which names the kernel, the argument, the axis, and the found
  // and expected values, and returns the code to return from the entry. `kernel` is the entry's
  // name, NUL-terminated; `argument` and `axis` are -1 if they don't apply.
  int32_t (*raise)(const KernelRuntime* self, const char* kernel, KernelError code,
                   int32_t argument, int32_t axis, int64_t found, int64_t expected);

  // Runs body over 0..count in chunks of at least `grain` iterations (>= 1), and returns when all
  // chunks have ended. The division into chunks depends on count, grain and the number of threads;
  // for results that don't, compute each iteration independently. Returns 0 or the first body's
  // code.
  int32_t (*parallel_for)(const KernelRuntime* self, KernelBody body, void* context, int64_t count,
                          int64_t grain);

  // Workspace of `bytes`, aligned to 64, under the memory limit of the machine's call; null after
  // an error was recorded (then return -1). On any thread; release it before returning.
  void* (*allocate)(const KernelRuntime* self, const char* kernel, uint64_t bytes);
  void (*release)(const KernelRuntime* self, void* workspace);

  // Queues a kernel on a device and returns; the work completes before a value leaves the machine.
  // Returns 0 or what `raise` returned: NoDevice if the runtime doesn't drive the device.
  int32_t (*launch)(const KernelRuntime* self, const KernelLaunch* launch);

  // Whether this thread's call should stop: 0, or -1 after an error was recorded (then return -1
  // soon). Loops poll every few milliseconds. On any thread.
  int32_t (*poll)(const KernelRuntime* self);

  // Runs body(context, 0, count) once, on this thread, while other threads may stand by for the
  // calls of parallel_for in it. For a series of short loops. Returns what the body returns.
  int32_t (*with_team)(const KernelRuntime* self, KernelBody body, void* context, int64_t count);
};

// The native stack in bytes that a kernel may use on each thread that runs it, for its own frames
// and those of parallel_for. The compiler refuses kernels that may need more; a call of a program
// fails on a thread with less left.
inline constexpr size_t kKernelStack = size_t{64} << 10;

using KernelEntryFunction = int32_t (*)(void* self, const AnyView* args, int32_t count,
                                        Any* result);

struct KernelEntry {
  const char* name;  // as in the file's packed functions
  KernelEntryFunction function;
};

// CPU features that a kernel object needs: bit i % 64 of word i / 64 is feature i of
// cpu_features.def.
inline constexpr size_t kCpuFeatureWords = 2;

struct KernelTable {
  uint32_t abi_version;
  uint32_t count;
  uint64_t cpu_features[kCpuFeatureWords];
  const KernelEntry* entries;  // `count` entries, sorted by name
};

// For 32-bit and 64-bit pointers.
inline constexpr size_t kPointer = sizeof(void*);
static_assert(offsetof(KernelRuntime, raise) == 8);
static_assert(offsetof(KernelRuntime, parallel_for) == 8 + kPointer);
static_assert(offsetof(KernelRuntime, allocate) == 8 + 2 * kPointer);
static_assert(offsetof(KernelRuntime, release) == 8 + 3 * kPointer);
static_assert(offsetof(KernelRuntime, launch) == 8 + 4 * kPointer);
static_assert(offsetof(KernelRuntime, poll) == 8 + 5 * kPointer);
static_assert(offsetof(KernelRuntime, with_team) == 8 + 6 * kPointer);
static_assert(sizeof(KernelRuntime) == 8 + 7 * kPointer);
static_assert(offsetof(KernelLaunch, device_type) == 8 + kPointer);
static_assert(offsetof(KernelLaunch, arguments) == 48 + kPointer);
static_assert(sizeof(KernelLaunch) == 48 + 2 * kPointer);
static_assert(sizeof(KernelEntry) == 2 * kPointer);
static_assert(offsetof(KernelTable, cpu_features) == 8 && offsetof(KernelTable, entries) == 24);

}  // namespace tenon::vm
