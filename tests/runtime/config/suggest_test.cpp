#include "runtime/config/suggest.h"

#include <catch2/catch_test_macros.hpp>

using namespace sherd;

TEST_CASE("the distance counts insertions, deletions, replacements and swaps") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("stage", "Stage") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("stag", "stage") == 1);
  CHECK(edit_distance("staage", "stage") == 1);
  CHECK(edit_distance("stoge", "stage") == 1);
  CHECK(edit_distance("satge", "stage") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("sitting", "kitten") == 3);
}

TEST_CASE("the nearest choice is offered only when it is near") {
  const std::vector<std::string> keys = {"stage", "steps", "train_batch_size", "bf16"};
  CHECK(nearest("staeg", keys) == "stage");
  CHECK(nearest("trainbatchsize", keys) == "train_batch_size");
  CHECK(nearest("fb16", keys) == "bf16");
  CHECK(nearest("optimizer", keys).empty());
  CHECK(nearest("xy", {"ab", "cd"}).empty());
  CHECK(nearest("a", {}).empty());
}

TEST_CASE("choices split at bars and join with commas") {
  CHECK(split_choices("").empty());
  CHECK(split_choices("one") == std::vector<std::string>{"one"});
  CHECK(split_choices("a|b|c") == std::vector<std::string>{"a", "b", "c"});
  CHECK(joined({"a", "b"}) == "a, b");
  CHECK(joined({}).empty());
}
