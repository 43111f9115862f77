#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>

#include "core/device.h"
#include "core/work_label.h"

namespace sherd {

/// A point in a stream's order that other streams can wait for. Made by `Stream::make_event`, used
/// only with streams of the same device kind; may be recorded again in every step.
class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  virtual ~Event() = default;
  /// Blocks the host until the latest record has been reached; returns at once if there is none.
  virtual void synchronize() const = 0;
};

/// Operations in order. Order between streams comes only from events. One host thread enqueues.
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;

  virtual Device device() const = 0;
  virtual std::unique_ptr<Event> make_event() const = 0;
  /// Marks everything enqueued so far; the event is done when all of it is.
  virtual void record(Event& event) = 0;
  /// What is enqueued next starts after the latest record of `event` made before this call.
  virtual void wait(const Event& event) = 0;
  /// Blocks the host until the stream is empty; throws the first error of an operation, once.
  virtual void synchronize() = 0;
  /// From any thread: drops the operations that have not started, as if one before them had failed
  /// with `why`. Does nothing on a GPU, where what was enqueued runs.
  virtual void drop(const std::exception_ptr& /*why*/) {}
  /// What to do at once, on the stream's own thread, when an operation fails; set before the first
  /// is enqueued. Not called for a GPU, where only the host learns of a failure.
  virtual void on_failure(const std::function<void(const std::exception_ptr&)>& /*react*/) {}
  /// Memory that one operation after another may use: part of the plan, given once. CPU operations
  /// need none.
  virtual void set_scratch(void* /*data*/, std::int64_t /*bytes*/) {}
  /// Time this stream has stood waiting for events, since construction; exact when it is empty.
  virtual double waited_ms() const = 0;

  /// What is enqueued from now on belongs to, for error messages.
  void set_label(const WorkLabel& label) { label_ = label; }
  const WorkLabel& label() const { return label_; }

 private:
  WorkLabel label_;
};

}  // namespace sherd
