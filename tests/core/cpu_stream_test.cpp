#include "core/cpu_stream.h"

#include <omp.h>
#include <pthread.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/error.h"

using namespace sherd;
using namespace std::chrono_literals;

namespace {

/// A task that runs until it is let go.
class Gate {
 public:
  void pass() const { open_.wait(false); }
  void open() {
    open_ = true;
    open_.notify_all();
  }

 private:
  std::atomic<bool> open_{false};
};

class OtherStream final : public Stream {
 public:
  Device device() const override { return {DeviceKind::cuda, 3}; }
  std::unique_ptr<Event> make_event() const override { return nullptr; }
  void record(Event& /*event*/) override {}
  void wait(const Event& /*event*/) override {}
  void synchronize() override {}
  double waited_ms() const override { return 0.0; }
};

std::vector<int> counted(int n) {
  std::vector<int> result(static_cast<std::size_t>(n));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

}  // namespace

TEST_CASE("operations run in the order they were enqueued") {
  CpuStream stream("order");
  std::vector<int> seen;
  for (int i = 0; i < 5000; ++i) enqueue(stream, [&seen, i] { seen.push_back(i); });
  stream.synchronize();
  CHECK(seen == counted(5000));
}

TEST_CASE("enqueueing waits while the ring is full, and loses nothing") {
  CpuStream stream("ring");
  Gate gate;
  std::vector<int> seen;
  std::atomic<int> pushed{0};
  constexpr int kTasks = 3 * static_cast<int>(CpuStream::kRingTasks) + 7;
  enqueue(stream, [&gate] { gate.pass(); });
  std::thread host([&] {
    for (int i = 0; i < kTasks; ++i) {
      enqueue(stream, [&seen, i] { seen.push_back(i); });
      ++pushed;
    }
  });
  constexpr int kRoom = static_cast<int>(CpuStream::kRingTasks) - 1;  // the gate has a slot
  while (pushed < kRoom) std::this_thread::yield();
  std::this_thread::sleep_for(20ms);
  CHECK(pushed == kRoom);
  gate.open();
  host.join();
  stream.synchronize();
  CHECK(seen == counted(kTasks));
}

TEST_CASE("an event makes another stream wait for what came before it") {
  CpuStream first("first"), second("second");
  const auto event = first.make_event();
  Gate gate;
  std::atomic<bool> written{false}, seen{false}, second_started{false};
  enqueue(first, [&] {
    gate.pass();
    written = true;
  });
  first.record(*event);
  enqueue(second, [&] { second_started = true; });
  second.wait(*event);
  enqueue(second, [&] { seen = written.load(); });
  while (!second_started) std::this_thread::yield();
  std::this_thread::sleep_for(10ms);
  CHECK_FALSE(seen);
  gate.open();
  second.synchronize();
  CHECK(seen);
  event->synchronize();
}

TEST_CASE("waiting counts as blocked time, working does not") {
  CpuStream first("first"), second("second");
  const auto event = first.make_event();
  enqueue(first, [] { std::this_thread::sleep_for(40ms); });
  first.record(*event);
  second.wait(*event);
  first.synchronize();
  second.synchronize();
  CHECK(first.waited_ms() == 0.0);
  CHECK(second.waited_ms() >= 20.0);
}

TEST_CASE("a wait is for the latest record before it, however often the event is recorded") {
  CpuStream first("first"), second("second");
  const auto event = first.make_event();
  int value = 0;
  std::vector<int> seen;
  const auto back = second.make_event();
  for (int step = 1; step <= 300; ++step) {
    first.wait(*back);
    enqueue(first, [&value, step] { value = step; });
    first.record(*event);
    second.wait(*event);
    enqueue(second, [&] { seen.push_back(value); });
    second.record(*back);
  }
  second.synchronize();
  first.synchronize();
  REQUIRE(seen.size() == 300);
  for (int step = 1; step <= 300; ++step) CHECK(seen[static_cast<std::size_t>(step - 1)] == step);
}

TEST_CASE("an event that was never recorded holds nobody up") {
  CpuStream stream("fresh");
  const auto event = stream.make_event();
  stream.wait(*event);
  stream.synchronize();
  event->synchronize();
}

TEST_CASE(
    "after an error operations are skipped, events still pass, and the error comes out once") {
  CpuStream failing("failing"), other("other");
  const auto event = failing.make_event();
  int ran = 0;
  bool other_ran = false;
  enqueue(failing, [&ran] { ++ran; });
  enqueue(failing, [] { throw DataError("the first error"); });
  enqueue(failing, [&ran] { ran += 100; });
  enqueue(failing, [] { throw DataError("a later error"); });
  failing.record(*event);
  other.wait(*event);
  enqueue(other, [&other_ran] { other_ran = true; });
  other.synchronize();
  event->synchronize();
  CHECK(other_ran);
  CHECK_THROWS_WITH(failing.synchronize(), "the first error");
  CHECK(ran == 1);
  CHECK_NOTHROW(failing.synchronize());
  enqueue(failing, [&ran] { ++ran; });
  failing.synchronize();
  CHECK(ran == 2);
}

TEST_CASE("a stream drops what has not started, and says why") {
  CpuStream stream("dropped");
  const auto event = stream.make_event();
  Gate gate;
  std::atomic<bool> started{false}, ran{false};
  enqueue(stream, [&] {
    started = true;
    gate.pass();
  });
  enqueue(stream, [&] { ran = true; });
  stream.record(*event);
  while (!started) std::this_thread::yield();
  stream.drop(std::make_exception_ptr(std::runtime_error("no more")));
  gate.open();
  event->synchronize();
  CHECK_THROWS_WITH(stream.synchronize(), "no more");
  CHECK_FALSE(ran);
  enqueue(stream, [&] { ran = true; });
  stream.synchronize();
  CHECK(ran);
}

TEST_CASE("the first failure of a stream can stop another before it sees the operation's end") {
  CpuStream first("first"), second("second");
  first.on_failure([&](const std::exception_ptr& why) { second.drop(why); });
  const auto event = first.make_event();
  std::atomic<bool> ran{false};
  enqueue(first, [] { throw std::runtime_error("bad luck"); });
  enqueue(first, [] { throw std::runtime_error("does not run"); });
  first.record(*event);
  second.wait(*event);
  enqueue(second, [&] { ran = true; });
  CHECK_THROWS_WITH(second.synchronize(), "bad luck");
  CHECK_THROWS_WITH(first.synchronize(), "bad luck");
  CHECK_FALSE(ran);
}

TEST_CASE("any exception keeps its type on the way to the host") {
  CpuStream stream("types");
  enqueue(stream, [] { throw std::out_of_range("far"); });
  CHECK_THROWS_AS(stream.synchronize(), std::out_of_range);
}

TEST_CASE("what tasks captured is let go, whether they ran or were skipped") {
  const auto token = std::make_shared<int>(0);
  CpuStream stream("captures");
  enqueue(stream, [token] {});
  enqueue(stream, [token] { throw DataError("stop"); });
  enqueue(stream, [token] {});
  CHECK_THROWS_AS(stream.synchronize(), DataError);
  CHECK(token.use_count() == 1);
}

TEST_CASE("a stream finishes its work before it is gone") {
  std::atomic<int> ran{0};
  {
    CpuStream stream("drained");
    for (int i = 0; i < 100; ++i) {
      enqueue(stream, [&ran] {
        std::this_thread::yield();
        ++ran;
      });
    }
  }
  CHECK(ran == 100);
}

TEST_CASE("a stream's operations have its threads and its name") {
  CpuStream stream("a name beyond fifteen letters", 3);
  int threads = 0;
  std::array<char, 16> name{};
  enqueue(stream, [&] {
    threads = omp_get_max_threads();
    pthread_getname_np(pthread_self(), name.data(), name.size());
  });
  stream.synchronize();
  CHECK(threads == 3);
  CHECK(std::string(name.data()) == "a name beyond f");
}

TEST_CASE("CPU operations refuse other streams") {
  OtherStream other;
  CHECK_THROWS_WITH(enqueue(other, [] {}), Catch::Matchers::ContainsSubstring("cuda:3"));
}
