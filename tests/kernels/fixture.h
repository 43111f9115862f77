#pragma once

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/kernels/test_tensor.h"

namespace sherd::test {

/// Tensors of one case that fixtures/make_fixtures.py wrote: what PyTorch computes.
class Fixture {
 public:
  explicit Fixture(const std::string& name) {
    std::ifstream file(SHERD_TEST_DATA "/" + name + ".bin", std::ios::binary);
    REQUIRE(file);
    std::string line;
    while (std::getline(file, line) && !line.empty()) entries_.push_back(parse(line));
    for (Entry& entry : entries_) {
      entry.bytes.resize(static_cast<std::size_t>(entry.shape.numel()) * 4);
      file.read(entry.bytes.data(), static_cast<std::streamsize>(entry.bytes.size()));
    }
    REQUIRE(file);
  }

  Shape shape(const std::string& name) const { return find(name).shape; }
  bool has(const std::string& name) const {
    return std::any_of(entries_.begin(), entries_.end(),
                       [&](const Entry& entry) { return entry.name == name; });
  }
  Values values(const std::string& name) const {
    const std::vector<float> floats = read<float>(name);
    return {floats.begin(), floats.end()};
  }
  std::vector<std::int32_t> integers(const std::string& name) const {
    return read<std::int32_t>(name);
  }
  /// The tensor itself, and one of its shape that waits for a result.
  TestTensor tensor(const std::string& name) const {
    const Entry& entry = find(name);
    if (entry.dtype == "i32") return {entry.shape, integers(name)};
    return {DType::f32, entry.shape, values(name)};
  }
  TestTensor empty(const std::string& name) const { return {DType::f32, shape(name)}; }

 private:
  struct Entry {
    std::string name, dtype;
    Shape shape;
    std::vector<char> bytes;
  };

  static Entry parse(const std::string& line) {
    std::istringstream words(line);
    Entry entry;
    words >> entry.name >> entry.dtype;
    const std::vector<std::int64_t> d(std::istream_iterator<std::int64_t>(words), {});
    switch (d.size()) {
      case 1:
        entry.shape = {d[0]};
        break;
      case 2:
        entry.shape = {d[0], d[1]};
        break;
      case 3:
        entry.shape = {d[0], d[1], d[2]};
        break;
      default:
        entry.shape = {d.at(0), d.at(1), d.at(2), d.at(3)};
    }
    return entry;
  }
  const Entry& find(const std::string& name) const {
    for (const Entry& entry : entries_) {
      if (entry.name == name) return entry;
    }
    FAIL("the fixture has no tensor " << name);
    return entries_.front();
  }
  template <class T>
  std::vector<T> read(const std::string& name) const {
    const Entry& entry = find(name);
    std::vector<T> values(entry.bytes.size() / sizeof(T));
    std::memcpy(values.data(), entry.bytes.data(), entry.bytes.size());
    return values;
  }
  std::vector<Entry> entries_;
};

}  // namespace sherd::test
