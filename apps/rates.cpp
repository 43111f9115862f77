#include "apps/rates.h"

#include <fmt/format.h>

#include <charconv>

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

DeviceRates read_rates(const std::string& path, DeviceRates rates) {
  const JsonValue file = read_json_file(path);
  require(file.kind == JsonValue::Kind::object, "{}: expected an object of rates", path);
  rates.name = path;
  for (const JsonMember& member : file.members) {
    if (member.key == "device") {
      rates.name = member.value.text;
    } else {
      require(member.value.kind == JsonValue::Kind::number, "{}: {} is no number",
              to_string(member.place), member.key);
      set_rate(rates, member.key, member.value.number, to_string(member.place));
    }
  }
  return rates;
}

}  // namespace

DeviceRates usual_rates(DeviceChoice device) {
  if (device != DeviceChoice::cuda) return {"a usual CPU core", 0.05, 0.002, 10, 4, 20, 20};
  return {"an H200 as measured", 45, 660, 4200, 240, 35, 20};
}

DeviceRates parse_rates(std::string_view text, DeviceChoice device) {
  DeviceRates rates = usual_rates(device);
  if (text.find('=') == std::string_view::npos) return read_rates(std::string(text), rates);
  rates.name = fmt::format("as given, else {}", rates.name);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    set_word(rates, text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return rates;
}

std::string rates_json(const DeviceRates& rates) {
  JsonValue json = json_object();
  set_member(json, "device", json_of(std::string_view(rates.name)));
  for (const Field& field : kFields) set_member(json, field.name, json_of(rates.*field.value));
  return write_json(json, 2) + "\n";
}

Rates rates_for(const DeviceRates& rates, DType compute) {
  constexpr double kTera = 1e12;
  constexpr double kGiga = 1e9;
  constexpr double kMicro = 1e-6;
  const double tflops = compute == DType::f32 ? rates.single_tflops : rates.half_tflops;
  return {tflops * kTera, rates.memory_gbs * kGiga, rates.link_gbs * kGiga,
          rates.latency_us * kMicro, rates.launch_us * kMicro};
}

std::string to_string(const DeviceRates& rates) {
  return fmt::format(
      "{}: {:.3g} TFLOP/s in f32, {:.3g} in 16 bits, memory {:.4g} GB/s, link {:.4g} GB/s, "
      "{:.3g} µs a collective, {:.3g} µs a pass",
      rates.name, rates.single_tflops, rates.half_tflops, rates.memory_gbs, rates.link_gbs,
      rates.latency_us, rates.launch_us);
}

}  // namespace sherd
