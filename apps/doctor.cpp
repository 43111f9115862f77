#include "apps/doctor.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "apps/agreement.h"
#include "apps/core_list.h"
#include "apps/doctor_gpus.h"
#include "apps/job.h"
#include "apps/quantity.h"
#include "apps/thread_count.h"
#include "apps/version.h"
#include "collectives/nccl.h"
#include "core/cuda_backend.h"
#include "core/error.h"
#include "kernels/attention.h"
#include "kernels/device_code.h"

namespace sherd {
namespace {

struct Findings {
  std::string text;
  std::vector<std::string> advice;

  void add(const char* what, const std::string& value) {
    text += fmt::format("{:<10} {}\n", what, value);
  }
};

/// The value behind `key` in a "key: value" file of /proc, or "".
std::string proc_value(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::int64_t memory_bytes(const char* key) {
  constexpr std::int64_t kKibibyte = 1024;
  return std::atoll(proc_value("/proc/meminfo", key).c_str()) * kKibibyte;
}

void find_machine(Findings& findings) {
  const std::string model = proc_value("/proc/cpuinfo", "model name");
  findings.add("processor", fmt::format("{}, {}", model.empty() ? "unknown" : model,
                                        counted(std::thread::hardware_concurrency(), "core")));
  findings.add("memory", fmt::format("{} of {} available", bytes_text(memory_bytes("MemAvailable")),
                                     bytes_text(memory_bytes("MemTotal"))));
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) != 0) return;
  const auto free = static_cast<std::int64_t>(shm.f_bavail * shm.f_frsize);
  findings.add("/dev/shm", bytes_text(free) + " free, where ranks of a machine share memory");
  constexpr std::int64_t kLittle = std::int64_t{1} << 30;
  if (free < kLittle) {
    findings.advice.emplace_back(
        "/dev/shm is small: ranks keep their arenas there; in a container raise --shm-size");
  }
}

/// OpenBLAS tells its choice of kernels only through its environment, which can also hold it back.
void find_blas(Findings& findings) {
  const char* core = std::getenv("OPENBLAS_CORETYPE");
  if (core == nullptr) return;
  findings.add("OpenBLAS", fmt::format("kept to {} kernels by OPENBLAS_CORETYPE", core));
}

/// Copies need room: other programs may have left none.
std::string how_read(int reader, int peer) {
  try {
    return link_text(cuda_copy_rate(peer, reader), cuda_can_access_peer(reader, peer));
  } catch (const ApiError& error) {
    return fmt::format("not measured: {}", error.what());
  }
}

void find_links(Findings& findings, int gpus) {
  std::vector<std::vector<std::string>> reads(static_cast<std::size_t>(gpus));
  for (int i = 0; i < gpus; ++i) {
    for (int j = 0; j < gpus; ++j) {
      reads[static_cast<std::size_t>(i)].push_back(i == j ? "" : how_read(i, j));
    }
  }
  std::istringstream lines(peer_table(reads));
  const char* what = "links";
  for (std::string line; std::getline(lines, line); what = "") findings.add(what, line);
}

void find_gpus(Findings& findings) {
  std::string driver;
  std::getline(std::ifstream("/sys/module/nvidia/version"), driver);
  findings.add("CUDA", cuda_versions() + (driver.empty() ? "" : " (" + driver + ")"));
  const std::string nccl = nccl_version();
  findings.add("", nccl == "none" ? "no NCCL in this build" : nccl);
  findings.add("", cudnn_version());
  const int count = cuda_device_count();
  if (count == 0) {
    const std::string absence = cuda_absence();
    findings.add("GPU", "none: " + absence);
    if (!driver.empty()) {
      findings.advice.push_back("there is an NVIDIA driver, but no GPU to run on: " + absence);
    }
    return;
  }
  for (int i = 0; i < count; ++i) {
    const CudaDeviceInfo info = cuda_device_info(i);
    const std::vector<int> near = cores_near(info.pci_bus_id);
    findings.add("GPU", fmt::format("{} {} (sm_{}) at {}, {} of {} free, {}{}", i, info.name,
                                    info.compute_capability, info.pci_bus_id,
                                    bytes_text(info.free_bytes), bytes_text(info.total_bytes),
                                    counted(info.multiprocessors, "multiprocessor"),
                                    near.empty() ? "" : ", near cores " + core_list_text(near)));
    const std::string absence = cuda_kernels_absence(i);
    if (!absence.empty()) findings.advice.push_back(fmt::format("GPU {}: {}", i, absence));
  }
  find_links(findings, count);
}

/// The GPU that a rank would train on, and what to do about it.
struct OwnGpu {
  std::string text;
  std::string advice;
};

OwnGpu own_gpu(const MpiSession& session, const CoreSet& own) {
  const int count = cuda_device_count();
  const int index = session.local_rank();
  if (count == 0) return {};
  if (index >= count) {
    return {", no GPU of its own",
            fmt::format("rank {} has no GPU of its own, so that runs on GPUs are refused: start at "
                        "most {} on {}",
                        session.rank(), counted(count, "rank"), own.host)};
  }
  const std::string bus_id = cuda_device_info(index).pci_bus_id;
  return {fmt::format(", GPU {} at {}", index, bus_id),
          binding_advice(session.rank(), index, own.cores, cores_near(bus_id))};
}

void find_ranks(Findings& findings, MpiSession& session, Communicator& world) {
  const std::string& host = session.hostnames()[static_cast<std::size_t>(session.rank())];
  const CoreSet own = own_cores(host);
  const ThreadChoice choice = choose_threads(world, host, 0);
  const OwnGpu gpu = own_gpu(session, own);
  const std::vector<std::string> lines = gather_texts(
      world, fmt::format("rank {} on {}, cores {}, {}{}", session.rank(), host,
                         core_list_text(own.cores), counted(choice.threads, "thread"), gpu.text));
  findings.add("ranks", fmt::format("{}, {}", session.size(), world.description()));
  for (const std::string& line : lines) findings.add("", line);
  for (const std::string& advice : {choice.warning, gpu.advice}) {
    for (const std::string& one : gather_texts(world, advice)) {
      if (!one.empty()) findings.advice.push_back(one);
    }
  }
}

}  // namespace

ExitCode doctor_command(MpiSession& session) {
  const auto world = session.world();
  Findings findings;
  find_ranks(findings, session, *world);
  if (session.rank() != 0) return ExitCode::ok;
  find_machine(findings);
  find_blas(findings);
  find_gpus(findings);
  std::string text = version_text(false) + "\n\n" + findings.text;
  text += findings.advice.empty() ? "\nNothing stands in the way.\n" : "\nTo look at:\n";
  for (const std::string& advice : findings.advice) text += "  " + advice + "\n";
  std::fputs(text.c_str(), stdout);
  return ExitCode::ok;
}

}  // namespace sherd
