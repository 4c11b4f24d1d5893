/* A host in C: loads the program that is its argument, twice, calls it and says what came of it.
 *
 *   host PROGRAM.tnx
 *
 * Prints "done" or "failed" for each time, and the error. Exit code 0 if the second time succeeds,
 * else 5, and 1 for what must not happen: a wrong result, or descriptors that stay open. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tenon/c_api.h"

enum { kRows = 3, kColumns = 16 };

static int is_near(double a, double b) {
  return a - b < 1e-3 * b && b - a < 1e-3 * b;
}

/* The sum of main's result for ones, where exp(x * 0.25 * 16) is applied once. */
static int work(const char* path, double* sum) {
  tenon_any program = TENON_NONE_VALUE, machine = TENON_NONE_VALUE, result = TENON_NONE_VALUE;
  tenon_any args[2] = {TENON_NONE_VALUE, {TENON_INT, 0, {1}}};
  const int64_t shape[] = {kRows, kColumns};
  const DLDataType f32 = {kDLFloat, 32, 1};
  const DLDevice cpu = {kDLCPU, 0};
  tenon_limits limits = TENON_NO_LIMITS;
  limits.threads = 4;
  limits.deadline_ns = INT64_C(60000000000);
  int code = tenon_program_load(path, &program);
  if (code == 0) code = tenon_machine_create(&program, &machine);
  if (code == 0) code = tenon_machine_set_limits(&machine, &limits);
  if (code == 0) code = tenon_tensor_create(shape, 2, f32, cpu, &args[0]);
  if (code == 0) {
    float* data = tenon_tensor_view(&args[0])->data;
    for (int i = 0; i < kRows * kColumns; ++i) data[i] = 0.5f;
    code = tenon_machine_call(&machine, "main", args, 2, &result);
  }
  if (code == 0) {
    const float* data = tenon_tensor_view(&result)->data;
    *sum = 0;
    for (int i = 0; i < kRows * kColumns; ++i) *sum += data[i];
  }
  tenon_any_release(&result);
  tenon_any_release(&args[0]);
  tenon_any_release(&machine);
  tenon_any_release(&program);
  return code;
}

static int open_descriptors(void) {
  DIR* folder = opendir("/proc/self/fd");
  int count = 0;
  if (!folder) return -1;
  while (readdir(folder)) ++count;
  closedir(folder);
  return count;
}

/* Returns the exit code. */
static int try_once(const char* path) {
  double sum = 0;
  if (work(path, &sum) == 0) {
    if (!is_near(sum, kRows * kColumns * 7.38905609893065)) {
      fprintf(stderr, "host: the result is wrong: its sum is %g\n", sum);
      return 1;
    }
    puts("done");
    return 0;
  }
  const char* text = tenon_last_error();
  fprintf(stderr, "%s\n", text ? text : "host: no text");
  puts("failed");
  return 5;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int before = open_descriptors();
  signal(SIGXFSZ, SIG_IGN); /* from here on, system calls may fail */
  const int first = try_once(argv[1]);
  const int after_first = open_descriptors();
  const int second = try_once(argv[1]);
  if (before >= 0 && after_first > before) {
    fprintf(stderr, "host: %d descriptors are open; there were %d before\n", after_first, before);
    return 1;
  }
  if (fflush(stdout) != 0) {
    fputs("error: standard output\n", stderr);
    return 5;
  }
  return first == 1 ? first : second;
}
