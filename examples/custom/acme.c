/* A library of functions that compute the operators of the domain com.acme in ONNX models. */
#include <string.h>

#include <tenon/c_api.h>

/* "com.acme:Scale": x * factor, for f32. The program passes compact tensors. */
static int scale(void* context, const tenon_any* args, int32_t n, tenon_any* result) {
  (void)context, (void)n; /* the signature says how many there are */
  const DLTensor* x = tenon_tensor_view(&args[0]);
  if (tenon_tensor_create(x->shape, x->ndim, x->dtype, x->device, result) != 0) return -1;
  const DLTensor* y = tenon_tensor_view(result);
  const float* from = (const float*)((const char*)x->data + x->byte_offset);
  float* to = (float*)((char*)y->data + y->byte_offset);
  int64_t count = 1;
  for (int32_t i = 0; i < x->ndim; ++i) count *= x->shape[i];
  for (int64_t i = 0; i < count; ++i) to[i] = from[i] * (float)args[1].v.f;
  return 0;
}

/* "com.acme:Scale.signature": an input and an attribute. */
static int scale_signature(void* context, const tenon_any* args, int32_t n, tenon_any* result) {
  (void)context, (void)args, (void)n;
  const char* text = "(tensor[n, m; f32]; factor = 2.0) -> tensor[n, m; f32]";
  return tenon_string_create(text, strlen(text), result);
}

static int add(const char* name, tenon_packed_call call) {
  tenon_any function = TENON_NONE_VALUE;
  if (tenon_function_create(call, NULL, NULL, &function) != 0) return -1;
  const int code = tenon_function_register(name, &function, 0);
  tenon_any_release(&function);
  return code;
}

/* Called once, when a program or a compilation needs the library. */
TENON_API int tenon_register_library(void) {
  if (add("com.acme:Scale", scale) != 0) return -1;
  return add("com.acme:Scale.signature", scale_signature);
}
