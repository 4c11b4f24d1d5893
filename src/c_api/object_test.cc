#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>

#include "c_api/entry.h"
#include "c_api/layout_asserts.h"
#include "device/parallel.h"
#include "device/thread_pool.h"
#include "object/array.h"
#include "object/reflect.h"
#include "object/registry.h"

extern "C" int tenon_test_c_program(void);
extern "C" int tenon_test_c_record(const tenon_any* record);

namespace tenon {
namespace {

tenon_any c_value(const AnyView& a) {
  return *reinterpret_cast<const tenon_any*>(&a);
}

struct Out {
  tenon_any value = TENON_NONE_VALUE;
  ~Out() { tenon_any_release(&value); }
  operator tenon_any*() { return &value; }
  const AnyView& view() const { return c_api::view(&value); }
};

TEST(CApi, ACProgramRuns) {
  EXPECT_EQ(tenon_test_c_program(), 0);
  EXPECT_TRUE(unregister_function("test.c_add"));
}

struct CRecord : Object {
  int64_t number = 7;
  std::string text = "seven";
  TENON_TYPE(TypeIndex::TestBegin + 0x60);
};
const TypeInfo& CRecord::type_info() {
  static const Field fields[] = {field("number", &CRecord::number), field("text", &CRecord::text)};
  static const TypeInfo info = type_of<CRecord>("test.CRecord", fields);
  return info;
}

TEST(CApi, ObjectsHaveATypeAndFields) {
  register_types({&CRecord::type_info()});
  const Any record = make<CRecord>();
  const tenon_any value = c_value(record);
  EXPECT_EQ(tenon_test_c_record(&value), 0);
}

TEST(CApi, TypesOfTheHostHaveFieldsAndData) {
  const char* fields[] = {"name"};
  int32_t type = 0, released = 0;
  ASSERT_EQ(tenon_type_register("test.capi.Host", fields, 1, &type), 0);
  tenon_any object = TENON_NONE_VALUE, name = TENON_NONE_VALUE, key = TENON_NONE_VALUE;
  ASSERT_EQ(tenon_string_create("widget", 6, &name), 0);
  const auto release = [](void* count) { ++*static_cast<int32_t*>(count); };
  ASSERT_EQ(tenon_object_create(type, &name, 1, &released, release, &object), 0);
  EXPECT_EQ(tenon_object_data(&object), &released);
  EXPECT_EQ(tenon_object_data(&name), nullptr);
  tenon_any_release(&name);
  ASSERT_EQ(tenon_object_field(&object, "name", &name), 0);
  EXPECT_STREQ(tenon_string_view(&name).data, "widget");
  ASSERT_EQ(tenon_type_key(&object, &key), 0);
  EXPECT_STREQ(tenon_string_view(&key).data, "test.capi.Host");
  tenon_any_release(&object);
  EXPECT_EQ(released, 1);

  EXPECT_EQ(tenon_type_register("test.capi.Host", nullptr, 0, &type), -1);
  EXPECT_THAT(tenon_last_error(), testing::HasSubstr("is registered with other fields"));
  const char* unnamed[] = {nullptr};
  EXPECT_EQ(tenon_type_register("test.capi.Unnamed", unnamed, 1, &type), -1);
  EXPECT_THAT(tenon_last_error(), testing::HasSubstr("a field's name must not be NULL"));
  EXPECT_EQ(tenon_object_create(type, &name, 2, nullptr, nullptr, &object), -1);
  EXPECT_THAT(tenon_last_error(), testing::HasSubstr("needs a value for each field"));
  tenon_any_release(&name);
  tenon_any_release(&key);
}

TEST(CApi, ArraysAndShapes) {
  int64_t dims[2] = {3, 4};
  Out shape, array, element, text;
  ASSERT_EQ(tenon_shape_create(dims, 2, shape), 0);
  size_t rank = 0;
  EXPECT_EQ(tenon_shape_view(shape, &rank)[1], 4);
  EXPECT_EQ(rank, 2u);
  tenon_any items[2] = {shape.value, {TENON_INT, 0, {5}}};
  ASSERT_EQ(tenon_array_create(items, 2, array), 0);
  EXPECT_EQ(tenon_array_size(array), 2);
  EXPECT_EQ(tenon_array_size(shape), -1);
  ASSERT_EQ(tenon_array_get(array, 1, element), 0);
  EXPECT_EQ(element.value.v.i, 5);
  EXPECT_EQ(tenon_array_get(array, 2, element), -1);
  EXPECT_STREQ(tenon_last_error(), "error: element 2 of an array of 2");
  EXPECT_EQ(element.value.v.i, 5);
  ASSERT_EQ(tenon_any_repr(array, text), 0);
  EXPECT_EQ(text.view().as<String>(), "[shape[3, 4], 5]");
}

TEST(CApi, AnErrorCanBeTakenReadAndRestored) {
  tenon_error_set(TENON_ERROR_DAMAGED, "broken");
  Out error, text;
  tenon_error_take(error);
  EXPECT_EQ(tenon_error_kind(error), TENON_ERROR_DAMAGED);
  EXPECT_STREQ(tenon_error_message(error).data, "broken");
  ASSERT_EQ(tenon_error_text(error, text), 0);
  EXPECT_EQ(text.view().as<String>(), "error: broken");
  EXPECT_EQ(tenon_last_error(), nullptr);
  ASSERT_EQ(tenon_error_restore(error), 0);
  EXPECT_STREQ(tenon_last_error(), "error: broken");
  EXPECT_EQ(tenon_error_kind(text), -1);
  Out none;
  tenon_error_take(none);
  EXPECT_EQ(none.value.type_index, TENON_NONE);
}

TEST(CApi, AnErrorThatIsRestoredStaysAsItWas) {
  tenon_error_set(TENON_ERROR_RUNTIME, "broken");
  Out error, text;
  tenon_error_take(error);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(tenon_error_restore(error), 0);
    Error e = take_error();
    e.frame("in the machine");  // as each call on the way out adds
    EXPECT_EQ(e.render(), "error: broken\n  at in the machine");
  }
  ASSERT_EQ(tenon_error_text(error, text), 0);
  EXPECT_EQ(text.view().as<String>(), "error: broken");
}

TEST(CApi, AnErrorTellsItsParts) {
  set_error(Error(ErrorKind::Usage, Span::at("a.tn", 3), "broken")
                .found("2", "of x")
                .expected("3")
                .frame("main")
                .help("mend it"));
  Out error, parts;
  tenon_error_take(error);
  ASSERT_EQ(tenon_error_parts(error, parts), 0);
  EXPECT_EQ(repr(parts.view()),
            R"([["span", "a.tn:3", ""], ["found", "2", "of x"], ["expected", "3", ""], )"
            R"(["at", "main", ""], ["help", "mend it", ""]])");
  EXPECT_EQ(tenon_error_parts(parts, error), -1);
  EXPECT_STREQ(tenon_last_error(), "error: not an error, or out is NULL");
}

TEST(CApi, AnErrorIsMadeOfItsParts) {
  set_error(Error(ErrorKind::Damaged, Span::at("a.tn", 3, 1), "broken")
                .found("2", "of x")
                .frame("main")
                .help("mend it")
                .also(Error(ErrorKind::Damaged, Span::at("a.tn", 4, 7), "torn").expected("whole"))
                .also(Error(ErrorKind::Damaged, "bent")));
  Out error, parts, same, text, expected, same_parts;
  tenon_error_take(error);
  ASSERT_EQ(tenon_error_parts(error, parts), 0);
  ASSERT_EQ(tenon_error_create(TENON_ERROR_DAMAGED, "broken", parts, same), 0);
  EXPECT_EQ(tenon_error_kind(same), TENON_ERROR_DAMAGED);
  ASSERT_EQ(tenon_error_text(same, text), 0);
  ASSERT_EQ(tenon_error_text(error, expected), 0);
  EXPECT_EQ(text.view().as<String>(), expected.view().as<String>());
  ASSERT_EQ(tenon_error_parts(same, same_parts), 0);
  EXPECT_EQ(repr(same_parts.view()), repr(parts.view()));
  ASSERT_EQ(tenon_error_create(TENON_ERROR_USAGE, "alone", nullptr, same), 0);
  ASSERT_EQ(tenon_error_text(same, text), 0);
  EXPECT_EQ(text.view().as<String>(), "error: alone");
}

TEST(CApi, AnErrorOfOtherPartsIsRefused) {
  Out out, array;
  ASSERT_EQ(tenon_array_create(nullptr, 0, array), 0);
  const tenon_any row = static_cast<tenon_any*>(array)[0];
  Out rows;
  ASSERT_EQ(tenon_array_create(&row, 1, rows), 0);
  EXPECT_EQ(tenon_error_create(TENON_ERROR_USAGE, "x", rows, out), -1);
  EXPECT_THAT(tenon_last_error(), testing::HasSubstr("[label, text, note]"));
  EXPECT_EQ(tenon_error_create(TENON_ERROR_USAGE, "x", out, out), -1);
  EXPECT_THAT(tenon_last_error(), testing::HasSubstr("[label, text, note]"));
  EXPECT_EQ(tenon_error_create(99, "x", nullptr, out), -1);
  EXPECT_THAT(tenon_last_error(), testing::HasSubstr("an unknown kind"));
  EXPECT_EQ(tenon_error_create(TENON_ERROR_USAGE, nullptr, nullptr, out), -1);
}

TEST(CApi, AnUnknownErrorKindIsARuntimeError) {
  tenon_error_set(99, nullptr);
  Out error;
  tenon_error_take(error);
  EXPECT_EQ(tenon_error_kind(error), TENON_ERROR_RUNTIME);
}

TEST(CApi, ArgumentsFromOutsideAreCopiedOrRefused) {
  auto f = Function::from_typed([](const Any& a) { return a; });
  tenon_any function = c_value(AnyView(f));
  tenon_any raw = TENON_NONE_VALUE;
  raw.type_index = TENON_RAW_STRING;
  raw.v.c_str = "a raw string";
  Out result;
  ASSERT_EQ(tenon_function_call(&function, &raw, 1, result), 0);
  EXPECT_EQ(result.value.type_index, TENON_STRING);
  raw.type_index = 7;  // a bare DLTensor*
  EXPECT_EQ(tenon_function_call(&function, &raw, 1, result), -1);
  EXPECT_NE(std::string(tenon_last_error()).find("a bare DLTensor*"), std::string::npos);
  EXPECT_EQ(tenon_function_call(&raw, nullptr, 0, result), -1);
  EXPECT_EQ(tenon_function_call(&function, nullptr, 1, result), -1);
  EXPECT_STREQ(tenon_last_error(), "error: args must not be NULL, nor n negative");
}

TEST(CApi, ManyArgumentsArePassed) {
  int32_t seen = 0;
  auto f = Function::from_packed([&](const AnyView* args, int32_t n, Any*) {
    for (int32_t i = 0; i < n; ++i) seen += static_cast<int32_t>(args[i].v.i);
  });
  tenon_any function = c_value(AnyView(f));
  std::vector<tenon_any> args(100, tenon_any{TENON_INT, 0, {1}});
  ASSERT_EQ(tenon_function_call(&function, args.data(), 100, nullptr), 0);
  EXPECT_EQ(seen, 100);
}

TEST(CApi, AHostFunctionsResultIsAdmitted) {
  Out function;
  auto returns_raw = [](void*, const tenon_any*, int32_t, tenon_any* result) {
    result->type_index = TENON_RAW_STRING;
    result->v.c_str = "a raw string";
    return 0;
  };
  ASSERT_EQ(tenon_function_create(returns_raw, nullptr, nullptr, function), 0);
  EXPECT_EQ(function.view().as<Function>()().type_index, TypeIndex::Str);
  auto returns_unknown = [](void*, const tenon_any*, int32_t, tenon_any* result) {
    result->type_index = 13;
    return 0;
  };
  ASSERT_EQ(tenon_function_create(returns_unknown, nullptr, nullptr, function), 0);
  Out result;
  EXPECT_EQ(tenon_function_call(function, nullptr, 0, result), -1);
  EXPECT_NE(std::string(tenon_last_error()).find("doesn't accept"), std::string::npos);
}

TEST(CApi, AForeignFunctionIsWrapped) {
  struct ForeignFunction {
    Object header;
    PackedCall call;
    void* cpp_call;
  };
  static int deleted = 0;
  ForeignFunction foreign{};
  foreign.header.counts = Object::kCountsOfNew;
  foreign.header.type_index = TypeIndex::Function;
  foreign.header.deleter = [](void*, int) { ++deleted; };
  foreign.call = [](void* self, const AnyView*, int32_t n, Any* result) {
    EXPECT_EQ(static_cast<Object*>(self)->type_index, TypeIndex::Function);
    *result = Any(n);
    return 0;
  };
  {
    Function f = admit(AnyView::of_object(&foreign.header)).as<Function>();
    EXPECT_TRUE(f.get()->is_ours());
    EXPECT_EQ(f(1, 2).as<int64_t>(), 2);
    EXPECT_TRUE(admit(f).as<Function>().same_as(f));
  }
  EXPECT_EQ(deleted, 0);
  release(&foreign.header);
  EXPECT_EQ(deleted, 1);
}

TEST(CApi, MissingPointersAreErrorsAndNoCrash) {
  Out out;
  EXPECT_EQ(tenon_string_create(nullptr, 3, out), -1);
  EXPECT_EQ(tenon_string_create("abc", SIZE_MAX, out), -1);
  EXPECT_EQ(tenon_bytes_create("abc", SIZE_MAX - 1, out), -1);
  EXPECT_STREQ(tenon_last_error(), "error: out of memory");
  const int64_t dim = 1;
  EXPECT_EQ(tenon_shape_create(&dim, SIZE_MAX / 4, out), -1);
  EXPECT_EQ(tenon_array_create(&out.value, SIZE_MAX / 4, out), -1);
  EXPECT_EQ(tenon_tensor_create(&dim, 33, f32, kCpu, out), -1);
  EXPECT_STREQ(tenon_last_error(),
               "error: a tensor has too many dimensions\n"
               "  found     33\n"
               "  expected  at most 32");
  EXPECT_EQ(tenon_shape_create(nullptr, 3, out), -1);
  EXPECT_EQ(tenon_array_create(nullptr, 3, out), -1);
  EXPECT_EQ(tenon_any_copy(nullptr, out), -1);
  EXPECT_EQ(tenon_tensor_from_dlpack(nullptr, 0, out), -1);
  EXPECT_EQ(tenon_tensor_to_dlpack(nullptr, nullptr), -1);
  EXPECT_EQ(tenon_function_create(nullptr, nullptr, nullptr, out), -1);
  EXPECT_EQ(tenon_function_call(nullptr, nullptr, 0, out), -1);
  EXPECT_EQ(tenon_function_register(nullptr, nullptr, 0), -1);
  EXPECT_EQ(tenon_function_find(nullptr, out), -1);
  EXPECT_EQ(tenon_tensor_create(nullptr, 1, f32, kCpu, out), -1);
  EXPECT_EQ(tenon_tensor_create(nullptr, 0, DataType(kDLInt, 3), kCpu, out), -1);
  EXPECT_NE(tenon_last_error(), nullptr);
  tenon_object_release(nullptr);
  tenon_any_release(nullptr);
}

TEST(CApi, ValuesThatHoldNullPointersAreRefused) {
  auto f = Function::from_typed([](const Any& a) { return a; });
  tenon_any function = c_value(AnyView(f));
  for (int32_t type : {TENON_RAW_STRING, TENON_STRING, TENON_BYTES, TENON_ERROR, TENON_FUNCTION,
                       TENON_SHAPE, TENON_TENSOR, TENON_ARRAY}) {
    tenon_any null = TENON_NONE_VALUE;
    null.type_index = type;
    Out out;
    EXPECT_EQ(tenon_any_copy(&null, out), -1) << type;
    EXPECT_NE(std::string(tenon_last_error()).find("is a null pointer"), std::string::npos);
    EXPECT_EQ(tenon_any_repr(&null, out), -1);
    EXPECT_EQ(tenon_array_create(&null, 1, out), -1);
    EXPECT_EQ(tenon_function_call(&function, &null, 1, out), -1);
    EXPECT_EQ(tenon_function_call(&null, nullptr, 0, out), -1);
    EXPECT_EQ(tenon_function_register("test.null", &null, 0), -1);
    EXPECT_EQ(tenon_function_register("test.null", &null, 2), -1);
    EXPECT_THAT(tenon_last_error(), testing::HasSubstr("unknown flags"));
    EXPECT_EQ(tenon_array_get(&null, 0, out), -1);
    DLManagedTensorVersioned* managed = nullptr;
    EXPECT_EQ(tenon_tensor_to_dlpack_versioned(&null, &managed), -1);
    EXPECT_EQ(tenon_string_view(&null).data, nullptr);
    EXPECT_EQ(tenon_tensor_view(&null), nullptr);
    EXPECT_EQ(tenon_shape_view(&null, nullptr), nullptr);
    EXPECT_EQ(tenon_array_size(&null), -1);
    EXPECT_EQ(tenon_error_kind(&null), -1);
    EXPECT_EQ(tenon_error_message(&null).data, nullptr);
    EXPECT_EQ(tenon_error_text(&null, out), -1);
    EXPECT_EQ(tenon_error_restore(&null), -1);
    EXPECT_EQ(tenon_program_functions(&null, out), -1);
    EXPECT_EQ(tenon_machine_create(&null, out), -1);
    tenon_any_release(&null);
    EXPECT_EQ(null.type_index, TENON_NONE);
  }
  Out returns;
  auto null_tensor = [](void*, const tenon_any*, int32_t, tenon_any* result) {
    result->type_index = TENON_TENSOR;
    return 0;
  };
  ASSERT_EQ(tenon_function_create(null_tensor, nullptr, nullptr, returns), 0);
  Out result;
  EXPECT_EQ(tenon_function_call(returns, nullptr, 0, result), -1);
  EXPECT_NE(std::string(tenon_last_error()).find("is a null pointer"), std::string::npos);
}

TEST(CApi, AFunctionThatFailsSilentlyIsSaidToHave) {
  Out function, result;
  auto fails = [](void*, const tenon_any*, int32_t, tenon_any*) { return -1; };
  ASSERT_EQ(tenon_function_create(fails, nullptr, nullptr, function), 0);
  tenon_error_set(TENON_ERROR_USAGE, "an older error");
  EXPECT_EQ(tenon_function_call(function, nullptr, 0, result), -1);
  EXPECT_STREQ(tenon_last_error(),
               "error: a function of the host failed without setting an error\n"
               "  help: call tenon_error_set before returning non-zero");
  EXPECT_EQ(tenon_last_error(), nullptr);
}

TEST(CApi, AFunctionThatCallsItselfWithoutEndFails) {
  static Out function;
  static int calls = 0;
  auto calls_itself = [](void*, const tenon_any*, int32_t, tenon_any* result) {
    ++calls;
    return tenon_function_call(function, nullptr, 0, result);
  };
  ASSERT_EQ(tenon_function_create(calls_itself, nullptr, nullptr, function), 0);
  for (int i = 0; i < 2; ++i) {  // the error leaves nothing counted
    Out result;
    calls = 0;
    EXPECT_EQ(tenon_function_call(function, nullptr, 0, result), -1);
    EXPECT_EQ(calls, 200);
    EXPECT_EQ(std::string_view(tenon_last_error()),
              "error: calls between the host and programs are nested too deep\n"
              "  expected  at most 200 within each other\n"
              "  help: call functions directly, within the host or within the program");
  }
  tenon_any_release(function);
}

TEST(CApi, ALibraryIsNamedWithItsPrefix) {
  const std::string folder = testing::TempDir();
  std::ofstream(folder + "/libtenon_near.so") << "not loaded";
  const char* search = folder.c_str();
  EXPECT_EQ(tenon_library_load("near", &search, 1, nullptr), -1);
  EXPECT_NE(std::string(tenon_last_error()).find("help: did you mean tenon_near?"),
            std::string::npos);
  EXPECT_EQ(tenon_library_load("far", &search, 1, nullptr), -1);
  EXPECT_EQ(std::string(tenon_last_error()).find("help:"), std::string::npos);
}

TEST(CApi, ACallThatSucceedsLeavesAnErrorWaiting) {
  Out function, result;
  auto works = [](void*, const tenon_any*, int32_t, tenon_any*) { return 0; };
  ASSERT_EQ(tenon_function_create(works, nullptr, nullptr, function), 0);
  tenon_error_set(TENON_ERROR_USAGE, "an older error");
  EXPECT_EQ(tenon_function_call(function, nullptr, 0, result), 0);
  EXPECT_STREQ(tenon_last_error(), "error: an older error");
}

TEST(CApi, TellsATensorsFlagsAndThreads) {
  int64_t shape[1] = {2};
  Tensor t = Tensor::empty(shape, f32);
  auto flags = [](const Tensor& tensor) {
    tenon_any value = c_value(AnyView(tensor));
    return tenon_tensor_flags(&value);
  };
  EXPECT_EQ(flags(t), 0);
  EXPECT_EQ(flags(t.as_read_only()), TENON_TENSOR_READ_ONLY);
  EXPECT_EQ(flags(t.as_constant()), TENON_TENSOR_READ_ONLY | TENON_TENSOR_CONSTANT);
  EXPECT_EQ(flags(t.as_constant().reshaped(shape)), TENON_TENSOR_READ_ONLY | TENON_TENSOR_CONSTANT);
  EXPECT_EQ(tenon_tensor_flags(nullptr), 0);
  tenon_any null{TENON_TENSOR, 0, {0}};
  EXPECT_EQ(tenon_tensor_flags(&null), 0);
  EXPECT_GE(tenon_function_threads(), 1);
  ThreadsScope scope(3);
  EXPECT_EQ(tenon_function_threads(), 3);
}

TEST(CApi, MakesAndReadsTensorsOfStrings) {
  const tenon_text texts[] = {{"caf\xc3\xa9", 5}, {nullptr, 0}};
  const int64_t shape[] = {2, 1};
  Out made;
  ASSERT_EQ(tenon_string_tensor_create(texts, shape, 2, made), 0);
  const DLTensor* view = tenon_tensor_view(made);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->ndim, 2);
  EXPECT_EQ(view->dtype.code, kDLOpaqueHandle);
  EXPECT_EQ(tenon_tensor_flags(made), TENON_TENSOR_READ_ONLY);
  const tenon_text first = tenon_string_tensor_element(made, 0);
  EXPECT_EQ(std::string_view(first.data, first.size), "caf\xc3\xa9");
  EXPECT_TRUE(tenon_string_tensor_element(made, 1).data);
  EXPECT_EQ(tenon_string_tensor_element(made, 1).size, 0u);
  EXPECT_FALSE(tenon_string_tensor_element(made, 2).data);
  EXPECT_FALSE(tenon_string_tensor_element(nullptr, 0).data);
  const Tensor floats = Tensor::empty(shape, f32);
  const tenon_any numbers = c_value(AnyView(floats));
  EXPECT_FALSE(tenon_string_tensor_element(&numbers, 0).data);
  DLManagedTensorVersioned* managed = nullptr;
  EXPECT_EQ(tenon_tensor_to_dlpack_versioned(made, &managed), -1);
  EXPECT_THAT(tenon_last_error(), testing::HasSubstr("DLPack can't express a tensor of strings"));
}

