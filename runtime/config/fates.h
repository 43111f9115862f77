#pragma once

#include <string>
#include <vector>

#include "runtime/config/settings.h"

namespace sherd {

/// What became of a DeepSpeed key that was given.
struct KeyFate {
  std::string path;
  Fate fate = Fate::honoured;
  bool automatic = false;  ///< given as "auto": as if it were not there
  std::string value;       ///< as JSON
  Place place;
  std::string note;
};

/// Every DeepSpeed key that was given, in the order of the schema.
std::vector<KeyFate> deepspeed_fates(const Settings& settings);

/// Throws ArgumentError that names every refused value among what was given, DeepSpeed's keys and
/// the model's.
void refuse_unsupported(const Settings& settings);

/// One line, such as "zero_optimization.stage 3 (ds.json:9:14): honoured".
std::string to_string(const KeyFate& fate);

/// What `sherd config import` prints: every key with its fate, and a count of each.
std::string import_report(const std::vector<KeyFate>& fates);

}  // namespace sherd
