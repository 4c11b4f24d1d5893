/* Uses the C interface as a C program would; run by object_test.cc and executable_test.cc. Returns
 * 0, or the number of the line that failed. */
#include <string.h>

#include "c_api/layout_asserts.h"

int tenon_test_c_program(void);
int tenon_test_c_record(const tenon_any* record);
int tenon_test_c_executable(const void* data, size_t size);

#define CHECK(condition) \
  if (!(condition)) return __LINE__

static int released = 0;

static int add(void* context, const tenon_any* args, int32_t n, tenon_any* result) {
  if (n != 2 || args[0].type_index != TENON_INT || args[1].type_index != TENON_INT) {
    tenon_error_set(TENON_ERROR_USAGE, "add takes two integers");
    return -1;
  }
  result->type_index = TENON_INT;
  result->v.i = args[0].v.i + args[1].v.i + *(int64_t*)context;
  return 0;
}

static void release_context(void* context) {
  (void)context;
  ++released;
}

static int functions(void) {
  int64_t offset = 100;
  tenon_any f = TENON_NONE_VALUE, found = TENON_NONE_VALUE, result = TENON_NONE_VALUE;
  tenon_any args[2] = {{TENON_INT, 0, {1}}, {TENON_INT, 0, {2}}};
  CHECK(tenon_function_create(add, &offset, release_context, &f) == 0);
  CHECK(tenon_function_call(&f, args, 2, &result) == 0);
  CHECK(result.type_index == TENON_INT && result.v.i == 103);

  CHECK(tenon_function_call(&f, args, 1, &result) == -1);
  CHECK(strcmp(tenon_last_error(), "error: add takes two integers") == 0);
  CHECK(tenon_last_error() == NULL);

  CHECK(tenon_function_register("test.c_add", &f, TENON_FOR_FILES) == 0);
  CHECK(tenon_function_register("test.c_add", &f, 0) == -1);
  CHECK(tenon_function_register("test.c_add", &f, TENON_REPLACE) == 0);
  CHECK(tenon_function_find("test.c_add", &found) == 0);
  CHECK(found.v.object == f.v.object);
  tenon_any_release(&f);
  tenon_any_release(&found);
  CHECK(f.type_index == TENON_NONE && released == 0); /* the registry holds it */
  return 0;
}

static int strings(void) {
  tenon_any s = TENON_NONE_VALUE;
  CHECK(tenon_string_create("short", 5, &s) == 0);
  CHECK(s.type_index == TENON_SMALL_STRING && strcmp(tenon_string_view(&s).data, "short") == 0);
  CHECK(tenon_string_create("a longer string", 15, &s) == 0);
  CHECK(s.type_index == TENON_STRING && tenon_string_view(&s).size == 15);
  tenon_any_release(&s);
  CHECK(tenon_string_view(&s).data == NULL);
  return 0;
}

static int deleted = 0;
static void delete_managed(DLManagedTensor* self) {
  (void)self;
  ++deleted;
}

static void end_memory(void* context) {
  ++*(int*)context;
}

static int tensors(void) {
  float data[6] = {0, 1, 2, 3, 4, 5};
  int64_t shape[2] = {2, 3};
  DLManagedTensor managed;
  DLManagedTensorVersioned* out = NULL;
  tenon_any t = TENON_NONE_VALUE, n = TENON_NONE_VALUE;
  memset(&managed, 0, sizeof managed);
  managed.dl_tensor.data = data;
  managed.dl_tensor.device.device_type = kDLCPU;
  managed.dl_tensor.ndim = 2;
  managed.dl_tensor.dtype.code = kDLFloat;
  managed.dl_tensor.dtype.bits = 32;
  managed.dl_tensor.dtype.lanes = 1;
  managed.dl_tensor.shape = shape;
  managed.deleter = delete_managed;
  CHECK(tenon_tensor_from_dlpack(&managed, 0, &t) == 0);
  CHECK(tenon_tensor_view(&t)->data == data);
  CHECK(tenon_tensor_to_dlpack_versioned(&t, &out) == 0);
  tenon_any_release(&t);
  CHECK(deleted == 0 && out->dl_tensor.data == data);
  out->deleter(out);
  CHECK(deleted == 1);

  {
    int ended = 0;
    int64_t strides[2] = {1, 2};
    DLTensor view = managed.dl_tensor;
    view.strides = strides;
    CHECK(tenon_tensor_from_memory(&view, 1, &ended, end_memory, &t) == 0);
    strides[0] = 7;
    CHECK(tenon_tensor_view(&t)->data == data && tenon_tensor_view(&t)->strides[0] == 1);
    CHECK(tenon_tensor_flags(&t) == TENON_TENSOR_READ_ONLY && ended == 0);
    tenon_any_release(&t);
    CHECK(ended == 1);
    view.ndim = -1;
    CHECK(tenon_tensor_from_memory(&view, 0, &ended, end_memory, &t) == -1 && ended == 2);
    CHECK(tenon_tensor_from_memory(NULL, 0, &ended, end_memory, &t) == -1 && ended == 3);
    CHECK(tenon_tensor_from_memory(&managed.dl_tensor, 0, NULL, NULL, &t) == 0);
    tenon_any_release(&t);
  }

  CHECK(tenon_tensor_create(shape, 2, managed.dl_tensor.dtype, managed.dl_tensor.device, &n) == 0);
  CHECK(tenon_tensor_view(&n)->ndim == 2);
  tenon_any_release(&n);
  return 0;
}

