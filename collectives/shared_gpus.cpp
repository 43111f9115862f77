#include "collectives/shared_gpus.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "collectives/control_exchange.h"
#include "core/error.h"

namespace sherd {
namespace {

struct Place {
  HostId host{};
  std::array<char, 64> name{};
  bool operator==(const Place&) const = default;
};

Place place_named(const std::string& name) {
  Place place;
  place.host = host_id();
  std::strncat(place.name.data(), name.c_str(), place.name.size() - 1);
  return place;
}

}  // namespace

HostId host_id() {
  std::string text;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), text);
  HostId id{};
  check_posix(gethostname(id.data(), id.size() / 2), "gethostname");
  std::strncat(id.data(), text.c_str(), id.size() / 2 - 1);
  return id;
}

std::vector<int> earlier_ranks_at(Communicator& control, const std::string& name) {
  const std::vector<Place> places = gather_values(control, place_named(name));
  std::vector<int> earlier;
  for (auto place = places.begin(); place != places.end(); ++place) {
    earlier.push_back(static_cast<int>(std::count(places.begin(), place, *place)));
  }
  return earlier;
}

std::optional<int> first_sharer(const std::vector<int>& earlier) {
  const auto sharer = std::find_if(earlier.begin(), earlier.end(), [](int n) { return n > 0; });
  if (sharer == earlier.end()) return std::nullopt;
  return static_cast<int>(sharer - earlier.begin());
}

int ranks_at(Communicator& control, const std::string& name) {
  const Place mine = place_named(name);
  const std::vector<Place> places = gather_values(control, mine);
  return static_cast<int>(std::count(places.begin(), places.end(), mine));
}

void settle_shared_gpus(const std::vector<int>& earlier, int rank, bool allowed) {
  const std::optional<int> sharer = first_sharer(earlier);
  if (!sharer) return;
  require(allowed,
          "rank {} is on the GPU of a rank before it, which NCCL does not serve: give each rank a "
          "GPU of its own, or say that they share",
          *sharer);
  const auto number = earlier[static_cast<std::size_t>(rank)];
  const std::string id = fmt::format("{}-{}", host_id().data(), number);
  check_posix(setenv("NCCL_HOSTID", id.c_str(), 1), "setenv(NCCL_HOSTID)");
}

}  // namespace sherd
