#pragma once

#include <string>
#include <vector>

#include "collectives/communicator.h"

namespace sherd {

/// One rank's matrix products, as tuning sees them. Tables are text that means something to ranks
/// with the same key.
class TunableProducts {
 public:
  TunableProducts() = default;
  TunableProducts(const TunableProducts&) = delete;
  TunableProducts& operator=(const TunableProducts&) = delete;
  virtual ~TunableProducts() = default;

  /// The device's name and the library's version.
  virtual std::string key() = 0;
  /// Takes over what earlier runs kept; throws when that is damaged or not to be had.
  virtual void load() = 0;
  /// Measures what is not settled yet.
  virtual void tune() = 0;
  /// Keeps the table for later runs.
  virtual void save() = 0;
  virtual std::string table() = 0;
  /// Takes over another rank's table.
  virtual void take(const std::string& table) = 0;
};

struct ProductSharing {
  int kinds = 1;                      ///< how many keys there are among the ranks
  std::vector<std::string> warnings;  ///< of this rank: what it did without, and why
};

/// Collective over the hosts, and waits: the first rank of each key loads and tunes, all at once,
/// and its table goes to the others of that key. First ranks save one after the other. What can't
/// be loaded is tuned anew, what can't be saved is not there for later runs; when a rank fails
/// otherwise, all throw.
ProductSharing tune_once_per_key(Communicator& hosts, TunableProducts& own);

}  // namespace sherd
