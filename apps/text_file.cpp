#include "apps/text_file.h"

#include <cstdio>
#include <fstream>

#include "core/error.h"

namespace sherd {

void write_text_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  require(file.good(), "{}: can't be written", path);
  std::fprintf(stderr, "note: written to %s\n", path.c_str());
}

}  // namespace sherd
