// The demo program: classifies handwritten digits with a compiled network, using only the public C
// API.
//
//   digits DIGITS.tnx FOLDER     FOLDER has images.npy, labels.npy and probabilities.npy
//
// Shows some images with their predicted digits, the accuracy and the greatest difference from the
// output of the training framework, three batch sizes served by one file, and latency. Then it
// damages the file, passes a wrong shape and runs out of fuel: three errors, after which the same
// machine still works. Exits with 0 only if every step succeeds.
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tenon/c_api.h"

enum { kSide = 8, kPixels = kSide * kSide, kDigits = 10, kPerRow = 5 };

static void fail(const char* what) {
  fprintf(stderr, "digits: %s\n", what);
  exit(1);
}

// ---- The held-out data: .npy files of format 1.0, little-endian, row-major --------------------

// The elements of FOLDER/NAME, which must have dtype `descr`; `count` gets their number.
static void* read_npy(const char* folder, const char* name, const char* descr, size_t size,
                      int64_t* count) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* file = fopen(path, "rb");
  unsigned char head[10];
  if (!file || fread(head, 1, 10, file) != 10 || memcmp(head, "\x93NUMPY\x01", 7) != 0) fail(path);
  const size_t length = head[8] + 256u * head[9];
  char* text = calloc(length + 1, 1);
  if (!text || fread(text, 1, length, file) != length || !strstr(text, descr) ||
      !strstr(text, "'fortran_order': False")) {
    fail(path);
  }
  free(text);
  const long start = ftell(file);
  fseek(file, 0, SEEK_END);
  const size_t bytes = (size_t)(ftell(file) - start);
  fseek(file, start, SEEK_SET);
  void* data = malloc(bytes);
  if (!data || fread(data, 1, bytes, file) != bytes) fail(path);
  fclose(file);
  *count = (int64_t)(bytes / size);
  return data;
}

// ---- Showing images ---------------------------------------------------------------------------

static int greatest(const float* row) {
  int best = 0;
  for (int digit = 1; digit < kDigits; ++digit) {
    if (row[digit] > row[best]) best = digit;
  }
  return best;
}

// Prints images side by side, two characters per pixel, with the predicted digit below each.
static void show_images(const float* images, const int64_t* labels, const float* probabilities,
                        const int64_t* chosen, int count) {
  static const char* const shades[] = {"  ", "\u2591\u2591", "\u2592\u2592", "\u2593\u2593",
                                       "\u2588\u2588"};
  const int colour = isatty(STDOUT_FILENO);
  for (int y = 0; y < kSide; ++y) {
    for (int i = 0; i < count; ++i) {
      const float* row = images + chosen[i] * kPixels + y * kSide;
      fputs(i ? "   " : "  ", stdout);
      for (int x = 0; x < kSide; ++x) fputs(shades[(int)(row[x] * 4.0f / 16.0f + 0.5f)], stdout);
    }
    fputs("\n", stdout);
  }
  for (int i = 0; i < count; ++i) {
    const float* row = probabilities + chosen[i] * kDigits;
    const int digit = greatest(row);
    const int right = digit == labels[chosen[i]];
    char text[32];
    const int width = right ? snprintf(text, sizeof text, "%d  (%.0f %%)", digit, 100 * row[digit])
                            : snprintf(text, sizeof text, "%d, is %" PRId64 " (%.0f %%)", digit,
                                       labels[chosen[i]], 100 * row[digit]);
    printf("%s%s%s%s%*s", i ? "   " : "  ", colour && !right ? "\033[31m" : "", text,
           colour && !right ? "\033[0m" : "", 2 * kSide - width, "");
  }
  fputs("\n\n", stdout);
}

