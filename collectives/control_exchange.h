#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "collectives/communicator.h"
#include "core/cpu_stream.h"

namespace sherd {

/// Does collectives that read and write `held`, vectors. When they fail, what has begun can't be
/// taken back and may still write there: a few bytes of a lost job, which are never freed.
template <class F, class... Held>
void with_held(F work, Held&... held) {
  try {
    work();
  } catch (...) {
    (static_cast<void>(new Held(std::move(held))), ...);
    throw;
  }
}

/// What each rank passed, by rank. Collective over a communicator of hosts, and waits for it on
/// `stream`, which is the host's.
template <class T>
std::vector<T> gather_values(Communicator& control, const T& mine, Stream& stream) {
  static_assert(std::is_trivially_copyable_v<T>);
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  std::vector<T> values(static_cast<std::size_t>(control.size()));
  const auto own = static_cast<std::size_t>(control.rank());
  values[own] = mine;
  std::vector<Shard> ranges;
  for (std::int64_t r = 0; r < control.size(); ++r) ranges.push_back({r * kBytes, kBytes});
  const Tensor all(values.data(), DType::u8, {kBytes * control.size()});
  with_held(
      [&] {
        control.all_gather(all.flat(ranges[own]), all, ranges, stream);
        stream.synchronize();
      },
      values);
  return values;
}
template <class T>
std::vector<T> gather_values(Communicator& control, const T& mine) {
  CpuStream stream("exchange");
  return gather_values(control, mine, stream);
}

}  // namespace sherd
