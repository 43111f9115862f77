#include "apps/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/error.h"
#include "runtime/config/json.h"
#include "runtime/config/suggest.h"

namespace sherd {
namespace {

/// A rate by the name it has in files and on the command line.
struct Field {
  const char* name;
  double DeviceRates::*value;
};

constexpr Field kFields[] = {
    {"gemm_f32", &DeviceRates::single_tflops}, {"gemm_16bit", &DeviceRates::half_tflops},
    {"memory", &DeviceRates::memory_gbs},      {"link", &DeviceRates::link_gbs},
    {"latency", &DeviceRates::latency_us},     {"launch", &DeviceRates::launch_us},
};

constexpr const char* kHow =
    "write gemm=TFLOP/s,memory=GB/s,link=GB/s, also latency=µs and launch=µs, or the name of a "
    "file that `sherd bench rates --write FILE` wrote";

void set_rate(DeviceRates& rates, std::string_view name, double value, const std::string& place) {
  require(value > 0.0, "{}: {} must be above 0, got {}", place, name, value);
  if (name == "gemm") {
    rates.single_tflops = rates.half_tflops = value;
    return;
  }
  for (const Field& field : kFields) {
    if (name != field.name) continue;
    rates.*field.value = value;
    return;
  }
  throw ArgumentError(fmt::format("{}: there is no rate \"{}\"; {}", place, name, kHow));
}

void set_word(DeviceRates& rates, std::string_view word) {
  const auto equals = word.find('=');
  const std::string_view text = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  require(whole, "--rates: \"{}\" is no rate; {}", word, kHow);
  set_rate(rates, word.substr(0, equals), value, "--rates");
}

void read_members(const JsonValue& object, DeviceRates& rates) {
  require(object.kind == JsonValue::Kind::object, "{}: expected an object of rates",
          to_string(object.place));
  for (const JsonMember& member : object.members) {
    if (member.key == "device") {
      rates.name = member.value.text;
    } else if (member.key != "ranks") {
      require(member.value.kind == JsonValue::Kind::number, "{}: {} is no number",
              to_string(member.place), member.key);
      set_rate(rates, member.key, member.value.number, to_string(member.place));
    }
  }
}

DeviceRates rates_in(const JsonValue& file, DeviceRates rates) {
  read_members(file, rates);
  const JsonValue* ranks = file.find("ranks");
  if (ranks == nullptr) return rates;
  require(ranks->kind == JsonValue::Kind::array, "{}: ranks: expected a list, one entry a rank",
          to_string(ranks->place));
  const DeviceRates common = rates;
  for (const JsonValue& item : ranks->items) {
    rates.ranks.push_back(common);
    read_members(item, rates.ranks.back());
  }
  return rates;
}

JsonValue json_of(const DeviceRates& rates) {
  JsonValue json = json_object();
  set_member(json, "device", sherd::json_of(std::string_view(rates.name)));
  for (const Field& field : kFields) {
    set_member(json, field.name, sherd::json_of(rates.*field.value));
  }
  return json;
}

Rates own_rates(const DeviceRates& rates, DType compute) {
  constexpr double kTera = 1e12;
  constexpr double kGiga = 1e9;
  constexpr double kMicro = 1e-6;
  const double tflops = compute == DType::f32 ? rates.single_tflops : rates.half_tflops;
  return {tflops * kTera, rates.memory_gbs * kGiga, rates.link_gbs * kGiga,
          rates.latency_us * kMicro, rates.launch_us * kMicro};
}

std::string rates_text(const DeviceRates& rates) {
  return fmt::format(
      "{}: {:.3g} TFLOP/s in f32, {:.3g} in 16 bits, memory {:.4g} GB/s, link {:.4g} GB/s, "
      "{:.3g} µs a collective, {:.3g} µs a pass",
      rates.name, rates.single_tflops, rates.half_tflops, rates.memory_gbs, rates.link_gbs,
      rates.latency_us, rates.launch_us);
}

}  // namespace

DeviceRates usual_rates(DeviceChoice device) {
  if (device != DeviceChoice::cuda) return {"a usual CPU core", 0.05, 0.002, 10, 4, 20, 20};
  return {"an H200 as measured", 45, 660, 4200, 240, 35, 20};
}

DeviceRates parse_rates(std::string_view text, DeviceChoice device) {
  DeviceRates rates = usual_rates(device);
  if (text.find('=') == std::string_view::npos) {
    rates.name = std::string(text);
    return rates_in(read_json_file(rates.name), rates);
  }
  rates.name = fmt::format("as given, else {}", rates.name);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    set_word(rates, text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return rates;
}

std::string rates_json(const DeviceRates& rates) {
  JsonValue json = json_of(rates);
  JsonValue list;
  list.kind = JsonValue::Kind::array;
  for (const DeviceRates& rank : rates.ranks) list.items.push_back(json_of(rank));
  if (!rates.ranks.empty()) set_member(json, "ranks", list);
  return write_json(json, 2) + "\n";
}

DeviceRates rates_of_json(const std::string& text) {
  return rates_in(parse_json(text, "rates"), {});
}

std::vector<Rates> rates_for(const DeviceRates& rates, DType compute, int world) {
  if (rates.ranks.empty()) return {own_rates(rates, compute)};
  require(static_cast<int>(rates.ranks.size()) == world,
          "the rates are those of {} ranks, the run has {}", rates.ranks.size(), world);
  std::vector<Rates> ranks;
  for (const DeviceRates& rank : rates.ranks) ranks.push_back(own_rates(rank, compute));
  return ranks;
}

DeviceRates rates_of_ranks(std::vector<DeviceRates> measured) {
  constexpr double kNoise = 1.15;  // like cards differ by less from one measurement to the next
  DeviceRates slowest = measured.front();
  bool differ = false;
  for (const DeviceRates& rank : measured) {
    for (const Field& field : kFields) {
      const bool is_time =
          field.value == &DeviceRates::latency_us || field.value == &DeviceRates::launch_us;
      double& worst = slowest.*field.value;
      worst = is_time ? std::max(worst, rank.*field.value) : std::min(worst, rank.*field.value);
    }
  }
  for (const DeviceRates& rank : measured) {
    differ = differ || rank.single_tflops > kNoise * slowest.single_tflops ||
             rank.half_tflops > kNoise * slowest.half_tflops ||
             rank.memory_gbs > kNoise * slowest.memory_gbs;
  }
  if (differ) slowest.ranks = std::move(measured);
  return slowest;
}

std::string to_string(const DeviceRates& rates) {
  std::string text = rates_text(rates);
  for (std::size_t r = 0; r < rates.ranks.size(); ++r) {
    text += fmt::format("\nrank {} {}", r, rates_text(rates.ranks[r]));
  }
  return text;
}

}  // namespace sherd
