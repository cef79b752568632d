#include "common/checkpoint_format/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint_format/checkpoint_tensor.h"
#include "common/checkpoint_format/strict_json.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr absl::string_view kMetadataEntry = "__metadata__";
// Collects entries and metadata; sizes and places are checked afterwards, over all entries.
class HeaderVisitor final : public JsonVisitor {
 public:
  using Path = std::vector<std::string>;

  absl::Status Text(const Path& path, int in_array, absl::string_view value) override {
    if (path.size() == 2 && in_array == 0 && path[0] == kMetadataEntry) {
      header.metadata.emplace(path[1], value);
      return absl::OkStatus();
    }
    if (path.size() == 2 && in_array == 0 && path[1] == "dtype") {
      const std::optional<DType> dtype = ParseDType(value);
      if (!dtype) return Bad(path, absl::StrCat("has the unknown dtype '", absl::CHexEscape(value), "'"));
      header.entries.back().spec.dtype = *dtype;
      has_dtype_ = true;
      return absl::OkStatus();
    }
    return Bad(path, "has text where none belongs");
  }
  absl::Status Unsigned(const Path& path, int in_array, uint64_t value) override {
    if (path.size() == 2 && in_array == 1 && path[1] == "shape" && path[0] != kMetadataEntry) {
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        return Bad(path, "has a dimension over 2^63 - 1");
      header.entries.back().spec.shape.push_back(static_cast<int64_t>(value));
      return absl::OkStatus();
    }
    if (path.size() == 2 && in_array == 1 && path[1] == "data_offsets" && path[0] != kMetadataEntry) {
      offsets_.push_back(value);
      return offsets_.size() <= 2 ? absl::OkStatus() : Bad(path, "has more than two data_offsets");
    }
    return Bad(path, "has a number where none belongs");
  }
  absl::Status Other(const Path& path, int, absl::string_view kind) override {
    return Bad(path, absl::StrCat("has ", kind, " where none belongs"));
  }
  absl::Status BeginObject(const Path& path, int in_array) override {
    if (in_array > 0 || path.size() > 1) return Bad(path, "has an object where none belongs");
    if (path.size() == 1 && path[0] != kMetadataEntry) {
      LS_RETURN_IF_ERROR(CheckTensorName(path[0]));
      header.entries.push_back({});
      header.entries.back().spec.name = path[0];
      offsets_.clear();
      has_dtype_ = has_shape_ = false;
    }
    return absl::OkStatus();
  }
  absl::Status EndObject(const Path& path) override {
    if (path.size() != 1 || path[0] == kMetadataEntry) return absl::OkStatus();
    if (!has_dtype_ || !has_shape_ || offsets_.size() != 2) {
      return Bad(path, "lacks dtype, shape or data_offsets");
    }
    header.entries.back().begin = offsets_[0];
    header.entries.back().end = offsets_[1];
    return absl::OkStatus();
  }
  absl::Status BeginArray(const Path& path, int in_array) override {
    const bool fits = path.size() == 2 && in_array == 0 && path[0] != kMetadataEntry;
    if (fits && path[1] == "shape") has_shape_ = true;
    if (fits && (path[1] == "shape" || path[1] == "data_offsets")) return absl::OkStatus();
    return Bad(path, "has an array where none belongs");
  }
  absl::Status EndArray(const Path&) override { return absl::OkStatus(); }

  SafetensorsHeader header;

 private:
  static absl::Status Bad(const Path& path, absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("the entry '", absl::CHexEscape(absl::StrJoin(path, ".")), "' ", what));
  }

  std::vector<uint64_t> offsets_;
  bool has_dtype_ = false;
  bool has_shape_ = false;
};

// No holes, no overlaps, sizes as shape and dtype say, and the data section ends where the last tensor does.
absl::Status CheckPlaces(const SafetensorsHeader& header) {
  uint64_t expected = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    const std::string& name = entry.spec.name;
    if (entry.begin != expected || entry.end < entry.begin) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "' lies at [", entry.begin, ", ", entry.end,
                                                     "); expected it to begin at ", expected));
    }
    LS_ASSIGN_OR_RETURN(const int64_t bytes, CheckedByteSize(entry.spec.dtype, entry.spec.shape));
    if (entry.end - entry.begin != static_cast<uint64_t>(bytes)) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "' has ", entry.end - entry.begin, " bytes; ",
                                                     DTypeName(entry.spec.dtype), ShapeString(entry.spec.shape),
                                                     " takes ", bytes));
    }
    expected = entry.end;
  }
  if (expected != header.data_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tensors end at ", expected, ", the data at ", header.data_bytes));
  }
  return absl::OkStatus();
}

absl::Status Malformed(absl::string_view file, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(file, " is not a valid safetensors file: ", what));
}

}  // namespace

std::vector<int> SafetensorsOrder(absl::Span<const TensorSpec> tensors) {
  std::vector<int> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    if (tensors[a].dtype != tensors[b].dtype) return tensors[a].dtype > tensors[b].dtype;
    return tensors[a].name < tensors[b].name;
  });
  return order;
}

