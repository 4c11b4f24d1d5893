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
  const std::vector<Point>& points = user.edges[0].points;
  EXPECT_EQ(points.front().y, layout.boxes[0].centre.y + 10);
  EXPECT_EQ(points.back().y, user.centre.y - 10);
  // It passes the layer of the box between them beside that box.
  EXPECT_EQ(points.size(), 4u);
  EXPECT_GT(std::abs(points[1].x - layout.boxes[1].centre.x), 20);
}

// A column of boxes, whose first is an input of the last, too.
std::vector<Box> column(size_t passed) {
  std::vector<Box> boxes = {{40, 20, {}, 70}};
  while (boxes.size() <= passed) boxes.push_back({40, 20, {boxes.size() - 1}});
  boxes.push_back({40, 20, {passed, 0}});
  return boxes;
}

TEST(Layout, AnEdgePastManyLayersIsCut) {
  EXPECT_FALSE(lay_out(column(kMostPassed)).boxes.back().edges[1].label);
  const Layout layout = lay_out(column(kMostPassed + 1));
  const Placed &input = layout.boxes.front(), &user = layout.boxes.back();
  ASSERT_TRUE(user.edges[1].label && input.leaves && input.leaves->label);
  EXPECT_FALSE(user.edges[0].label || user.leaves);
  // The labels stand between the ends and their neighbours, beside other boxes.
  EXPECT_EQ(user.edges[1].points.size(), 2u);
  EXPECT_EQ(user.edges[1].label->y, layout.boxes[kMostPassed + 1].centre.y);
  EXPECT_GE(std::abs(user.edges[1].label->x - layout.boxes[kMostPassed + 1].centre.x), 55);
  EXPECT_EQ(input.leaves->label->y, layout.boxes[1].centre.y);
  EXPECT_GE(std::abs(input.leaves->label->x - layout.boxes[1].centre.x), 55);
}

size_t points_of(const std::vector<Box>& boxes) {
  size_t points = 0;
  for (const Placed& placed : lay_out(boxes).boxes) {
    for (const Edge& edge : placed.edges) points += edge.points.size();
  }
  return points;
}

// Each box of the column reads the first one, or they read several in the opposite order.
TEST(Layout, ThePointsOfEdgesAreInProportionToTheGraph) {
  const auto reading_the_first = [](size_t n) {
    std::vector<Box> boxes = {{40, 20, {}, 40}};
    while (boxes.size() < n) boxes.push_back({40, 20, {boxes.size() - 1, 0}, 40});
    return boxes;
  };
  const auto reversed = [](size_t n) {
    std::vector<Box> boxes = {{40, 20, {}, 40}};
    while (boxes.size() < n) boxes.push_back({40, 20, {boxes.size() - 1}, 40});
    while (boxes.size() < 2 * n) {
      boxes.push_back({40, 20, {boxes.size() - 1, 2 * n - 1 - boxes.size()}, 40});
    }
    return boxes;
  };
  EXPECT_LE(points_of(reading_the_first(800)), points_of(reading_the_first(400)) * 23 / 10);
  EXPECT_LE(points_of(reversed(800)), points_of(reversed(400)) * 23 / 10);
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
