#include "runtime/product_sharing.h"

#include <algorithm>
#include <exception>
#include <functional>

#include "collectives/control_exchange.h"
#include "core/cpu_stream.h"
#include "core/error.h"
#include "runtime/io/digest.h"

namespace sherd {
namespace {

/// The first ranks of all keys, in order, and the one whose key is this rank's.
struct FirstRanks {
  std::vector<int> all;
  int own = 0;
};

FirstRanks find_first_ranks(Communicator& hosts, const std::string& key) {
  const std::uint64_t mine = digest(key.data(), static_cast<std::int64_t>(key.size()));
  const std::vector<std::uint64_t> keys = gather_values(hosts, mine);
  FirstRanks first;
  for (auto rank = keys.begin(); rank != keys.end(); ++rank) {
    if (std::find(keys.begin(), rank, *rank) != rank) continue;
    first.all.push_back(static_cast<int>(rank - keys.begin()));
    if (*rank == mine) first.own = first.all.back();
  }
  return first;
}

/// The text of `root`, on every rank.
void share_text(Communicator& hosts, std::string& text, int root) {
  CpuStream stream("text");
  std::vector<char> bytes(text.begin(), text.end());
  std::vector<std::int64_t> count = {static_cast<std::int64_t>(bytes.size())};
  with_held(
      [&] {
        hosts.broadcast({count.data(), DType::i64, {1}}, root, stream);
        stream.synchronize();
        bytes.resize(static_cast<std::size_t>(count[0]));
        hosts.broadcast({bytes.data(), DType::u8, {count[0]}}, root, stream);
        stream.synchronize();
      },
      bytes, count);
  text.assign(bytes.begin(), bytes.end());
}

/// What only spares time may fail.
void attempt(const std::function<void()>& work, const char* consequence, ProductSharing& result) {
  try {
    work();
  } catch (const std::exception& error) {
    result.warnings.push_back(std::string(error.what()) + "; " + consequence);
  }
}

ProductSharing tune_and_share(Communicator& hosts, TunableProducts& own) {
  ProductSharing result;
  const FirstRanks first = find_first_ranks(hosts, own.key());
  result.kinds = static_cast<int>(first.all.size());
  if (first.own == hosts.rank()) {
    attempt([&] { own.load(); }, "matrix products are tuned anew", result);
    own.tune();
  }
  for (const int root : first.all) {  // a rank saves before it shares, so they save in turn
    const bool shares = root == hosts.rank();
    if (shares) attempt([&] { own.save(); }, "what was tuned is not kept for later runs", result);
    std::string table = shares ? own.table() : "";
    share_text(hosts, table, root);
    if (root == first.own && !shares) own.take(table);
  }
  return result;
}

}  // namespace

ProductSharing tune_once_per_key(Communicator& hosts, TunableProducts& own) {
  try {
    return tune_and_share(hosts, own);
  } catch (const std::exception& error) {  // the others wait for this rank's table
    hosts.abandon(error.what());
    throw;
  }
}

}  // namespace sherd
