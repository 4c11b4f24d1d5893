/* Compiles a model in a C program that links the runtime alone, and runs it.
 *
 *   compile MODEL.onnx|PROGRAM.tn
 *
 * The compiler's library is loaded at run time; its functions are called by name. A pass of this
 * program's own runs before the compiler's: it prints the functions of the module. */
#include <stdio.h>
#include <string.h>

#include "tenon/c_api.h"

#define MOST_ARGUMENTS 16
#define MOST_PASSES 64
#define PASS "example.print_functions"

static int fail(const char* what) {
  const char* text = tenon_last_error();
  fprintf(stderr, "compile: %s\n%s\n", what, text ? text : "");
  return 1;
}

/* Calls a registered function. */
static int call(const char* name, const tenon_any* args, int32_t n, tenon_any* result) {
  tenon_any function = TENON_NONE_VALUE;
  int code = tenon_function_find(name, &function);
  if (code == 0) code = tenon_function_call(&function, args, n, result);
  tenon_any_release(&function);
  return code;
}

/* pass(module, context) -> module: prints the functions' names and gives the module back. */
static int print_functions(void* context, const tenon_any* args, int32_t n, tenon_any* result) {
  (void)context;
  tenon_any functions = TENON_NONE_VALUE, name = TENON_NONE_VALUE;
  if (n != 2) {
    tenon_error_set(TENON_ERROR_USAGE, "a pass takes a module and a context");
    return -1;
  }
  if (tenon_object_field(&args[0], "functions", &functions) != 0) return -1;
  for (size_t i = 0; i < (size_t)tenon_map_size(&functions); ++i) {
    if (tenon_map_entry(&functions, i, &name, NULL) != 0) return -1;
    printf("function %s\n", tenon_string_view(&name).data);
  }
  tenon_any_release(&name);
  tenon_any_release(&functions);
  return tenon_any_copy(&args[0], result);
}

static int register_pass(void) {
  tenon_any pass = TENON_NONE_VALUE;
  int code = tenon_function_create(print_functions, NULL, NULL, &pass);
  if (code == 0) code = tenon_function_register(PASS, &pass, 0);
  tenon_any_release(&pass);
  return code;
}

/* The value of a map under a name. */
static int get(const tenon_any* map, const char* name, tenon_any* out) {
  tenon_any key = TENON_NONE_VALUE;
  int code = tenon_string_create(name, strlen(name), &key);
  if (code == 0 && tenon_map_get(map, &key, out) != 1) code = -1;
  tenon_any_release(&key);
  return code;
}

/* The names of the passes that run by default, with ours before them. */
static int pipeline(tenon_any* out) {
  tenon_any passes = TENON_NONE_VALUE, pass = TENON_NONE_VALUE, level = TENON_NONE_VALUE;
  tenon_any names[MOST_PASSES] = {TENON_NONE_VALUE};
  const int64_t default_level = 2;
  size_t count = 1;
  int code = tenon_string_create(PASS, strlen(PASS), &names[0]);
  if (code == 0) code = call("tenon.list_passes", NULL, 0, &passes);
  for (int64_t i = 0; code == 0 && i < tenon_array_size(&passes) && count < MOST_PASSES; ++i) {
    code = tenon_array_get(&passes, (size_t)i, &pass);
    if (code == 0) code = get(&pass, "level", &level);
    if (code == 0) code = get(&pass, "name", &names[count]);
    if (code == 0 && level.v.i <= default_level) ++count;
  }
  if (code == 0) code = tenon_array_create(names, count, out);
  for (size_t i = 0; i < MOST_PASSES; ++i) tenon_any_release(&names[i]);
  tenon_any_release(&pass);
  tenon_any_release(&passes);
  return code;
}

/* The options {"passes": pipeline}. */
static int compile_options(tenon_any* out) {
  tenon_any key = TENON_NONE_VALUE, passes = TENON_NONE_VALUE;
  int code = pipeline(&passes);
  if (code == 0) code = tenon_string_create("passes", 6, &key);
  if (code == 0) code = tenon_map_create(&key, &passes, 1, out);
  tenon_any_release(&key);
  tenon_any_release(&passes);
  return code;
}

