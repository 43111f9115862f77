#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "collectives/unfinished.h"

using namespace sherd;

namespace {

constexpr std::int64_t kBytes = 1 << 20;

/// A message from this process to itself.
MPI_Request receive_into(const Buffer& buffer) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(buffer.data(), kBytes, MPI_BYTE, 0, 0, MPI_COMM_SELF, &request);
  return request;
}

void send_late(char value) {
  const std::vector<char> message(kBytes, value);
  MPI_Send(message.data(), kBytes, MPI_BYTE, 0, 0, MPI_COMM_SELF);
}

void give_back_another(MessageMemory& memory) { const Buffer another(memory, kBytes); }

}  // namespace

TEST_CASE("memory that a late message will be written to is kept until it has come", "[dist]") {
  UnfinishedRequests unfinished;
  MessageMemory memory(unfinished);
  Buffer buffer(memory, kBytes);
  auto* const data = static_cast<char*>(buffer.data());
  const MPI_Request request = receive_into(buffer);
  unfinished.add({&request, 1});
  CHECK(unfinished.any());
  buffer = Buffer();
  CHECK(memory.used_bytes() == 0);
  CHECK(memory.kept_buffers() == 1);
  give_back_another(memory);
  CHECK(memory.kept_buffers() == 2);

  send_late('x');
  CHECK(data[kBytes - 1] == 'x');
  CHECK_FALSE(unfinished.any());
  give_back_another(memory);
  CHECK(memory.kept_buffers() == 0);
}
