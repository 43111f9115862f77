#pragma once

#include <string>

namespace sherd {

/// Turns bytes that come one at a time into text that is safe to print: whole UTF-8 sequences pass,
/// bytes that are none become U+FFFD, and so do control characters other than tab and line feed.
class Utf8Text {
 public:
  /// What can be printed now.
  std::string add(unsigned char byte);
  /// What is left at the end.
  std::string finish();

 private:
  std::string add_first(unsigned char byte);

  std::string pending_;       // the start of a sequence that is valid so far
  std::size_t expected_ = 0;  // bytes of the whole sequence
};

}  // namespace sherd
