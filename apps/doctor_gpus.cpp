#include "apps/doctor_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>

#include "apps/bench_table.h"
#include "apps/core_list.h"

namespace sherd {

std::string peer_table(const std::vector<std::vector<std::string>>& reads) {
  const std::size_t count = reads.size();
  if (count < 2) return "";
  std::vector<std::string> header{"reads"};
  for (std::size_t j = 0; j < count; ++j) header.push_back(fmt::format("GPU {}", j));
  BenchTable table(header);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::string> row{fmt::format("GPU {}", i)};
    for (std::size_t j = 0; j < count; ++j) {
      row.push_back(i == j ? "-" : reads[i][j]);
    }
    table.add(row);
  }
  return table.text();
}

std::string link_text(double rate, bool direct) {
  return fmt::format("{:.0f} GB/s{}", rate, direct ? "" : " by way of the host");
}

std::vector<int> cores_near(const std::string& pci_bus_id) {
  std::string name = pci_bus_id;  // the kernel writes it in small letters
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string text;
  std::getline(std::ifstream("/sys/bus/pci/devices/" + name + "/local_cpulist"), text);
  return parse_core_list(text);
}

std::string binding_advice(int rank, int gpu, const std::vector<int>& may_run_on,
                           const std::vector<int>& near) {
  if (near.empty() || may_run_on.empty()) return "";
  const bool meet = std::find_first_of(may_run_on.begin(), may_run_on.end(), near.begin(),
                                       near.end()) != may_run_on.end();
  if (meet) return "";
  return fmt::format(
      "rank {} may run on none of the cores near its GPU {} ({}): start it there, as with "
      "mpirun --bind-to none or numactl",
      rank, gpu, core_list_text(near));
}

}  // namespace sherd