/* A tensor of ones; sizes that the program leaves open become 2. */
static int ones(const tenon_value_info* info, tenon_any* out) {
  int64_t shape[32];
  const int32_t rank = info->rank < 0 || !info->dims ? 0 : info->rank;
  const DLDevice cpu = {kDLCPU, 0};
  int64_t count = 1;
  for (int32_t i = 0; i < rank; ++i) {
    shape[i] = info->dims[i] < 0 ? 2 : info->dims[i];
    count *= shape[i];
  }
  if (tenon_tensor_create(shape, rank, info->dtype, cpu, out) != 0) return -1;
  void* data = tenon_tensor_view(out)->data;
  memset(data, 0, (size_t)(count * info->dtype.bits / 8));
  if (info->dtype.code == kDLFloat && info->dtype.bits == 32) {
    for (int64_t i = 0; i < count; ++i) ((float*)data)[i] = 1;
  }
  return 0;
}

static int run(const tenon_any* bytes) {
  tenon_any program = TENON_NONE_VALUE, machine = TENON_NONE_VALUE, result = TENON_NONE_VALUE;
  tenon_any text = TENON_NONE_VALUE, args[MOST_ARGUMENTS] = {TENON_NONE_VALUE};
  int32_t params = 0;
  const tenon_text file = tenon_string_view(bytes);
  if (tenon_program_from_bytes(file.data, file.size, 0, &program) != 0)
    return fail("the executable can't be loaded");
  if (tenon_machine_create(&program, &machine) != 0) return fail("no machine");
  if (tenon_program_signature(&program, "main", &params, NULL) != 0) return fail("no main");
  if (params > MOST_ARGUMENTS) return fail("too many parameters for this example");
  for (int32_t i = 0; i < params; ++i) {
    tenon_value_info info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    if (tenon_program_param(&program, "main", i, &info) != 0) return fail("no parameter");
    printf("input  %s: %s\n", info.name.data, info.type.data);
    if (info.kind == TENON_TENSOR) {
      if (ones(&info, &args[i]) != 0) return fail("no tensor");
    } else {
      args[i].type_index = TENON_INT;
      args[i].v.i = 4;
    }
  }
  if (tenon_machine_call(&machine, "main", args, params, &result) != 0)
    return fail("the call failed");
  if (tenon_any_repr(&result, &text) != 0) return fail("no text");
  printf("result %s\n", tenon_string_view(&text).data);
  const DLTensor* tensor = tenon_tensor_view(&result);
  if (tensor && tensor->dtype.code == kDLFloat && tensor->dtype.bits == 32)
    printf("first  %g\n", (double)((const float*)tensor->data)[0]);
  tenon_any_release(&text);
  tenon_any_release(&result);
  for (int32_t i = 0; i < params; ++i) tenon_any_release(&args[i]);
  tenon_any_release(&machine);
  tenon_any_release(&program);
  return 0;
}

int main(int argc, char** argv) {
  tenon_any args[2] = {TENON_NONE_VALUE, TENON_NONE_VALUE};
  tenon_any module = TENON_NONE_VALUE, bytes = TENON_NONE_VALUE, key = TENON_NONE_VALUE;
  if (argc != 2) {
    fprintf(stderr, "usage: compile MODEL.onnx|PROGRAM.tn\n");
    return 2;
  }
  if (tenon_library_load("tenon_compiler", NULL, 0, NULL) != 0)
    return fail("the compiler's library can't be loaded");
  if (register_pass() != 0) return fail("the pass can't be registered");

  if (tenon_string_create(argv[1], strlen(argv[1]), &args[0]) != 0) return fail("no path");
  if (call("tenon.open", args, 2, &module) != 0) return fail("the model can't be read");
  tenon_any_release(&args[0]);
  if (tenon_type_key(&module, &key) != 0) return fail("no type");
  printf("a %s\n", tenon_string_view(&key).data);
  tenon_any_release(&key);

  args[0] = module; /* borrowed for the call */
  if (compile_options(&args[1]) != 0) return fail("the passes can't be listed");
  if (call("tenon.compile", args, 2, &bytes) != 0) return fail("the model can't be compiled");
  tenon_any_release(&module);
  tenon_any_release(&args[1]);
  const int code = run(&bytes);
  tenon_any_release(&bytes);
  return code;
}
