#include "core/handle.h"

#include <catch2/catch_test_macros.hpp>
#include <utility>
#include <vector>

using namespace sherd;

namespace {

std::vector<int>& destroyed() {
  static std::vector<int> values;
  return values;
}
void destroy(int raw) { destroyed().push_back(raw); }

using TestHandle = Handle<int, destroy, -1>;

}  // namespace

TEST_CASE("a handle destroys what it owns once, and nothing when it owns nothing") {
  destroyed().clear();
  {
    const TestHandle none;
    CHECK_FALSE(none);
    const TestHandle zero(0);  // 0 is a value here: null is -1
    CHECK(zero);
    CHECK(zero.get() == 0);
  }
  CHECK(destroyed() == std::vector<int>{0});
}

TEST_CASE("moving a handle passes on its ownership") {
  destroyed().clear();
  {
    TestHandle a(1);
    TestHandle b(std::move(a));
    CHECK_FALSE(a);  // NOLINT(bugprone-use-after-move): a moved-from handle owns nothing
    CHECK(b.get() == 1);
    TestHandle c(2);
    c = std::move(b);
    CHECK(destroyed() == std::vector<int>{2});
    TestHandle& same = c;
    c = std::move(same);
    CHECK(c.get() == 1);
    c.reset();
    CHECK_FALSE(c);
    c.reset();
  }
  CHECK(destroyed() == std::vector<int>{2, 1});
}
