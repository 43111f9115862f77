#include "core/cpu_stream.h"

#include <omp.h>
#include <pthread.h>

#include <chrono>

#include "core/error.h"

namespace sherd {
namespace {

/// `completed` catches up with `recorded`, which only the enqueueing host thread touches.
class CpuEvent final : public Event {
 public:
  std::uint64_t next_generation() { return ++recorded_; }
  std::uint64_t generation() const { return recorded_; }
  void complete(std::uint64_t generation) {
    completed_.store(generation, std::memory_order_release);
    completed_.notify_all();
  }
  void wait_for(std::uint64_t generation) const {
    for (auto seen = completed_.load(std::memory_order_acquire); seen < generation;
         seen = completed_.load(std::memory_order_acquire)) {
      completed_.wait(seen, std::memory_order_acquire);
    }
  }
  void synchronize() const override { wait_for(recorded_); }

 private:
  std::uint64_t recorded_ = 0;
  std::atomic<std::uint64_t> completed_{0};
};

}  // namespace

CpuStream& cpu(Stream& stream) {
  auto* found = dynamic_cast<CpuStream*>(&stream);
  require(found != nullptr, "a CPU operation needs a CPU stream, got one on {}",
          name_of(stream.device()));
  return *found;
}

CpuStream::CpuStream(std::string name, int threads)
    : name_(std::move(name)), ring_(kRingTasks), worker_([this, threads] { work(threads); }) {
  constexpr std::size_t kThreadNameLength = 15;
  pthread_setname_np(worker_.native_handle(), name_.substr(0, kThreadNameLength).c_str());
}

CpuStream::~CpuStream() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  pushed_.notify_all();
  worker_.join();
}

std::unique_ptr<Event> CpuStream::make_event() const { return std::make_unique<CpuEvent>(); }

void CpuStream::record(Event& event) {
  auto& e = dynamic_cast<CpuEvent&>(event);
  push([&e, generation = e.next_generation()] { e.complete(generation); }, /*always=*/true);
}

void CpuStream::wait(const Event& event) {
  const auto& e = dynamic_cast<const CpuEvent&>(event);
  push(
      [this, &e, generation = e.generation()] {
        const auto start = std::chrono::steady_clock::now();
        e.wait_for(generation);
        const auto blocked = std::chrono::steady_clock::now() - start;
        blocked_ns_.fetch_add(std::chrono::duration_cast<std::chrono::nanoseconds>(blocked).count(),
                              std::memory_order_relaxed);
      },
      /*always=*/true);
}

void CpuStream::synchronize() {
  std::unique_lock lock(mutex_);
  popped_.wait(lock, [this] { return tail_ == head_; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void CpuStream::drop(const std::exception_ptr& why) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = why;
}

void CpuStream::on_failure(const std::function<void(const std::exception_ptr&)>& react) {
  const std::lock_guard lock(mutex_);
  react_ = react;
}

double CpuStream::waited_ms() const {
  constexpr double kNsPerMs = 1e6;
  return static_cast<double>(blocked_ns_.load(std::memory_order_relaxed)) / kNsPerMs;
}

CpuStream::Task& CpuStream::reserve() {
  std::unique_lock lock(mutex_);
  popped_.wait(lock, [this] { return head_ - tail_ < kRingTasks; });
  return ring_[head_ % kRingTasks];
}

void CpuStream::publish() {
  {
    const std::lock_guard lock(mutex_);
    ++head_;
  }
  pushed_.notify_one();
}

void CpuStream::work(int threads) {
  omp_set_num_threads(threads);
  std::unique_lock lock(mutex_);
  while (true) {
    pushed_.wait(lock, [this] { return stopping_ || tail_ != head_; });
    if (tail_ == head_) return;
    Task& task = ring_[tail_ % kRingTasks];
    const bool skip = failure_ && !task.always;
    lock.unlock();
    std::exception_ptr failure;
    try {
      if (!skip) task.call(task.storage.data());
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure && react_) react_(failure);  // before anyone can see that the operation is over
    task.destroy(task.storage.data());
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    ++tail_;
    popped_.notify_all();
  }
}

}  // namespace sherd