static int compare_doubles(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

// ---- Running the network ----------------------------------------------------------------------

static void release_nothing(DLManagedTensor* self) {
  (void)self;
}

// Runs the network on `count` images of `height` by 8 pixels, without copying them, and stores its
// float[count, 10] output in `result`. Returns 0, or -1 with a pending error.
static int read_digits(const tenon_any* machine, const float* images, int64_t count, int64_t height,
                       tenon_any* result) {
  int64_t shape[4] = {count, 1, height, kSide};
  DLManagedTensor view = {
      {(void*)(uintptr_t)images, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, shape, NULL, 0},
      NULL,
      release_nothing};
  tenon_any input = TENON_NONE_VALUE;
  if (tenon_tensor_from_dlpack(&view, /*read_only=*/1, &input) != 0) return -1;
  const int code = tenon_machine_call(machine, "main", &input, 1, result);
  tenon_any_release(&input);
  return code;
}

// The same, but copies the output to `probabilities`; an error ends the demo.
static void read_into(const tenon_any* machine, const float* images, int64_t count,
                      float* probabilities) {
  tenon_any result = TENON_NONE_VALUE;
  if (read_digits(machine, images, count, kSide, &result) != 0) fail(tenon_last_error());
  const DLTensor* tensor = tenon_tensor_view(&result);
  if (!tensor || tensor->ndim != 2 || tensor->shape[0] != count || tensor->shape[1] != kDigits) {
    fail("the network's answer is no float[count, 10]");
  }
  memcpy(probabilities, (const char*)tensor->data + tensor->byte_offset,
         (size_t)count * kDigits * sizeof(float));
  tenon_any_release(&result);
}

static void print_latency(const tenon_any* machine, const float* images, int64_t batch,
                          float* probabilities) {
  enum { kCalls = 2000 };
  static double times[kCalls];
  for (int i = 0; i < kCalls; ++i) {
    const double start = now_us();
    read_into(machine, images, batch, probabilities);
    times[i] = now_us() - start;
  }
  qsort(times, kCalls, sizeof times[0], compare_doubles);
  printf("  batch %-3" PRId64 "  p50 %7.1f us   p99 %7.1f us\n", batch, times[kCalls / 2],
         times[kCalls * 99 / 100]);
}

// ---- Breaking things --------------------------------------------------------------------------

// Prints the pending error, which must have `code`.
static void show_error(const char* title, int code) {
  const char* text = code == 0 ? NULL : tenon_last_error();
  if (!text) fail(title);
  printf("-- %s\n%s\n\n", title, text);
}

static void flip_a_byte(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) fail(path);
  fseek(file, 0, SEEK_END);
  const size_t size = (size_t)ftell(file);
  rewind(file);
  char* bytes = malloc(size);
  if (!bytes || fread(bytes, 1, size, file) != size) fail(path);
  fclose(file);
  // The last kilobytes contain native code and its description, after the constants.
  bytes[size - size / 8] ^= 0x10;
  char damaged[4096];
  snprintf(damaged, sizeof damaged, "%s.damaged", path);
  file = fopen(damaged, "wb");
  if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) fail(damaged);
  free(bytes);
  tenon_any program = TENON_NONE_VALUE;
  const int code = tenon_program_load(damaged, &program);
  show_error("one bit of the file flipped", code);
  remove(damaged);
}

