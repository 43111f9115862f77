#include "collectives/peer_board.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <string>

#include "collectives/control_exchange.h"
#include "core/error.h"

namespace sherd {
namespace {

constexpr std::uint64_t kTurns = 2;

using Name = std::array<char, 64>;

Name make_name() {
  std::random_device random;
  Name name{};
  const std::string text = fmt::format("/sherd-{}-{:08x}{:08x}", getpid(), random(), random());
  std::strncpy(name.data(), text.c_str(), name.size() - 1);
  return name;
}

/// 0, or errno. Memory is zero at first.
int map(const Name& name, bool create, std::size_t bytes, void*& data) {
  constexpr mode_t kOwnerOnly = 0600;
  const int file = shm_open(name.data(), O_RDWR | (create ? O_CREAT | O_EXCL : 0), kOwnerOnly);
  if (file < 0) return errno;
  int code = create && ftruncate(file, static_cast<off_t>(bytes)) != 0 ? errno : 0;
  if (code == 0) {
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (data == MAP_FAILED) code = errno;
    if (data == MAP_FAILED) data = nullptr;
  }
  close(file);
  return code;
}

}  // namespace

PeerBoard::PeerBoard(Communicator& control)
    : rank_(control.rank()),
      bytes_(static_cast<std::size_t>(control.size()) * kTurns * sizeof(Place)) {
  Name name{};
  int code = 0;
  if (rank_ == 0) {
    name = make_name();
    code = map(name, /*create=*/true, bytes_, data_);
  }
  name = gather_values(control, name)[0];
  if (rank_ != 0) code = map(name, /*create=*/false, bytes_, data_);
  const auto codes = gather_values(control, code);
  if (rank_ == 0) shm_unlink(name.data());  // the mappings stay
  for (const int theirs : codes) {
    if (theirs == 0) continue;
    if (data_ != nullptr) munmap(data_, bytes_);
    throw ApiError("POSIX", theirs, "ranks share no memory", "shm_open", __builtin_FILE(),
                   __builtin_LINE());
  }
}

PeerBoard::~PeerBoard() { munmap(data_, bytes_); }

void PeerBoard::post(const Posting& posting) {
  Place& own = place(rank_, posting.sequence);
  own.posting = posting;
  own.sequence.store(posting.sequence, std::memory_order_release);
}

bool PeerBoard::has_posted(int r, std::uint64_t sequence) const {
  return place(r, sequence).sequence.load(std::memory_order_acquire) == sequence;
}

const Posting& PeerBoard::posting(int r, std::uint64_t sequence) const {
  return place(r, sequence).posting;
}

PeerBoard::Place& PeerBoard::place(int r, std::uint64_t sequence) const {
  const auto turn = static_cast<std::size_t>(sequence % kTurns);
  return static_cast<Place*>(data_)[static_cast<std::size_t>(r) * kTurns + turn];
}

}  // namespace sherd