absl::StatusOr<std::string> EncodeSafetensorsHeader(absl::Span<const TensorSpec> tensors) {
  const std::vector<int> order = SafetensorsOrder(tensors);
  if (!std::is_sorted(order.begin(), order.end())) {
    return absl::InvalidArgumentError("the tensors of a safetensors file go by alignment, then name");
  }
  std::string json = "{\"__metadata__\":{\"format\":\"pt\"}";
  std::set<absl::string_view> names;
  uint64_t offset = 0;
  for (const TensorSpec& tensor : tensors) {
    LS_RETURN_IF_ERROR(CheckTensorName(tensor.name));
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' is twice in one file"));
    }
    LS_ASSIGN_OR_RETURN(const int64_t bytes, CheckedByteSize(tensor.dtype, tensor.shape));
    absl::StrAppend(&json, ",", nlohmann::json(tensor.name).dump(), ":{\"dtype\":\"", DTypeName(tensor.dtype),
                    "\",\"shape\":[", absl::StrJoin(tensor.shape, ","), "],\"data_offsets\":[", offset, ",",
                    offset + bytes, "]}");
    offset += static_cast<uint64_t>(bytes);
  }
  json += "}";
  json.append((8 - json.size() % 8) % 8, ' ');
  if (json.size() > kMaxSafetensorsHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a safetensors header of ", json.size(), " bytes for ",
                                                   tensors.size(), " tensors; readers refuse more than ",
                                                   kMaxSafetensorsHeaderBytes));
  }
  std::string out;
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(static_cast<uint64_t>(json.size()) >> (8 * i)));
  return out + json;
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view json, uint64_t data_bytes,
                                                         absl::string_view file) {
  if (json.empty() || json[0] != '{') return Malformed(file, "the header does not begin with '{'");
  HeaderVisitor visitor;
  if (absl::Status parsed = ParseStrictJson(json, visitor); !parsed.ok()) return Malformed(file, parsed.message());
  SafetensorsHeader header = std::move(visitor.header);
  header.data_begin = 8 + json.size();
  header.data_bytes = data_bytes;
  // By begin, then end: an empty tensor stands before the one that begins at the same place.
  std::sort(header.entries.begin(), header.entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.begin, a.end, a.spec.name) < std::tie(b.begin, b.end, b.spec.name);
  });
  if (absl::Status placed = CheckPlaces(header); !placed.ok()) return Malformed(file, placed.message());
  return header;
}

absl::StatusOr<SafetensorsReader> SafetensorsReader::Open(const Storage& storage, absl::string_view path) {
  const std::string shown = storage.Describe(path);
  SafetensorsReader reader;
  LS_ASSIGN_OR_RETURN(reader.file_, storage.OpenFile(path));
  const uint64_t size = reader.file_->size();
  if (size < 8) return Malformed(shown, absl::StrCat("it has ", size, " bytes; expected at least 8"));
  char length[8];
  LS_RETURN_IF_ERROR(reader.file_->ReadAt(0, absl::MakeSpan(length)));
  uint64_t n = 0;
  for (int i = 0; i < 8; ++i) n |= static_cast<uint64_t>(static_cast<unsigned char>(length[i])) << (8 * i);
  if (n > kMaxSafetensorsHeaderBytes) {
    return Malformed(shown, absl::StrCat("it announces a header of ", n, " bytes; at most ", kMaxSafetensorsHeaderBytes,
                                         " are read"));
  }
  if (n > size - 8) {
    return Malformed(shown,
                     absl::StrCat("it announces a header of ", n, " bytes and has ", size - 8, " after the length"));
  }
  std::string json(n, '\0');
  LS_RETURN_IF_ERROR(reader.file_->ReadAt(8, absl::MakeSpan(json.data(), json.size())));
  LS_ASSIGN_OR_RETURN(reader.header_, ParseSafetensorsHeader(json, size - 8 - n, shown));
  for (size_t i = 0; i < reader.header_.entries.size(); ++i) {
    reader.by_name_.emplace(reader.header_.entries[i].spec.name, i);
  }
  return reader;
}

const SafetensorsEntry* SafetensorsReader::Find(absl::string_view name) const {
  const auto it = by_name_.find(std::string(name));
  return it == by_name_.end() ? nullptr : &header_.entries[it->second];
}

absl::Status SafetensorsReader::Read(const SafetensorsEntry& entry, uint64_t offset, absl::Span<char> out) const {
  const uint64_t bytes = entry.end - entry.begin;
  if (offset > bytes || out.size() > bytes - offset) {
    return absl::OutOfRangeError(
        absl::StrCat("tensor '", entry.spec.name, "' has ", bytes, " bytes; asked for ", out.size(), " from ", offset));
  }
  return file_->ReadAt(header_.data_begin + entry.begin + offset, out);
}

}  // namespace lockstep
