// A kernel object for tests, closed like those that the compiler builds, with code that ends the
// process: if it runs while the object is opened, the check has missed something.
#include <stdint.h>

#if defined(__x86_64__)
#define EXIT_WITH_99() __asm__ volatile("syscall" : : "a"(231), "D"(99) : "rcx", "r11", "memory")
#elif defined(__aarch64__)
#define EXIT_WITH_99()                                               \
  do {                                                               \
    register long number __asm__("x8") = 94;                         \
    register long code __asm__("x0") = 99;                           \
    __asm__ volatile("svc 0" : : "r"(number), "r"(code) : "memory"); \
  } while (0)
#elif defined(__riscv)
#define EXIT_WITH_99()                                               \
  do {                                                               \
    register long number __asm__("a7") = 94;                         \
    register long code __asm__("a0") = 99;                           \
    __asm__ volatile("ecall" : "+r"(code) : "r"(number) : "memory"); \
  } while (0)
#endif

static int32_t tripwire(void* self, const void* args, int32_t n, void* result) {
  (void)self, (void)args, (void)n, (void)result;
  EXIT_WITH_99();
  return 0;
}

// Space in the writable data for a table that a test writes there.
static uint64_t room[32] = {1, 2, 3};

struct entry {
  const char* name;
  int32_t (*function)(void*, const void*, int32_t, void*);
};
static const struct entry entries[] = {{"tripwire", tripwire}};

struct table {
  uint32_t abi_version, count;
  uint64_t cpu_features[2];
  const struct entry* entries;
  uint64_t* room;
};
__attribute__((visibility("default")))
const struct table tenon_kernel_table = {1, 1, {0, 0}, entries, room};
