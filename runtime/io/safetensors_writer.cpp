#include "runtime/io/safetensors_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.h"

namespace sherd {
namespace {

StoredTensor describe(const TensorRecord& record) {
  StoredTensor tensor;
  tensor.name = record.name;
  tensor.type = &stored_type(record.dtype);
  tensor.shape = record.shape;
  tensor.size_bytes = checked_size_bytes(record.shape, tensor.type->bits, record.name);
  tensor.numel = tensor.size_bytes / size_of(record.dtype);
  return tensor;
}

bool comes_before(const StoredTensor& a, const StoredTensor& b) {
  const int order_a = alignment_order(*a.type);
  const int order_b = alignment_order(*b.type);
  return order_a != order_b ? order_a > order_b : a.name < b.name;
}

SafetensorsHeader lay_out(const std::vector<TensorRecord>& records,
                          std::map<std::string, std::string> metadata) {
  SafetensorsHeader header;
  header.metadata = std::move(metadata);
  std::transform(records.begin(), records.end(), std::back_inserter(header.tensors), describe);
  std::sort(header.tensors.begin(), header.tensors.end(), comes_before);
  for (StoredTensor& tensor : header.tensors) {
    tensor.offset_bytes = header.data_bytes;
    header.data_bytes += tensor.size_bytes;
  }
  return header;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::string path, const std::vector<TensorRecord>& records,
                                     FileRole role, std::map<std::string, std::string> metadata)
    : header_(lay_out(records, std::move(metadata))), file_(std::move(path), role) {
  for (const StoredTensor& tensor : header_.tensors) {
    require(tensor.name != "__metadata__", "{}: a tensor cannot be called __metadata__",
            file_.path());
    require(by_name_.emplace(tensor.name, &tensor).second, "{}: tensor \"{}\" is listed twice",
            file_.path(), tensor.name);
  }
  const std::string bytes = format_safetensors_header(header_);
  data_begin_ = static_cast<std::int64_t>(bytes.size());
  require(data_begin_ - 8 <= kMaxHeaderBytes, "{}: a header of {} bytes is longer than {}",
          file_.path(), data_begin_, kMaxHeaderBytes);
  if (role == FileRole::guest) return;
  file_.resize(data_begin_ + header_.data_bytes);
  file_.write(bytes.data(), data_begin_, 0);
}

void SafetensorsWriter::write(std::string_view name, std::int64_t offset_bytes, const void* data,
                              std::int64_t bytes) {
  const auto found = by_name_.find(name);
  require(found != by_name_.end(), "{} has no tensor \"{}\"", file_.path(), name);
  const StoredTensor& tensor = *found->second;
  require(offset_bytes >= 0 && bytes >= 0 && offset_bytes <= tensor.size_bytes - bytes,
          "{}: {} bytes from byte {} on do not fit in tensor \"{}\" of {} bytes", file_.path(),
          bytes, offset_bytes, name, tensor.size_bytes);
  if (bytes == 0) return;
  const std::int64_t begin = tensor.offset_bytes + offset_bytes;
  claim(tensor, {begin, begin + bytes});
  file_.write(data, bytes, data_begin_ + begin);
  written_bytes_ += bytes;
}

void SafetensorsWriter::claim(const StoredTensor& tensor, Range range) {
  auto next = written_.lower_bound(range.begin);
  auto before = next == written_.begin() ? written_.end() : std::prev(next);
  const bool taken = (next != written_.end() && next->first < range.end) ||
                     (before != written_.end() && before->second > range.begin);
  require(!taken, "{}: bytes [{}, {}) of tensor \"{}\" are written twice", file_.path(),
          range.begin - tensor.offset_bytes, range.end - tensor.offset_bytes, tensor.name);
  if (next != written_.end() && next->first == range.end) {
    range.end = next->second;
    written_.erase(next);
  }
  if (before != written_.end() && before->second == range.begin) {
    before->second = range.end;
  } else {
    written_.emplace(range.begin, range.end);
  }
}

std::string SafetensorsWriter::first_gap() const {
  const bool at_start = written_.empty() || written_.begin()->first > 0;
  const std::int64_t missing = at_start ? 0 : written_.begin()->second;
  for (const StoredTensor& tensor : header_.tensors) {
    if (missing < tensor.offset_bytes + tensor.size_bytes) return tensor.name;
  }
  return {};
}

void SafetensorsWriter::finish(std::int64_t guest_bytes) {
  if (file_.role() == FileRole::owner) {
    const std::int64_t total = written_bytes_ + guest_bytes;
    require(total == header_.data_bytes,
            "{}: {} of {} bytes were written; the first missing here belong to tensor \"{}\"",
            file_.path(), total, header_.data_bytes, first_gap());
  }
  file_.commit();
}

}  // namespace sherd