static int maps(void) {
  tenon_any keys[2] = {{TENON_INT, 0, {1}}, {TENON_RAW_STRING, 0, {0}}};
  tenon_any values[2] = {{TENON_INT, 0, {10}}, {TENON_BOOL, 0, {1}}};
  tenon_any map = TENON_NONE_VALUE, key = TENON_NONE_VALUE, value = TENON_NONE_VALUE;
  keys[1].v.c_str = "name";
  CHECK(tenon_map_create(keys, values, 2, &map) == 0);
  CHECK(map.type_index == TENON_MAP && tenon_map_size(&map) == 2);
  CHECK(tenon_map_get(&map, &keys[1], &value) == 1 && value.type_index == TENON_BOOL);
  CHECK(tenon_map_get(&map, &values[0], &value) == 0 && value.type_index == TENON_BOOL);
  CHECK(tenon_map_entry(&map, 0, &key, &value) == 0 && key.v.i == 1 && value.v.i == 10);
  CHECK(tenon_map_entry(&map, 1, NULL, NULL) == 0);
  CHECK(tenon_map_entry(&map, 2, &key, &value) == -1);
  CHECK(strstr(tenon_last_error(), "a map has no entry at this index") != NULL);
  CHECK(tenon_map_size(&keys[0]) == -1);
  CHECK(tenon_map_get(&keys[0], &keys[0], &value) == -1 && tenon_last_error() != NULL);
  CHECK(tenon_any_equal(&map, &map) == 1 && tenon_any_equal(&map, &keys[0]) == 0);
  tenon_any_release(&map);
  return 0;
}

/* The fields of a record of object_test.cc: number = 7, text = "seven". */
int tenon_test_c_record(const tenon_any* record) {
  tenon_any key = TENON_NONE_VALUE, fields = TENON_NONE_VALUE, value = TENON_NONE_VALUE;
  CHECK(tenon_type_key(record, &key) == 0 &&
        strcmp(tenon_string_view(&key).data, "test.CRecord") == 0);
  CHECK(tenon_object_fields(record, &fields) == 0 && tenon_array_size(&fields) == 2);
  CHECK(tenon_array_get(&fields, 1, &value) == 0);
  CHECK(strcmp(tenon_string_view(&value).data, "text") == 0);
  CHECK(tenon_object_field(record, "number", &value) == 0 && value.v.i == 7);
  CHECK(tenon_object_field(record, "text", &value) == 0);
  CHECK(strcmp(tenon_string_view(&value).data, "seven") == 0);
  CHECK(tenon_object_field(record, "texts", &value) == -1);
  CHECK(strstr(tenon_last_error(), "number, text") != NULL);
  CHECK(tenon_any_repr(record, &value) == 0);
  CHECK(strcmp(tenon_string_view(&value).data, "test.CRecord(number=7, text=\"seven\")") == 0);
  CHECK(tenon_type_key(&fields, &key) == 0 && strcmp(tenon_string_view(&key).data, "array") == 0);
  CHECK(tenon_object_fields(&value, &fields) == 0 && tenon_array_size(&fields) == 0);
  tenon_any_release(&key);
  tenon_any_release(&fields);
  tenon_any_release(&value);
  return 0;
}

