#pragma once

#include <string>
#include <vector>

namespace sherd {

/// How GPUs read each other's memory, a row for each reader: `reads[i][j]` is how i reads j, and
/// "-" stands for itself. Empty for fewer than two.
std::string peer_table(const std::vector<std::vector<std::string>>& reads);
/// Of what is in `reads`: "392 GB/s", "21 GB/s by way of the host".
std::string link_text(double rate, bool direct);

/// The cores that the kernel says are near a device on the PCI bus; empty when it says nothing.
std::vector<int> cores_near(const std::string& pci_bus_id);

/// What to do for a rank that may run on none of the cores near its GPU; "" when all is well or
/// nothing is known.
std::string binding_advice(int rank, int gpu, const std::vector<int>& may_run_on,
                           const std::vector<int>& near);

}  // namespace sherd