TEST(CApi, RefusesStringsThatAreNone) {
  const tenon_text bad[] = {{"a", 1}, {"\xff", 1}};
  const int64_t two[] = {2}, huge[] = {INT64_MAX, 2}, none[] = {INT64_MAX, 0};
  Out made;
  EXPECT_EQ(tenon_string_tensor_create(bad, two, 1, made), -1);
  EXPECT_THAT(tenon_last_error(), testing::HasSubstr("element 1 of the tensor is not valid UTF-8"));
  EXPECT_EQ(tenon_string_tensor_create(bad, huge, 2, made), -1);
  EXPECT_THAT(tenon_last_error(), testing::HasSubstr("negative or overflows"));
  EXPECT_EQ(tenon_string_tensor_create(nullptr, two, 1, made), -1);
  EXPECT_THAT(tenon_last_error(), testing::HasSubstr("elements must not be NULL"));
  const tenon_text null[] = {{nullptr, 1}, {nullptr, 0}};
  EXPECT_EQ(tenon_string_tensor_create(null, two, 1, made), -1);
  EXPECT_THAT(tenon_last_error(), testing::HasSubstr("an element's data must not be NULL"));
  EXPECT_EQ(tenon_string_tensor_create(nullptr, none, 2, made), 0);
  // No other function makes one.
  EXPECT_EQ(tenon_tensor_create(two, 1, {kDLOpaqueHandle, 64, 1}, {kDLCPU, 0}, made), -1);
}

