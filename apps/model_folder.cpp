#include "apps/model_folder.h"

#include <filesystem>
#include <optional>

#include "apps/parameter_parts.h"
#include "runtime/config/model_json.h"
#include "runtime/io/atomic_file.h"
#include "runtime/io/safetensors_writer.h"

namespace sherd {
namespace {

std::vector<TensorRecord> tensor_records(const ShardLayout& layout, DType dtype) {
  std::vector<TensorRecord> records;
  for (const FlatBuffer& buffer : layout.buffers()) {
    for (const ParameterSlot& slot : buffer.slots) {
      for (const PlacedPart& part : placed_parts(slot.spec)) {
        TensorRecord record{part.name, dtype, {}};
        for (int i = 0; i < part.shape.rank(); ++i) record.shape.push_back(part.shape[i]);
        records.push_back(std::move(record));
      }
    }
  }
  return records;
}

void write_parts(SafetensorsWriter& writer, const ParameterSpec& spec, const Tensor& values) {
  const Tensor flat = values.view({values.numel()});
  for (const PlacedPart& part : placed_parts(spec)) {
    const Tensor piece = flat.flat(part.range);
    writer.write(part.name, 0, piece.data(), piece.size_bytes());
  }
}

}  // namespace

void write_model_folder(Engine& engine, const ModelConfig& config, const std::string& folder,
                        int rank) {
  const DType dtype = engine.plan().options.compute;
  std::optional<SafetensorsWriter> writer;
  if (rank == 0) {
    std::filesystem::create_directories(folder);
    writer.emplace(folder + "/model.safetensors", tensor_records(engine.layout(), dtype));
  }
  engine.save_parameters(
      [&](const ParameterSpec& spec, const Tensor& values) { write_parts(*writer, spec, values); });
  if (rank != 0) return;
  writer->finish();
  write_file_atomically(folder + "/config.json", model_config_json(config, dtype));
}

}  // namespace sherd