static int modules(void) {
  int64_t offset = 1;
  tenon_any f = TENON_NONE_VALUE, map = TENON_NONE_VALUE, none = TENON_NONE_VALUE;
  tenon_any a = TENON_NONE_VALUE, b = TENON_NONE_VALUE, found = TENON_NONE_VALUE;
  tenon_any name = {TENON_RAW_STRING, 0, {0}};
  name.v.c_str = "add";
  CHECK(tenon_function_create(add, &offset, NULL, &f) == 0);
  CHECK(tenon_map_create(&name, &f, 1, &map) == 0);
  CHECK(tenon_module_create("a", &map, &a) == 0 && a.type_index == TENON_MODULE);
  tenon_any_release(&map);
  CHECK(tenon_map_create(NULL, NULL, 0, &map) == 0);
  CHECK(tenon_module_create("b", &map, &b) == 0);
  CHECK(tenon_module_function(&b, "add", &found) == -1);
  CHECK(strstr(tenon_last_error(), "b has no function") != NULL);
  CHECK(tenon_module_import(&b, &a) == 0);
  CHECK(tenon_module_import(&a, &b) == -1 && tenon_last_error() != NULL);
  CHECK(tenon_module_function(&b, "add", &found) == 0 && found.v.object == f.v.object);
  CHECK(tenon_module_functions(&a, &found) == 0 && tenon_array_size(&found) == 1);
  CHECK(tenon_module_functions(&none, &found) == -1);
  CHECK(strstr(tenon_last_error(), "not a module") != NULL);
  CHECK(tenon_library_load("tenon_nowhere", NULL, 0, NULL) == -1);
  CHECK(strstr(tenon_last_error(), "there is no library tenon_nowhere") != NULL);
  tenon_any_release(&found);
  tenon_any_release(&b);
  tenon_any_release(&a);
  tenon_any_release(&map);
  tenon_any_release(&f);
  return 0;
}

int tenon_test_c_program(void) {
  int line;
  CHECK(tenon_c_api_version() == TENON_C_API_VERSION);
  if ((line = functions()) != 0) return line;
  if ((line = strings()) != 0) return line;
  if ((line = maps()) != 0) return line;
  if ((line = modules()) != 0) return line;
  return tensors();
}

/* The executable of executable_test.cc: @main(x, n) returns (x, n + 1). */
int tenon_test_c_executable(const void* data, size_t size) {
  tenon_any module = TENON_NONE_VALUE;
  tenon_any program = TENON_NONE_VALUE, machine = TENON_NONE_VALUE, result = TENON_NONE_VALUE;
  tenon_any next = TENON_NONE_VALUE, args[2] = {TENON_NONE_VALUE, {TENON_INT, 0, {41}}};
  tenon_limits limits = TENON_NO_LIMITS;
  tenon_load_options untrusted = TENON_LOAD_DEFAULTS;
  tenon_value_info info = {.size = sizeof info};
  int64_t shape[2] = {1, 3};
  int32_t params = 0;
  DLDataType f32 = {kDLFloat, 32, 1};
  DLDevice cpu = {kDLCPU, 0};
  untrusted.flags = TENON_UNTRUSTED;
  CHECK(tenon_program_from_bytes(data, size, &untrusted, &program) == 0);
  CHECK(tenon_program_signature(&program, "main", &params, NULL) == 0 && params == 2);
  CHECK(tenon_program_param(&program, "main", 0, &info) == 0 && info.kind == TENON_TENSOR);
  CHECK(tenon_machine_create(&program, &machine) == 0);
  CHECK(tenon_program_module(&program, NULL, &module) == 0 && module.type_index == TENON_MODULE);
  CHECK(tenon_module_function(&module, "main", &next) == 0 && next.type_index == TENON_FUNCTION);
  untrusted.modules = &module;
  untrusted.module_count = 1;
  CHECK(tenon_program_from_bytes(data, size, &untrusted, &program) == 0);
  untrusted.modules = &next;
  CHECK(tenon_program_from_bytes(data, size, &untrusted, &program) == -1);
  CHECK(strstr(tenon_last_error(), "modules[0] of tenon_load_options is not a module") != NULL);
  tenon_any_release(&module);
  tenon_any_release(&program); /* the machine keeps it */
  limits.fuel = 100;
  CHECK(tenon_machine_set_limits(&machine, &limits) == 0);
  CHECK(tenon_tensor_create(shape, 2, f32, cpu, &args[0]) == 0);
  CHECK(tenon_machine_call(&machine, "main", args, 2, &result) == 0);
  CHECK(tenon_array_get(&result, 1, &next) == 0 && next.v.i == 42);
  CHECK(tenon_machine_call(&machine, "spin", NULL, 0, &result) == -1);
  CHECK(strstr(tenon_last_error(), "ran out of fuel") != NULL);
  CHECK(tenon_machine_cancel(&machine) == 0);
  tenon_any_release(&args[0]);
  tenon_any_release(&result);
  tenon_any_release(&machine);
  return 0;
}
