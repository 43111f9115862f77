#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/stream.h"

namespace sherd {

/// A FIFO worker thread with a ring of inline tasks: enqueueing never allocates, and blocks the
/// host while the ring is full. After an operation throws, later operations are skipped (events are
/// still recorded, so nobody hangs) until `synchronize` has rethrown the error.
class CpuStream final : public Stream {
 public:
  static constexpr std::size_t kTaskBytes = 1024;
  static constexpr std::size_t kRingTasks = 1024;

  /// `threads` OpenMP threads for the operations of this stream; `name` shows in debuggers.
  explicit CpuStream(std::string name, int threads = 1);
  CpuStream(const CpuStream&) = delete;
  CpuStream& operator=(const CpuStream&) = delete;
  ~CpuStream() override;

  Device device() const override { return {}; }
  std::unique_ptr<Event> make_event() const override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void synchronize() override;
  void drop(const std::exception_ptr& why) override;
  void on_failure(const std::function<void(const std::exception_ptr&)>& react) override;
  double waited_ms() const override;

  /// Enqueues `task()`. Captures are copied; what they point to must live until it has run.
  template <class F>
  void run(F task) {
    push(std::move(task), /*always=*/false);
  }

 private:
  struct Task {
    void (*call)(void*) = nullptr;
    void (*destroy)(void*) = nullptr;
    bool always = false;
    alignas(std::max_align_t) std::array<std::byte, kTaskBytes> storage;
  };

  template <class F>
  void push(F task, bool always) {
    static_assert(sizeof(F) <= kTaskBytes, "a task captures too much");
    Task& slot = reserve();
    new (slot.storage.data()) F(std::move(task));
    slot.call = [](void* f) { (*static_cast<F*>(f))(); };
    slot.destroy = [](void* f) { static_cast<F*>(f)->~F(); };
    slot.always = always;
    publish();
  }
  Task& reserve();
  void publish();
  void work(int threads);

  std::string name_;
  std::vector<Task> ring_;
  std::mutex mutex_;
  std::condition_variable pushed_;
  std::condition_variable popped_;
  std::uint64_t head_ = 0;  // next slot to fill; tail_ trails it by the tasks not yet finished
  std::uint64_t tail_ = 0;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::function<void(const std::exception_ptr&)> react_;
  std::atomic<std::int64_t> blocked_ns_{0};
  std::thread worker_;
};

/// The CPU stream behind `stream`; throws ArgumentError when it is another kind.
CpuStream& cpu(Stream& stream);

/// Enqueues a host operation on a CPU stream; what every CPU kernel and collective ends with.
template <class F>
void enqueue(Stream& stream, F task) {
  cpu(stream).run(std::move(task));
}

}  // namespace sherd