TEST(CApi, LendsThreads) {
  static int32_t asked = 0;
  auto run = [](void (*work)(void*, int32_t), void* context, int32_t threads) {
    asked = threads;
    work(context, 0);
  };
  auto other = [](void (*work)(void*, int32_t), void* context, int32_t) { work(context, -7); };
  auto count = []() -> int32_t { return 5; };
  auto sum = [] {
    std::atomic<int64_t> sum{0};
    parallel_for(100, 1, [&](int64_t b, int64_t e) { sum += e - b; });
    return sum.load();
  };
  EXPECT_EQ(tenon_threads_lend(run, count, 0), 0);
  EXPECT_EQ(sum(), 100);
  EXPECT_EQ(asked, 5);
  EXPECT_EQ(tenon_threads_lend(other, count, 0), 0);  // the earlier loan stays
  asked = 0, sum();
  EXPECT_EQ(asked, 5);
  EXPECT_EQ(tenon_threads_lend(other, count, TENON_REPLACE), 0);
  asked = 0, sum();
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(tenon_threads_lend(run, nullptr, 0), -1);
  EXPECT_STREQ(tenon_last_error(), "error: run and count must both be functions or both be NULL");
  EXPECT_EQ(tenon_threads_lend(run, count, TENON_REPLACE | 32), -1);
  EXPECT_THAT(tenon_last_error(), testing::HasSubstr("unknown flags"));
  EXPECT_EQ(tenon_threads_lend(nullptr, nullptr, TENON_REPLACE), 0);
  EXPECT_EQ(thread_team().run, run_on_pool);
  EXPECT_EQ(tenon_threads_lend(run, count, 0), 0);  // that was a choice, too
  EXPECT_EQ(thread_team().run, run_on_pool);
}

}  // namespace
}  // namespace tenon
