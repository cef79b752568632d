#include "common/tensorflow_bundle/bundle_index.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/status_macros.h"
#include "common/tensorflow_bundle/table.h"
#include "protos/tensorflow_bundle.pb.h"

namespace lockstep {
namespace {

constexpr int kVersion = 1;  // of the format, as TensorFlow counts
constexpr int kMaxShards = 99'999;
constexpr size_t kMaxEntryBytes = 1 << 20;  // of the value of one key

struct TypeRow {
  int number;
  absl::string_view name;
  std::optional<DType> dtype;
};

constexpr TypeRow kTypes[] = {
    {1, "float32", DType::kF32},
    {2, "float64", DType::kF64},
    {3, "int32", DType::kI32},
    {4, "uint8", DType::kU8},
    {5, "int16", DType::kI16},
    {6, "int8", DType::kI8},
    {kTensorflowString, "string", std::nullopt},
    {8, "complex64", std::nullopt},
    {9, "int64", DType::kI64},
    {10, "bool", DType::kBool},
    {14, "bfloat16", DType::kBF16},
    {17, "uint16", DType::kU16},
    {18, "complex128", std::nullopt},
    {19, "float16", DType::kF16},
    {20, "resource", std::nullopt},
    {21, "variant", std::nullopt},
    {22, "uint32", DType::kU32},
    {23, "uint64", DType::kU64},
    {24, "float8_e5m2", DType::kF8E5M2},
    {25, "float8_e4m3fn", DType::kF8E4M3},
};

absl::Status CheckHeader(const tf::BundleHeader& header) {
  if (header.endianness() != tf::BundleHeader::LITTLE) {
    return absl::InvalidArgumentError(
        "its tensors were written by a big-endian machine; save it again on a little-endian one");
  }
  if (header.version().min_consumer() > kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("it needs a reader of version ", header.version().min_consumer(),
                                                   " of the format, and this one is of version ", kVersion));
  }
  if (header.num_shards() < 1 || header.num_shards() > kMaxShards) {
    return absl::DataLossError(absl::StrCat("it is said to have ", header.num_shards(), " data files"));
  }
  return absl::OkStatus();
}

absl::StatusOr<BundleEntry> ParseEntry(const std::string& key, const std::string& value, int shards) {
  const auto bad = [&key](const auto&... what) {
    return absl::DataLossError(absl::StrCat("the entry of '", absl::CHexEscape(key), "' ", what...));
  };
  if (value.size() > kMaxEntryBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the entry of '", absl::CHexEscape(key), "' has ", value.size(),
                                                   " bytes; at most ", kMaxEntryBytes, " are read"));
  }
  tf::BundleEntry proto;
  if (!proto.ParseFromString(value)) return bad("is malformed");
  BundleEntry entry{.key = key, .type = proto.dtype(), .partitioned = proto.slices_size() > 0};
  if (proto.shape().unknown_rank()) return bad("has no shape");
  for (const tf::TensorShape::Dim& dim : proto.shape().dim()) entry.shape.push_back(dim.size());
  const absl::StatusOr<int64_t> elements = CheckedNumElements(entry.shape);
  if (!elements.ok()) return bad("has an impossible shape: ", elements.status().message());
  if (entry.partitioned) return entry;
  if (proto.shard_id() < 0 || proto.shard_id() >= shards) {
    return bad("names data file ", proto.shard_id(), " of ", shards);
  }
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  if (proto.offset() < 0 || proto.size() < 0 || proto.size() > kEnd - proto.offset()) {
    return bad("names ", proto.size(), " bytes at ", proto.offset());
  }
  if (const std::optional<DType> dtype = FromTensorflowType(entry.type)) {
    const absl::StatusOr<int64_t> bytes = CheckedByteSize(*dtype, entry.shape);
    if (!bytes.ok() || *bytes != proto.size()) {
      return bad("names ", proto.size(), " bytes for ", DTypeName(*dtype), ShapeString(entry.shape));
    }
  }
  entry.shard = proto.shard_id();
  entry.offset = static_cast<uint64_t>(proto.offset());
  entry.size = static_cast<uint64_t>(proto.size());
  entry.crc32c = proto.crc32c();
  return entry;
}

absl::StatusOr<BundleIndex> FromTable(const Table& table) {
  if (table.empty() || !table.begin()->first.empty()) return absl::DataLossError("it has no header");
  if (table.begin()->second.size() > kMaxEntryBytes) return absl::DataLossError("its header is malformed");
  tf::BundleHeader header;
  if (!header.ParseFromString(table.begin()->second)) return absl::DataLossError("its header is malformed");
  LS_RETURN_IF_ERROR(CheckHeader(header));
  BundleIndex index{.shards = header.num_shards()};
  for (auto it = std::next(table.begin()); it != table.end(); ++it) {
    LS_ASSIGN_OR_RETURN(BundleEntry entry, ParseEntry(it->first, it->second, index.shards));
    index.entries.push_back(std::move(entry));
  }
  return index;
}

}  // namespace

int ToTensorflowType(DType dtype) {
  const auto* const row =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& type) { return type.dtype == dtype; });
  return row->number;  // every DType has a row
}

std::optional<DType> FromTensorflowType(int type) {
  for (const TypeRow& row : kTypes) {
    if (row.number == type) return row.dtype;
  }
  return std::nullopt;
}

std::string TensorflowTypeName(int type) {
  for (const TypeRow& row : kTypes) {
    if (row.number == type) return std::string(row.name);
  }
  return absl::StrCat("type ", type);
}

const BundleEntry* BundleIndex::Find(absl::string_view key) const {
  const auto it = std::lower_bound(entries.begin(), entries.end(), key,
                                   [](const BundleEntry& entry, absl::string_view of) { return entry.key < of; });
  return it == entries.end() || it->key != key ? nullptr : &*it;
}

std::string EncodeBundleIndex(const BundleIndex& index) {
  tf::BundleHeader header;
  header.set_num_shards(index.shards);
  header.mutable_version()->set_producer(kVersion);
  Table table = {{"", header.SerializeAsString()}};
  for (const BundleEntry& entry : index.entries) {
    tf::BundleEntry proto;
    proto.set_dtype(entry.type);
    proto.mutable_shape();  // TensorFlow writes that of a scalar too
    for (const int64_t dim : entry.shape) proto.mutable_shape()->add_dim()->set_size(dim);
    proto.set_shard_id(entry.shard);
    proto.set_offset(static_cast<int64_t>(entry.offset));
    proto.set_size(static_cast<int64_t>(entry.size));
    proto.set_crc32c(entry.crc32c);
    table.emplace(entry.key, proto.SerializeAsString());
  }
  return EncodeTable(table);
}

absl::StatusOr<BundleIndex> ParseBundleIndex(absl::string_view bytes, absl::string_view file) {
  LS_ASSIGN_OR_RETURN(const Table table, ParseTable(bytes, file));
  absl::StatusOr<BundleIndex> index = FromTable(table);
  if (index.ok()) return index;
  return absl::Status(index.status().code(), absl::StrCat("TensorFlow index ", file, ": ", index.status().message()));
}

std::string DataFileName(absl::string_view prefix, int shard, int shards) {
  return absl::StrFormat("%s.data-%05d-of-%05d", prefix, shard, shards);
}

}  // namespace lockstep
