#include "import/onnx/tensor_file.h"

#include <gtest/gtest.h>

#include "object/array.h"
#include "object/cell.h"
#include "onnx.pb.h"

namespace tenon::onnx {
namespace {

template <class F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  return Error(ErrorKind::Internal, "nothing was thrown");
}

std::string bytes_of(const schema::TensorProto& t) {
  return t.SerializeAsString();
}

TEST(TensorFile, RoundTripKeepsTypeShapeAndBytes) {
  const std::vector<int16_t> values = {1, -2, 3, 4, 5, 6};
  const std::vector<int64_t> shape = {2, 3};
  Tensor t =
      Tensor::copy_of(std::span<const int64_t>(shape), i16, std::span<const int16_t>(values));
  Tensor back = decode_tensor(encode_tensor(t, "x"), "x.pb");
  EXPECT_EQ(to_text(back), "tensor[2, 3; i16]");
  EXPECT_EQ(0, std::memcmp(back.data(), values.data(), 12));
}

TEST(TensorFile, ReadsTheFieldOfTheType) {
  schema::TensorProto t;
  t.set_data_type(schema::TensorProto::BOOL);
  t.add_dims(3);
  for (int v : {0, 5, 1}) t.add_int32_data(v);
  Tensor b = decode_tensor(bytes_of(t), "b.pb");
  EXPECT_EQ(b.data_as<uint8_t>()[1], 1);

  schema::TensorProto f;
  f.set_data_type(schema::TensorProto::FLOAT);
  f.add_float_data(2.5F);
  Tensor x = decode_tensor(bytes_of(f), "x.pb");
  EXPECT_EQ(x.rank(), 0);
  EXPECT_EQ(*x.data_as<float>(), 2.5F);
}

TEST(TensorFile, RawBooleansBecomeZeroOrOne) {
  schema::TensorProto t;
  t.set_data_type(schema::TensorProto::BOOL);
  t.add_dims(2);
  t.set_raw_data(std::string("\x00\xff", 2));
  EXPECT_EQ(decode_tensor(bytes_of(t), "b.pb").data_as<uint8_t>()[1], 1);
}

TEST(TensorFile, ZeroSizeTensorsNeedNoData) {
  schema::TensorProto t;
  t.set_data_type(schema::TensorProto::FLOAT);
  t.add_dims(0);
  t.add_dims(int64_t{1} << 62);
  EXPECT_EQ(decode_tensor(bytes_of(t), "x.pb").count(), 0);
}

TEST(TensorFile, RefusesCutOffData) {
  schema::TensorProto t;
  t.set_data_type(schema::TensorProto::FLOAT);
  t.add_dims(2);
  t.set_raw_data("1234567");
  Error e = error_of([&] { decode_tensor(bytes_of(t), "x.pb"); });
  EXPECT_EQ(e.kind(), ErrorKind::Damaged);
  EXPECT_EQ(e.render(), R"(error: tensor 'x.pb' is damaged
  where     raw_data
  found     7 bytes
  expected  8 bytes   for 2 elements of f32)");
}

TEST(TensorFile, RefusesSizesThatOverflow) {
  schema::TensorProto t;
  t.set_data_type(schema::TensorProto::DOUBLE);
  t.add_dims(int64_t{1} << 40);
  t.add_dims(int64_t{1} << 40);
  EXPECT_EQ(error_of([&] { decode_tensor(bytes_of(t), "x.pb"); }).kind(), ErrorKind::Damaged);
}

TEST(TensorFile, RefusesTypesByName) {
  schema::TensorProto t;
  t.set_data_type(schema::TensorProto::FLOAT6E2M3);
  t.add_dims(1);
  t.add_int32_data(1);
  Error e = error_of([&] { decode_tensor(bytes_of(t), "x.pb"); });
  EXPECT_EQ(e.kind(), ErrorKind::Unsupported);
  EXPECT_EQ(e.render(), "error: x.pb: float6e2m3 is not implemented");
}

TEST(TensorFile, ComplexNumbersArePairs) {
  schema::TensorProto t;
  t.set_data_type(schema::TensorProto::COMPLEX64);
  t.add_dims(2);
  for (const float part : {1.0F, -2.0F, 0.5F}) t.add_float_data(part);
  EXPECT_EQ(error_of([&] { decode_tensor(bytes_of(t), "x.pb"); }).render(),
            R"(error: tensor 'x.pb' is damaged
  where     float_data
  found     3 elements
  expected  4 elements   for 2 elements of c64)");
  t.add_float_data(4);
  const Tensor x = decode_tensor(bytes_of(t), "x.pb");
  EXPECT_EQ(x.dtype(), c64);
  EXPECT_EQ(x.count(), 2);
  EXPECT_EQ(x.data_as<float>()[1], -2);
  EXPECT_EQ(x.data_as<float>()[3], 4);

  schema::TensorProto wide;
  wide.set_data_type(schema::TensorProto::COMPLEX128);
  for (const double part : {1.5, -2.5}) wide.add_double_data(part);
  const Tensor y = decode_tensor(bytes_of(wide), "y.pb");
  EXPECT_EQ(y.dtype(), c128);
  EXPECT_EQ(y.data_as<double>()[1], -2.5);
}

TEST(TensorFile, ElementsNarrowerThanAByteArePackedInFiles) {
  schema::TensorProto raw, numbers;
  for (schema::TensorProto* t : {&raw, &numbers}) {
    t->set_data_type(schema::TensorProto::INT4);
    t->add_dims(3);
  }
  raw.set_raw_data(std::string("\x1f\x08", 2));
  numbers.add_int32_data(0x1f);
  numbers.add_int32_data(0x08);
  for (const schema::TensorProto* t : {&raw, &numbers}) {
    const Tensor read = decode_tensor(bytes_of(*t), "x.pb");
    EXPECT_EQ(to_text(read), "tensor[3; i4]");
    const auto* d = read.data_as<int8_t>();
    EXPECT_EQ(std::vector<int>(d, d + 3), (std::vector<int>{-1, 1, -8}));
    schema::TensorProto back;
    ASSERT_TRUE(back.ParseFromString(encode_tensor(read, "")));
    EXPECT_EQ(back.raw_data(), raw.raw_data());
  }
  raw.set_raw_data("abc");
  EXPECT_NE(error_of([&] { decode_tensor(bytes_of(raw), "x.pb"); })
                .render()
                .find("found     3 bytes\n  expected  2 bytes"),
            std::string::npos);
  numbers.add_int32_data(1);
  EXPECT_NE(error_of([&] { decode_tensor(bytes_of(numbers), "x.pb"); }).render().find("3 elements"),
            std::string::npos);
}

TEST(TensorFile, NamesSequencesAndOptionals) {
  schema::SequenceProto s;
  s.set_name("s");
  s.set_elem_type(schema::SequenceProto::TENSOR);
  auto* t = s.add_tensor_values();
  t->set_data_type(schema::TensorProto::FLOAT);
  t->add_float_data(1);
  EXPECT_EQ(error_of([&] { decode_tensor(s.SerializeAsString(), "s.pb"); }).render(),
            "error: s.pb holds a sequence or an optional value\n"
            "  expected  a tensor");

  schema::OptionalProto o;
  o.set_name("o");
  o.set_elem_type(schema::OptionalProto::TENSOR);
  *o.mutable_tensor_value() = *t;
  EXPECT_EQ(error_of([&] { decode_tensor(o.SerializeAsString(), "o.pb"); }).render(),
            "error: o.pb holds a sequence or an optional value\n"
            "  expected  a tensor");
}

ValueType holding(ValueType::Kind kind, const ValueType& held) {
  ValueType out;
  out.kind = kind;
  out.held = std::make_shared<ValueType>(held);
  return out;
}

ValueType tensor_type() {
  ValueType out;
  out.kind = ValueType::kTensor;
  return out;
}

schema::TensorProto one_float(float value) {
  schema::TensorProto t;
  t.set_data_type(schema::TensorProto::FLOAT);
  t.add_float_data(value);
  return t;
}

TEST(TensorFile, ReadsSequencesAndOptionals) {
  const ValueType sequence = holding(ValueType::kSequence, tensor_type());
  schema::SequenceProto s;
  s.set_elem_type(schema::SequenceProto::TENSOR);
  *s.add_tensor_values() = one_float(1);
  *s.add_tensor_values() = one_float(2);
  const auto items = decode_value(s.SerializeAsString(), "s.pb", sequence).as<Array<Any>>();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(*items[1].as<Tensor>().data_as<float>(), 2);
  EXPECT_EQ(decode_value("", "s.pb", sequence).as<Array<Any>>().size(), 0u);

  schema::OptionalProto o;
  o.set_elem_type(schema::OptionalProto::SEQUENCE);
  *o.mutable_sequence_value() = s;
  const ValueType optional = holding(ValueType::kOptional, sequence);
  const auto some = decode_value(o.SerializeAsString(), "o.pb", optional).as<Ref<CellObj>>();
  EXPECT_EQ(some->tag, 1);
  EXPECT_EQ(some->begin()->as<Array<Any>>().size(), 2u);
  EXPECT_EQ(decode_value("", "o.pb", optional).as<Ref<CellObj>>()->tag, 0);
  EXPECT_EQ(
      *decode_value(bytes_of(one_float(3)), "x.pb", tensor_type()).as<Tensor>().data_as<float>(),
      3);
}

TEST(TensorFile, RefusesValuesOfOtherKinds) {
  const ValueType sequence = holding(ValueType::kSequence, tensor_type());
  schema::SequenceProto inner, outer;
  *inner.add_tensor_values() = one_float(1);
  *outer.add_sequence_values() = inner;
  EXPECT_EQ(error_of([&] { decode_value(outer.SerializeAsString(), "s.pb", sequence); }).render(),
            "error: s.pb holds elements of another kind\n"
            "  found     1 of 1 elements\n"
            "  expected  tensors");
  EXPECT_EQ(error_of([&] {
              decode_value(inner.SerializeAsString(), "s.pb",
                           holding(ValueType::kSequence, sequence));
            }).render(),
            "error: s.pb holds elements of another kind\n"
            "  found     1 of 1 elements\n"
            "  expected  sequences");
  ValueType map;
  map.kind = ValueType::kMap;
  EXPECT_EQ(
      error_of([&] { decode_value("", "s.pb", holding(ValueType::kSequence, map)); }).render(),
      "error: s.pb: only tensors, sequences and optional values are read");
  EXPECT_EQ(error_of([&] { decode_value("\x0a\xff", "s.pb", sequence); }).render(),
            "error: s.pb is not a serialized ONNX sequence\n"
            "  found     2 bytes that are not a message of type SequenceProto");
  EXPECT_EQ(error_of([&] {
              decode_value("\x0a\xff", "o.pb", holding(ValueType::kOptional, tensor_type()));
            }).render(),
            "error: o.pb is not a serialized ONNX optional value\n"
            "  found     2 bytes that are not a message of type OptionalProto");
}

TEST(TensorFile, RefusesSegments) {
  schema::TensorProto t;
  t.set_data_type(schema::TensorProto::FLOAT);
  t.add_dims(1);
  t.mutable_segment()->set_begin(0);
  EXPECT_EQ(error_of([&] { decode_tensor(bytes_of(t), "x.pb"); }).render(),
            "error: x.pb: a tensor in segments is not implemented");
}

TEST(TensorFile, RefusesWhatIsNoTensor) {
  EXPECT_EQ(error_of([&] { decode_tensor("\x0a\xff", "x.pb"); }).render(),
            "error: x.pb is not a serialized ONNX tensor\n"
            "  found     2 bytes that are not a TensorProto");
  EXPECT_EQ(error_of([&] { decode_tensor("", "x.pb"); }).render(),
            "error: x.pb is not a serialized ONNX tensor\n"
            "  found     no element type");
}

TEST(TensorFile, RefusesExternalData) {
  schema::TensorProto t;
  t.set_data_type(schema::TensorProto::FLOAT);
  t.set_data_location(schema::TensorProto::EXTERNAL);
  auto* e = t.add_external_data();
  e->set_key("location");
  e->set_value("w.bin");
  EXPECT_EQ(error_of([&] { decode_tensor(bytes_of(t), "x.pb"); }).kind(), ErrorKind::Usage);
}

TEST(TensorFile, AnyBytesGiveATensorOrAnError) {
  schema::TensorProto t;
  t.set_data_type(schema::TensorProto::INT64);
  t.add_dims(3);
  for (int i = 0; i < 3; ++i) t.add_int64_data(i * 1000);
  const std::string good = bytes_of(t);
  uint64_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (int k = 0; k < 3; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      bad[(state >> 33) % bad.size()] = static_cast<char>(state >> 55);
    }
    bad.resize(bad.size() - (state >> 20) % 3);
    try {
      decode_tensor(bad, "x.pb");
    } catch (const Error& e) {
      EXPECT_NE(e.kind(), ErrorKind::Internal);
    }
  }
}

}  // namespace
}  // namespace tenon::onnx
