#include "import/onnx/read_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "import/onnx/message_memory.h"
#include "object/object_budget.h"
#include "onnx.pb.h"
#include "support/error_testing.h"
#include "support/poll.h"

namespace tenon::onnx {
namespace {

namespace fs = std::filesystem;

class ReadModel : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() /
           cat("tenon_read_model_", ::getpid(), "_",
               testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  void write(const std::string& name, const std::string& bytes) {
    fs::create_directories((dir_ / name).parent_path());
    std::ofstream(dir_ / name, std::ios::binary) << bytes;
  }

  // A model whose initializer `w`, tensor[2; f32], lies in an external file.
  void write_external(const std::string& location, const std::string& offset = "",
                      const std::string& length = "") {
    schema::ModelProto m;
    m.set_ir_version(8);
    auto* t = m.mutable_graph()->add_initializer();
    t->set_name("w");
    t->set_data_type(schema::TensorProto::FLOAT);
    t->add_dims(2);
    t->set_data_location(schema::TensorProto::EXTERNAL);
    for (auto [key, value] :
         {std::pair{"location", location}, {"offset", offset}, {"length", length}}) {
      if (value.empty()) continue;
      auto* e = t->add_external_data();
      e->set_key(key);
      e->set_value(value);
    }
    write("m.onnx", m.SerializeAsString());
  }

  Error error() {
    try {
      read_model((dir_ / "m.onnx").string());
    } catch (const Error& e) {
      return e;
    }
    return Error(ErrorKind::Internal, "nothing was thrown");
  }

  fs::path dir_;
};

TEST_F(ReadModel, MapsExternalData) {
  const float values[] = {9, 1.5, 2.5, 9};
  write("data/w.bin", std::string(reinterpret_cast<const char*>(values), sizeof values));
  write_external("data/w.bin", "4", "8");
  Model m = read_model((dir_ / "m.onnx").string());
  EXPECT_EQ(m.file, "m.onnx");
  ASSERT_EQ(m.graph.initializers.size(), 1u);
  const Tensor& w = m.graph.initializers[0].tensor;
  EXPECT_EQ(w.data_as<float>()[0], 1.5F);
  EXPECT_EQ(w.data_as<float>()[1], 2.5F);
  EXPECT_TRUE(w.read_only());
}

TEST_F(ReadModel, RefusesPathsThatLeaveTheFolder) {
  for (const char* location : {"/etc/passwd", "../w.bin", "a/../../w.bin", ".."}) {
    write_external(location);
    Error e = error();
    EXPECT_EQ(e.kind(), ErrorKind::Usage) << location;
    EXPECT_EQ(e.message(), "external data of 'w' is refused") << location;
  }
}

TEST_F(ReadModel, RefusesLinksThatLeaveTheFolder) {
  fs::create_symlink("/etc/passwd", dir_ / "w.bin");
  write_external("w.bin");
  EXPECT_EQ(error().render(), R"(error: external data of 'w' is refused
  model     m.onnx
  found     location "w.bin"   a link that leaves the folder
  expected  a file in the model's folder or below it)");
}

TEST_F(ReadModel, FollowsLinksWithinTheFolder) {
  write("real.bin", std::string(8, '\0'));
  fs::create_symlink("real.bin", dir_ / "w.bin");
  write_external("w.bin");
  EXPECT_EQ(read_model((dir_ / "m.onnx").string()).graph.initializers.size(), 1u);
}

TEST_F(ReadModel, RefusesDataBeyondTheFile) {
  write("w.bin", std::string(8, '\0'));
  write_external("w.bin", "4");
  EXPECT_EQ(error().render(), R"(error: tensor 'w' is damaged
  model     m.onnx
  where     external data "w.bin"
  found     8 bytes
  expected  at least 4 + 8 bytes)");
  write_external("w.bin", "18446744073709551615");
  EXPECT_EQ(error().kind(), ErrorKind::Damaged);
  write_external("w.bin", "0", "4");
  EXPECT_EQ(error().kind(), ErrorKind::Damaged);
  write_external("w.bin", "-4");
  EXPECT_EQ(error().kind(), ErrorKind::Damaged);
}

TEST_F(ReadModel, PollsWhileItLooksAtExternalData) {
  struct PollCount final : Poller {
    void poll() override { ++polls; }
    int polls = 0;
  };
  const auto polls_of = [&](schema::TensorProto::DataType type, uint64_t count,
                            const char* offset) {
    write_external("w.bin", offset);
    std::ifstream in(dir_ / "m.onnx", std::ios::binary);
    schema::ModelProto m;
    EXPECT_TRUE(m.ParseFromIstream(&in));
    auto* t = m.mutable_graph()->mutable_initializer(0);
    t->set_data_type(type);
    t->set_dims(0, static_cast<int64_t>(count));
    write("m.onnx", m.SerializeAsString());
    PollCount count_polls;
    const Poller::Scope scope(&count_polls);
    read_model((dir_ / "m.onnx").string());
    return count_polls.polls;
  };
  write("w.bin", "");
  fs::resize_file(dir_ / "w.bin", 4 * kPollBytes + 8);
  const int few = polls_of(schema::TensorProto::FLOAT, 2, "");
  EXPECT_GE(polls_of(schema::TensorProto::BOOL, 4 * kPollBytes, ""), few + 3);
  EXPECT_GE(polls_of(schema::TensorProto::FLOAT, kPollBytes, "1"), few + 3);  // is copied
}

TEST_F(ReadModel, SaysWhichExternalFileIsMissing) {
  write_external("w.bin");
  Error e = error();
  EXPECT_EQ(e.kind(), ErrorKind::Usage);
  EXPECT_EQ(e.message(), "external data of 'w' cannot be read");
}

TEST_F(ReadModel, RefusesWhatIsNoModel) {
  write("m.onnx", "\x0a\xff");
  EXPECT_EQ(error().kind(), ErrorKind::Damaged);
  write("m.onnx", "");
  EXPECT_EQ(error().kind(), ErrorKind::Damaged);
  fs::remove(dir_ / "m.onnx");
  EXPECT_EQ(error().kind(), ErrorKind::Usage);
  fs::create_directory(dir_ / "m.onnx");
  EXPECT_EQ(error().kind(), ErrorKind::Usage);
}

TEST_F(ReadModel, RefusesALaterFormatByNumber) {
  schema::ModelProto m;
  m.set_ir_version(99);
  m.mutable_graph();
  write("m.onnx", m.SerializeAsString());
  EXPECT_EQ(error().render(), R"(error: m.onnx has a later ONNX format version
  found     IR version 99
  expected  at most 14
  help: export it with an earlier version of the onnx package)");
}

TEST_F(ReadModel, RefusesGraphsNestedTooDeeply) {
  schema::GraphProto graph;
  for (int i = 0; i < 60; ++i) {
    schema::GraphProto outer;
    *outer.add_node()->add_attribute()->mutable_g() = graph;
    graph = outer;
  }
  schema::ModelProto m;
  *m.mutable_graph() = graph;
  write("m.onnx", m.SerializeAsString());
  EXPECT_EQ(error().kind(), ErrorKind::Damaged);
}

TEST_F(ReadModel, NamesUnnamedNodes) {
  schema::ModelProto m;
  m.mutable_graph()->add_node()->set_op_type("Relu");
  m.mutable_graph()->add_node()->set_op_type("Add");
  Model model = parse_model(m.SerializeAsString(), "m.onnx");
  EXPECT_EQ(model.graph.nodes[1].name, "Add_1");
}

// Two bytes are a node.
std::string of_empty_nodes(int n) {
  schema::ModelProto model;
  for (int i = 0; i < n; ++i) model.mutable_graph()->add_node();
  return model.SerializeAsString();
}

TEST(MessageMemory, CountsMessagesAsTheyAreInMemory) {
  const std::string bytes = of_empty_nodes(10'000);
  EXPECT_LT(bytes.size(), 20'100U);
  EXPECT_GT(message_memory(bytes), 10'000 * (sizeof(schema::NodeProto) + sizeof(Node)));

  schema::ModelProto weights;
  weights.mutable_graph()->add_initializer()->set_raw_data(std::string(1 << 20, 'x'));
  EXPECT_LT(message_memory(weights.SerializeAsString()), (1U << 20) + 4096);
}

TEST(MessageMemory, TakesAnyBytes) {
  std::string bytes = of_empty_nodes(50);
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int value : {0x00, 0x0a, 0x7f, 0xff}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(value);
      EXPECT_LT(message_memory(damaged), 1'000'000U);
      EXPECT_LT(message_memory(damaged.substr(0, i)), 1'000'000U);
    }
  }
}

struct AtMost final : MemoryAccount {
  size_t left;
  explicit AtMost(size_t bytes) : left(bytes) {}
  bool count_memory(size_t bytes) override {
    if (bytes > left) return false;
    left -= bytes;
    return true;
  }
  void discount_memory(size_t bytes) override { left += bytes; }
  [[noreturn]] void fail_memory(size_t) override {
    throw Error(ErrorKind::Runtime, "over the limit");
  }
};

TEST(ReadModelLimits, RefuseAModelBeforeItIsParsed) {
  AtMost account(1 << 20);
  ObjectBudget budget(&account);
  EXPECT_THAT(failure_of([] { parse_model(of_empty_nodes(10'000), "m"); }),
              testing::HasSubstr("over the limit"));
  parse_model(of_empty_nodes(10), "m");
}

struct Stops final : Poller {
  int left;
  explicit Stops(int polls) : left(polls) {}
  void poll() override {
    if (--left < 0) throw Error(ErrorKind::Runtime, "stopped");
  }
};

TEST(ReadModelLimits, StopBetweenBlocksOfTheFile) {
  schema::ModelProto model;
  model.mutable_graph()->add_initializer()->set_raw_data(std::string(8 << 20, 'x'));
  const std::string bytes = model.SerializeAsString();
  Stops stops(3);
  Poller::Scope scope(&stops);
  EXPECT_THAT(failure_of([&] { parse_model(bytes, "m"); }), testing::HasSubstr("stopped"));
}

}  // namespace
}  // namespace tenon::onnx
