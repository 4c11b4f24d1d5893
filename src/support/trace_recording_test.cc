#include "support/trace_recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "support/error_testing.h"
#include "support/phase.h"

namespace tenon::trace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "+0" begins an interval of kind 0, "-0" ends one.
std::vector<std::string> events_of(const Recording::Thread& thread) {
  std::vector<std::string> out;
  for_each_event(thread.words, [&](const Event& event) {
    out.push_back((event.ends ? "-" : "+") + std::to_string(static_cast<int>(event.kind)));
  });
  return out;
}

TEST(Trace, RecordsIntervalsOfEachThreadInOrder) {
  start();
  {
    const Phase outer("import");
    const Scope inner(Kind::Loop, 7, 9);
    std::thread([] { const Scope other(Kind::Codegen, "k"); }).join();
  }
  const Recording recording = stop();
  ASSERT_EQ(recording.threads.size(), 2u);
  EXPECT_THAT(events_of(recording.threads[0]), ElementsAre("+0", "+2", "-2", "-0"));
  EXPECT_THAT(events_of(recording.threads[1]), ElementsAre("+1", "-1"));
  EXPECT_LE(recording.begin_ns, recording.end_ns);
}

TEST(Trace, EventsHaveNumberKeyAndPayload) {
  start();
  const uint64_t words[] = {1, 2, 3};
  sink.load()->append(Kind::Kernel, false, 5, 6, words);
  sink.load()->begin(Kind::Phase, "a name of more than eight bytes");
  const Recording recording = stop();
  std::vector<Event> events;
  for_each_event(recording.threads.at(0).words, [&](const Event& e) { events.push_back(e); });
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].number, 5u);
  EXPECT_EQ(events[0].key, 6u);
  EXPECT_THAT(events[0].payload, ElementsAre(1, 2, 3));
  EXPECT_LE(recording.begin_ns, events[0].ns);
  EXPECT_LE(events[0].ns, events[1].ns);
  EXPECT_STREQ(reinterpret_cast<const char*>(events[1].payload.data()),
               "a name of more than eight bytes");
}

TEST(Trace, NothingIsRecordedOutsideOfARecording) {
  { const Phase before("before"); }
  start();
  const Recording empty = stop();
  { const Phase after("after"); }
  start();
  const Recording second = stop();
  EXPECT_TRUE(empty.threads.empty());
  EXPECT_TRUE(second.threads.empty());
}

TEST(Trace, AnIntervalThatBeganBeforeTheRecordingHasNoEnd) {
  {
    const Scope early(Kind::Phase, "early");
    start();
  }
  EXPECT_TRUE(stop().threads.empty());
}

TEST(Trace, ThereIsOneRecordingAtATime) {
  start();
  EXPECT_THAT(failure_of([] { start(); }), HasSubstr("already in progress"));
  stop();
  EXPECT_THAT(failure_of([] { stop(); }), HasSubstr("no recording is in progress"));
}

TEST(Trace, KeepsObjectsUntilTheRecordingIsGone) {
  static int holds;
  holds = 0;
  const auto hold = [](const void*) { ++holds; };
  const auto release = [](const void*) { --holds; };
  const int object = 3;
  start();
  sink.load()->keep(4, &object, hold, release);
  sink.load()->keep(4, &object, hold, release);
  {
    const Recording recording = stop();
    ASSERT_EQ(recording.kept.size(), 1u);
    EXPECT_EQ(recording.kept[0].object.get(), &object);
    EXPECT_EQ(holds, 1);
  }
  EXPECT_EQ(holds, 0);
}

TEST(Trace, AChildOfAForkRecordsNothingAndCanStartItsOwn) {
  start();
  const pid_t child = fork();
  if (child == 0) {
    if (sink.load()) _exit(1);
    start();
    { const Phase phase("in the child"); }
    _exit(stop().threads.size() == 1 ? 0 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  stop();
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tenon::trace
