#include "report/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "json/json.h"
#include "report/facts.h"
#include "report/formats.h"
#include "report/peak.h"
#include "report/record.h"
#include "report/writers.h"
#include "support/error_testing.h"

namespace tenon::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using trace::Kind;

TEST(Timeline, IntervalsNest) {
  Record record(false);
  {
    const trace::Scope outer(Kind::Phase, "outer");
    const trace::Scope inner(Kind::Phase, "inner");
  }
  const Timeline timeline = read_timeline(record.end());
  ASSERT_EQ(timeline.intervals.size(), 2u);
  EXPECT_EQ(timeline.intervals[0].name, "outer");
  EXPECT_EQ(timeline.intervals[0].parent, -1);
  EXPECT_EQ(timeline.intervals[1].name, "inner");
  EXPECT_EQ(timeline.intervals[1].parent, 0);
  EXPECT_LE(timeline.intervals[1].end_ns, timeline.intervals[0].end_ns);
  EXPECT_LE(timeline.intervals[0].end_ns, timeline.ns);
}

TEST(Timeline, AnEndAlsoEndsWhatAnExceptionLeftOpen) {
  Record record(false);
  {
    const trace::Scope outer(Kind::Phase, "outer");
    trace::sink.load()->append(Kind::Kernel, false, 1, 2, {});
  }
  { const trace::Scope after(Kind::Phase, "after"); }
  const Timeline timeline = read_timeline(record.end());
  ASSERT_EQ(timeline.intervals.size(), 3u);
  EXPECT_EQ(timeline.intervals[1].end_ns, timeline.intervals[0].end_ns);
  EXPECT_EQ(timeline.intervals[2].parent, -1);
}

TEST(Timeline, WhatIsStillOpenEndsWithTheRecording) {
  Record record(false);
  trace::sink.load()->begin(Kind::Phase, "open");
  const Timeline timeline = read_timeline(record.end());
  EXPECT_EQ(timeline.intervals.at(0).end_ns, timeline.ns);
}

TEST(Timeline, ThreadsOfALoopAreCausedByTheOneThatBeganIt) {
  Record record(false);
  {
    const trace::Scope first(Kind::Loop, 0, 77);
    std::thread([] { const trace::Scope other(Kind::Loop, 0, 77); }).join();
  }
  const Timeline timeline = read_timeline(record.end());
  ASSERT_EQ(timeline.intervals.size(), 2u);
  EXPECT_EQ(timeline.threads, (std::vector<std::string>{"main", "thread 1"}));
  EXPECT_EQ(timeline.intervals[0].caused_by, -1);
  EXPECT_EQ(timeline.intervals[1].caused_by, 0);
}

TEST(Timeline, ChromeEventsKeepTimesInMicroseconds) {
  Timeline timeline;
  timeline.threads = {"main"};
  Interval interval;
  interval.name = "fold \"constants\"";
  interval.begin_ns = 1500;
  interval.end_ns = 4000;
  timeline.intervals.push_back(interval);
  const Json json = parse_json(to_chrome_json(timeline, {}));
  const Json& event = json.array.at(2);  // after the names of process and thread
  EXPECT_EQ(event.find("name")->string, "fold \"constants\"");
  EXPECT_EQ(event.find("ts")->number, 1.5);
  EXPECT_EQ(event.find("dur")->number, 2.5);
}

TEST(Formats, TheNameOfAFileChoosesOne) {
  const auto suffix = [](const std::string& path) { return std::string(format_for(path).suffix); };
  EXPECT_EQ(suffix("t.json"), ".json");
  EXPECT_EQ(suffix("t.layers.json"), "layers.json");
  EXPECT_EQ(suffix("layers.json"), "layers.json");
  EXPECT_EQ(suffix("t.pftrace"), ".pftrace");
  EXPECT_EQ(suffix("t.html"), ".html");
}

TEST(Formats, AnErrorListsThemAll) {
  const std::string error = failure_of([] { format_for("t.csv"); });
  EXPECT_THAT(error, HasSubstr("doesn't name a format"));
  for (const Format& format : all_formats()) {
    EXPECT_THAT(error, HasSubstr(cat(format.suffix, " (", format.summary, ")")));
  }
}

TEST(Formats, EachIsWritten) {
  const Timeline timeline;
  Report report;
  report.timeline = &timeline;
  for (const Format& format : all_formats()) EXPECT_NE(format.write(report), "") << format.suffix;
}

// A page says why something is missing, and never that nothing ran when something did.
TEST(Html, SaysWhetherTheProgramWasRun) {
  Timeline timeline;
  Report report;
  report.timeline = &timeline;
  EXPECT_THAT(to_html(report), HasSubstr("was not run for this report"));
  Interval entry;
  entry.kind = Kind::Entry;
  entry.name = "main";
  timeline.intervals.push_back(entry);
  const std::string page = to_html(report);
  EXPECT_THAT(page, Not(HasSubstr("was not run for this report")));
  EXPECT_THAT(page, HasSubstr("Recordings do not include limits"));
}

// A file may list a kernel any number of times.
TEST(Html, HasTheTextOfAKernelOnce) {
  vm::Unit unit;
  for (int i = 0; i < 3; ++i) unit.packed.push_back({.name = "same", .kernel = true});
  Report report;
  report.unit = &unit;
  const std::string page = to_html(report);
  const std::string entry = "{\"name\":\"same\"";
  const size_t first = page.find(entry);
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(page.find(entry, first + 1), std::string::npos);
}

TEST(Facts, CountTheCallsOfEachFunction) {
  Timeline timeline;
  for (const char* name : {"main", "other", "main"}) {
    Interval entry;
    entry.kind = Kind::Entry;
    entry.name = name;
    timeline.intervals.push_back(entry);
  }
  using Fact = std::pair<std::string, std::string>;
  EXPECT_THAT(facts_of(nullptr, &timeline),
              testing::ElementsAre(Fact("Calls recorded", "2 of main, 1 of other")));
}

TEST(Peak, TheRooflineIsTheSlowerOfMemoryAndArithmetic) {
  const Peak peak{.flops_per_second = 1e9, .bytes_per_second = 1e9};
  EXPECT_DOUBLE_EQ(*share_of_roofline(1000, 10, 2000, peak), 0.5);
  EXPECT_DOUBLE_EQ(*share_of_roofline(10, 1000, 4000, peak), 0.25);
  EXPECT_DOUBLE_EQ(*share_of_roofline(std::nullopt, 1000, 1000, peak), 1);
  EXPECT_FALSE(share_of_roofline(1000, 10, 0, peak));
  EXPECT_FALSE(share_of_roofline(1000, 10, 10, {}));
}

TEST(Peak, IsMeasured) {
  const Peak peak = measure_peak(1);
  EXPECT_GT(peak.flops_per_second, 1e6);
  EXPECT_GT(peak.bytes_per_second, 1e6);
}

}  // namespace
}  // namespace tenon::report
