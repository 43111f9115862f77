#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "collectives/communicator.h"
#include "core/error.h"

namespace sherd {

/// An error that all ranks know of: rank 0 alone prints it, and all leave in order. One line per
/// distinct message, with the ranks that have it.
class SharedError : public Error {
 public:
  using Error::Error;
};

/// Collective: the texts of all ranks, by rank.
std::vector<std::string> gather_texts(Communicator& world, const std::string& text);

/// What a rank could not do.
struct Complaint {
  ExitCode code = ExitCode::failure;
  std::string message;
};
Complaint complaint_about(const std::exception& error);

/// Collective: throws SharedError on all ranks when any of them complains.
void share_complaints(Communicator& world, const std::optional<Complaint>& own);

/// Collective: does what needs no other rank. When it throws on some ranks, all throw.
template <class F>
std::invoke_result_t<F> on_all_ranks(Communicator& world, F&& work) {
  std::optional<std::invoke_result_t<F>> result;
  std::optional<Complaint> complaint;
  try {
    result.emplace(work());
  } catch (const std::exception& error) {
    complaint = complaint_about(error);
  }
  share_complaints(world, complaint);
  return std::move(*result);
}

}  // namespace sherd
