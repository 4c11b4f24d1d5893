#include "report/layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tenon::report {
namespace {

bool overlap(const Layout& layout, const std::vector<Box>& boxes, size_t a, size_t b) {
  const Point &p = layout.boxes[a].centre, &q = layout.boxes[b].centre;
  return std::abs(p.x - q.x) < (boxes[a].width + boxes[b].width) / 2 &&
         std::abs(p.y - q.y) < (boxes[a].height + boxes[b].height) / 2;
}

TEST(Layout, AChainIsAColumn) {
  const Layout layout = lay_out({{40, 20, {}}, {80, 20, {0}}, {40, 20, {1}}});
  EXPECT_NEAR(layout.boxes[0].centre.x, layout.boxes[2].centre.x, 0.1);
  EXPECT_LT(layout.boxes[0].centre.y, layout.boxes[1].centre.y);
  EXPECT_LT(layout.boxes[1].centre.y, layout.boxes[2].centre.y);
}

TEST(Layout, AnEdgeLeadsFromTheLowerSideOfAnInputToTheUpperSideOfItsUser) {
  const Layout layout = lay_out({{40, 20, {}}, {40, 20, {0}}, {40, 20, {0, 1}}});
  const Placed& user = layout.boxes[2];
  ASSERT_EQ(user.edges.size(), 2u);
  EXPECT_EQ(user.edges[0].front().y, layout.boxes[0].centre.y + 10);
  EXPECT_EQ(user.edges[0].back().y, user.centre.y - 10);
  // It passes the layer of the box between them beside that box.
  EXPECT_EQ(user.edges[0].size(), 4u);
  EXPECT_GT(std::abs(user.edges[0][1].x - layout.boxes[1].centre.x), 20);
}

TEST(Layout, BoxesNeverOverlapAndLieWithinThePicture) {
  std::mt19937 random(1);
  std::vector<Box> boxes;
  for (size_t i = 0; i < 300; ++i) {
    Box box;
    box.width = 20 + random() % 200;
    box.height = 20 + random() % 40;
    for (size_t n = i ? random() % 4 : 0; n > 0; --n) box.inputs.push_back(random() % i);
    boxes.push_back(box);
  }
  const Layout layout = lay_out(boxes);
  for (size_t a = 0; a < boxes.size(); ++a) {
    const Point& p = layout.boxes[a].centre;
    EXPECT_GE(p.x - boxes[a].width / 2, 0);
    EXPECT_LE(p.x + boxes[a].width / 2, layout.width);
    EXPECT_GE(p.y - boxes[a].height / 2, 0);
    EXPECT_LE(p.y + boxes[a].height / 2, layout.height);
    for (size_t b = 0; b < a; ++b) EXPECT_FALSE(overlap(layout, boxes, a, b)) << a << " " << b;
  }
}

TEST(Layout, NothingHasASize) {
  EXPECT_TRUE(lay_out({}).boxes.empty());
}

}  // namespace
}  // namespace tenon::report
