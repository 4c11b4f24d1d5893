/* A C program that runs a compiled model: build it against an installed Tenon.
 *
 *   embed PROGRAM.tnx [FUNCTION]
 *
 * Prints the function's signature, calls it with ones for every tensor (symbols that the file
 * leaves open become 2), and prints what comes back. The program may call the function
 * "host.scale", which is registered here. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/c_api.h"

static int fail(const char* what) {
  const char* text = tenon_last_error();
  fprintf(stderr, "embed: %s\n%s\n", what, text ? text : "");
  return 1;
}

/* host.scale(x: int) -> 10 * x: what a program can call of its host. */
static int scale(void* context, const tenon_any* args, int32_t n, tenon_any* result) {
  (void)context;
  if (n != 1 || args[0].type_index != TENON_INT) {
    tenon_error_set(TENON_ERROR_USAGE, "host.scale takes one integer");
    return -1;
  }
  result->type_index = TENON_INT;
  result->v.i = 10 * args[0].v.i;
  return 0;
}

/* A tensor of float32 ones in a shape's memory of its own. */
static int ones(const tenon_value_info* info, tenon_any* out) {
  int64_t shape[32];
  const int32_t rank = info->rank < 0 || !info->dims ? 0 : info->rank;
  int64_t count = 1;
  for (int32_t i = 0; i < rank; ++i) {
    shape[i] = info->dims[i] < 0 ? 2 : info->dims[i];
    count *= shape[i];
  }
  const DLDevice cpu = {kDLCPU, 0};
  if (tenon_tensor_create(shape, rank, info->dtype, cpu, out) != 0) return -1;
  const DLTensor* tensor = tenon_tensor_view(out);
  memset(tensor->data, 0, (size_t)(count * info->dtype.bits / 8));
  if (info->dtype.code == kDLFloat && info->dtype.bits == 32) {
    for (int64_t i = 0; i < count; ++i) ((float*)tensor->data)[i] = 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: embed PROGRAM.tnx [FUNCTION]\n");
    return 2;
  }
  const char* function = argc > 2 ? argv[2] : "main";
  setenv("GOMP_SPINCOUNT", "1000", 0); /* idle threads of oneDNN don't spin for long (docs/cpp.md) */
  if (tenon_c_api_version() != TENON_C_API_VERSION) return fail("header and library differ");

  tenon_any host = TENON_NONE_VALUE;
  if (tenon_function_create(scale, NULL, NULL, &host) != 0 ||
      tenon_function_register("host.scale", &host, 0) != 0) {
    return fail("the host's function can't be registered");
  }
  tenon_any_release(&host);

  tenon_any program = TENON_NONE_VALUE, machine = TENON_NONE_VALUE, result = TENON_NONE_VALUE;
  if (tenon_program_load(argv[1], &program) != 0) return fail("the program can't be loaded");
  if (tenon_machine_create(&program, &machine) != 0) return fail("no machine");

  int32_t params = 0, results = 0;
  if (tenon_program_signature(&program, function, &params, &results) != 0)
    return fail("no function");
  tenon_any args[32] = {TENON_NONE_VALUE};
  if (params > 32) return fail("too many parameters for this example");
  for (int32_t i = 0; i < params; ++i) {
    tenon_value_info info = {.size = sizeof info};
    if (tenon_program_param(&program, function, i, &info) != 0) return fail("no parameter");
    printf("input  %s: %s\n", info.name.data, info.type.data);
    if (info.kind == TENON_TENSOR) {
      if (ones(&info, &args[i]) != 0) return fail("no tensor");
    } else {
      args[i].type_index = TENON_INT;
      args[i].v.i = 4;
    }
  }

  tenon_limits limits = TENON_NO_LIMITS;
  limits.deadline_ns = INT64_C(10000000000);
  if (tenon_machine_set_limits(&machine, &limits) != 0) return fail("no limits");
  if (tenon_machine_call(&machine, function, args, params, &result) != 0)
    return fail("the call failed");

  tenon_any text = TENON_NONE_VALUE;
  if (tenon_any_repr(&result, &text) != 0) return fail("no text");
  printf("result %s\n", tenon_string_view(&text).data);
  const DLTensor* tensor = tenon_tensor_view(&result);
  if (tensor && tensor->dtype.code == kDLFloat && tensor->dtype.bits == 32) {
    printf("first  %g\n", (double)((const float*)tensor->data)[0]);
  }

  tenon_any_release(&text);
  tenon_any_release(&result);
  for (int32_t i = 0; i < params; ++i) tenon_any_release(&args[i]);
  tenon_any_release(&machine);
  tenon_any_release(&program);
  return 0;
}