int main(int argc, char** argv) {
  if (argc != 3) fail("usage: digits DIGITS.tnx FOLDER");
  int64_t count = 0, label_count = 0, stored_count = 0;
  float* images = read_npy(argv[2], "images.npy", "'<f4'", sizeof(float), &count);
  int64_t* labels = read_npy(argv[2], "labels.npy", "'<i8'", sizeof(int64_t), &label_count);
  float* stored = read_npy(argv[2], "probabilities.npy", "'<f4'", sizeof(float), &stored_count);
  count /= kPixels;
  if (label_count != count || stored_count != count * kDigits) fail("the .npy files do not agree");

  tenon_any program = TENON_NONE_VALUE, machine = TENON_NONE_VALUE;
  if (tenon_program_load(argv[1], &program) != 0) fail(tenon_last_error());
  if (tenon_machine_create(&program, &machine) != 0) fail(tenon_last_error());
  const size_t answer_bytes = (size_t)count * kDigits * sizeof(float);
  float* answers = malloc(answer_bytes);
  float* again = malloc(answer_bytes);
  if (!answers || !again) fail("out of memory");
  read_into(&machine, images, count, answers);

  printf("\n== Images that it never saw, and the digits that it predicts\n\n");
  int64_t chosen[kPerRow], wrong[kPerRow];
  int rights = 0, framework_rights = 0, shown_wrong = 0;
  double difference = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int right = greatest(answers + i * kDigits) == labels[i];
    rights += right;
    framework_rights += greatest(stored + i * kDigits) == labels[i];
    if (!right && shown_wrong < kPerRow) wrong[shown_wrong++] = i;
    for (int digit = 0; digit < kDigits; ++digit) {
      const double d = fabs((double)answers[i * kDigits + digit] - stored[i * kDigits + digit]);
      if (!(d <= difference)) difference = d;  // keeps a NaN
    }
  }
  for (int row = 0; row < 2; ++row) {
    for (int i = 0; i < kPerRow; ++i) chosen[i] = (row * kPerRow + i) * 37 % count;
    show_images(images, labels, answers, chosen, kPerRow);
  }
  if (shown_wrong) {
    printf("  and some that it gets wrong:\n\n");
    show_images(images, labels, answers, wrong, shown_wrong);
  }

  printf("== Accuracy on %" PRId64 " held-out images\n", count);
  printf("  Tenon               %d right  %.2f %%\n", rights, 100.0 * rights / (double)count);
  printf("  training framework  %d right  %.2f %%\n", framework_rights,
         100.0 * framework_rights / (double)count);
  printf("  greatest difference from its stored outputs: %.2g\n", difference);
  if (!(difference < 1e-4)) fail("the answers differ from the stored ones");

  printf("\n== One file, every batch size\n");
  const int64_t batches[] = {1, 7, count};
  for (size_t b = 0; b < sizeof batches / sizeof batches[0]; ++b) {
    int same = 0;
    for (int64_t at = 0; at < count; at += batches[b]) {
      const int64_t n = batches[b] < count - at ? batches[b] : count - at;
      read_into(&machine, images + at * kPixels, n, again + at * kDigits);
    }
    double most = 0;
    for (int64_t i = 0; i < count; ++i) {
      same += greatest(again + i * kDigits) == greatest(answers + i * kDigits);
    }
    for (int64_t i = 0; i < count * kDigits; ++i) {
      const double d = fabs((double)again[i] - answers[i]);
      if (!(d <= most)) most = d;
    }
    printf("  batch %-3" PRId64 "  %d of %" PRId64 " digits the same, greatest difference %.1g\n",
           batches[b], same, count, most);
    if (same != count) fail("batch sizes disagree");
  }

  printf("\n== Latency (of a tiny network: 34,000 weights)\n");
  for (size_t b = 0; b < 2; ++b) print_latency(&machine, images, batches[b], again);

  printf("\n== Errors\n\n");
  flip_a_byte(argv[1]);
  tenon_any result = TENON_NONE_VALUE;
  show_error("images of 7 rows", read_digits(&machine, images, 1, kSide - 1, &result));
  tenon_limits limits = TENON_NO_LIMITS;
  limits.fuel = 0;
  if (tenon_machine_set_limits(&machine, &limits) != 0) fail(tenon_last_error());
  show_error("no fuel", read_digits(&machine, images, 1, kSide, &result));

  limits = (tenon_limits)TENON_NO_LIMITS;
  if (tenon_machine_set_limits(&machine, &limits) != 0) fail(tenon_last_error());
  read_into(&machine, images, count, again);
  if (memcmp(answers, again, answer_bytes) != 0) fail("the machine answers differently now");
  printf("== The same machine still works: all %" PRId64 " results as before\n", count);

  tenon_any_release(&machine);
  tenon_any_release(&program);
  free(again);
  free(answers);
  free(stored);
  free(labels);
  free(images);
  return 0;
}
