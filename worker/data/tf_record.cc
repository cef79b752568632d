#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/digest/crc32c.h"
#include "common/status/status_macros.h"
#include "protos/tf_example.pb.h"
#include "worker/data/containers.h"
#include "worker/data/example_cost.h"
#include "worker/data/field_choice.h"
#include "worker/data/growing_array.h"

namespace lockstep::worker {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kHeaderBytes = 12;
constexpr size_t kRecordPieceBytes = size_t{1} << 20;
constexpr int64_t kLargestRecord = int64_t{1} << 30;

uint64_t LittleEndian(absl::string_view bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = count; i-- > 0;) value = (value << 8) | static_cast<uint8_t>(bytes[i]);
  return value;
}

bool CrcFits(absl::string_view bytes, absl::string_view stored) {
  return MaskCrc32c(Crc32c(bytes)) == static_cast<uint32_t>(LittleEndian(stored, 4));
}

absl::Span<std::byte> WritableBytes(std::string& text) {
  return absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()), text.size());
}

// The records of a file: u64 length, masked CRC of these eight bytes, the bytes, masked CRC of them.
class Records {
 public:
  explicit Records(ByteSource source) : source_(std::move(source)) {}

  // Reads the next record into `record`; false at the end. ResourceExhausted for one of more than `most` bytes.
  absl::StatusOr<bool> Next(int64_t most, std::string* record) {
    offset_ = source_.offset();
    std::string header(kHeaderBytes, '\0');
    LS_ASSIGN_OR_RETURN(const size_t got, source_.ReadSome(WritableBytes(header)));
    if (got == 0) return false;
    if (got < kHeaderBytes) return Lost("the file ends in the length of a record");
    const absl::string_view view = header;
    if (!CrcFits(view.substr(0, kLengthBytes), view.substr(kLengthBytes))) {
      return Lost(offset_ == 0 ? "no TFRecord file, or a damaged one: the checksum of the first length does not fit"
                               : "the checksum of a record's length does not fit");
    }
    const uint64_t length = LittleEndian(view, kLengthBytes);
    if (length > static_cast<uint64_t>(std::min(kLargestRecord, source_.MostBytes()))) {
      return Lost(absl::StrCat("a record of ", length, " bytes, more than the file can hold, or than 1 GiB"));
    }
    if (length > static_cast<uint64_t>(most)) {
      return absl::ResourceExhaustedError(absl::StrCat(source_.At(offset_), "a record of ", length, " bytes, and ",
                                                       most, " are left of data.memory; raise it"));
    }
    // Piece by piece: a length can promise what a compressed file does not have.
    record->clear();
    while (record->size() < length) {
      const size_t before = record->size();
      record->resize(before + std::min(static_cast<size_t>(length) - before, kRecordPieceBytes));
      LS_RETURN_IF_ERROR(source_.Read(WritableBytes(*record).subspan(before), "a record"));
    }
    std::string crc(4, '\0');
    LS_RETURN_IF_ERROR(source_.Read(WritableBytes(crc), "the checksum of a record"));
    if (!CrcFits(*record, crc)) return Lost("the checksum of a record does not fit");
    return true;
  }

  int64_t offset() const { return offset_; }  // of the record read last
  const ByteSource& source() const { return source_; }

 private:
  absl::Status Lost(absl::string_view message) const {
    return absl::DataLossError(absl::StrCat(source_.At(offset_), message, "; copy the file again"));
  }

  ByteSource source_;
  int64_t offset_ = 0;
};

struct FeatureKind {
  DType dtype = DType::kU8;
  size_t count = 0;
  friend bool operator==(const FeatureKind&, const FeatureKind&) = default;
};

// Type and number of a feature's values; a count of 0 where there is nothing that could be used.
FeatureKind FeatureKindOf(const tf::Feature& feature) {
  switch (feature.kind_case()) {
    case tf::Feature::kBytesList:
      if (feature.bytes_list().value_size() != 1) return {};
      return {DType::kU8, feature.bytes_list().value(0).size()};
    case tf::Feature::kFloatList:
      return {DType::kF32, static_cast<size_t>(feature.float_list().value_size())};
    case tf::Feature::kInt64List:
      return {DType::kI64, static_cast<size_t>(feature.int64_list().value_size())};
    default:
      return {};
  }
}

const void* FeatureValues(const tf::Feature& feature) {
  switch (feature.kind_case()) {
    case tf::Feature::kBytesList:
      return feature.bytes_list().value(0).data();
    case tf::Feature::kFloatList:
      return feature.float_list().value().data();
    default:
      return feature.int64_list().value().data();
  }
}

std::string KindText(const FeatureKind& kind) { return absl::StrCat(kind.count, " values of ", DTypeName(kind.dtype)); }

class TfRecordFile {
 public:
  TfRecordFile(const job::DataFiles& files, const ReadOptions& options, ByteSource source)
      : files_(files),
        budget_{.limit_bytes = options.memory_limit_bytes},
        options_(options),
        records_(std::move(source)) {}

  absl::StatusOr<StoredData> Read() {
    std::string record;
    tf::Example example;
    while (true) {
      LS_ASSIGN_OR_RETURN(const bool more, records_.Next(budget_.scratch_bytes(), &record));
      if (!more) break;
      LS_RETURN_IF_ERROR(CheckCost(record));
      if (!example.ParseFromString(record)) return Bad("is no tf.Example");
      if (offsets_.empty()) LS_RETURN_IF_ERROR(Choose(example));
      LS_RETURN_IF_ERROR(Add(example));
    }
    if (offsets_.empty()) return absl::InvalidArgumentError(absl::StrCat(files_.inputs(), ": has no record"));
    return Finish();
  }

 private:
  struct Column {
    std::string name;
    FeatureKind kind;
    GrowingArray values;
  };

  absl::Status Bad(absl::string_view message) const {
    return absl::InvalidArgumentError(
        absl::StrCat(records_.source().At(records_.offset()), "record ", offsets_.size(), " ", message));
  }

  // Whether what the record becomes when it is parsed fits; a few bytes of a file can become many in memory.
  absl::Status CheckCost(const std::string& record) const {
    const int64_t cost = ExampleCost(record);
    const int64_t most = budget_.scratch_bytes() - static_cast<int64_t>(record.size());
    if (cost <= most) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(records_.source().At(records_.offset()), "record ",
                                                     offsets_.size(), " takes ", cost, " bytes when it is parsed, and ",
                                                     most, " are left of data.memory; raise it"));
  }

  // The fields are those of the first record.
  absl::Status Choose(const tf::Example& example) {
    std::vector<std::string> names;
    for (const auto& [name, feature] : example.features().feature()) names.push_back(name);
    std::sort(names.begin(), names.end());
    LS_ASSIGN_OR_RETURN(const FieldChoice choice,
                        ChooseFields(files_, names, "feature", /*by_position=*/false, options_));
    with_labels_ = choice.label.has_value() && options_.labels != Labels::kNone;
    std::vector<size_t> wanted = choice.inputs;
    if (with_labels_) wanted.push_back(*choice.label);
    for (const size_t field : wanted) {
      const FeatureKind kind = FeatureKindOf(example.features().feature().at(names[field]));
      if (kind.count == 0) {
        return Bad(absl::StrCat("has nothing in feature '", absl::CHexEscape(names[field]),
                                "': numbers or one string of bytes were expected"));
      }
      columns_.push_back({names[field], kind, GrowingArray(&budget_)});
    }
    return absl::OkStatus();
  }

  absl::Status Add(const tf::Example& example) {
    for (Column& column : columns_) {
      const auto found = example.features().feature().find(column.name);
      const std::string name = absl::StrCat("feature '", absl::CHexEscape(column.name), "'");
      if (found == example.features().feature().end()) return Bad(absl::StrCat("has no ", name));
      const FeatureKind kind = FeatureKindOf(found->second);
      if (!(kind == column.kind)) {
        return Bad(absl::StrCat("has ", KindText(kind), " in ", name, ", the first record ", KindText(column.kind),
                                "; all samples must have one form (images as PNG or JPEG are not decoded)"));
      }
      const absl::Status status =
          column.values.Append(FeatureValues(found->second), kind.count * static_cast<size_t>(DTypeSize(kind.dtype)));
      if (!status.ok()) {
        return absl::Status(status.code(), absl::StrCat(records_.source().At(records_.offset()), status.message()));
      }
    }
    offsets_.push_back(records_.offset());
    return budget_.Take(sizeof(offsets_[0]));
  }

  StoredData Finish() {
    StoredData data;
    data.num_samples = static_cast<int64_t>(offsets_.size());
    const auto offsets = std::make_shared<const std::vector<int64_t>>(std::move(offsets_));
    const bool compressed = records_.source().compressed();
    for (Column& column : columns_) {
      const bool label = with_labels_ && &column == &columns_.back();
      const auto count = static_cast<int64_t>(column.kind.count);
      StoredField field{.name = label ? kLabelsField : column.name, .array = data.arrays.size()};
      if (!label || count > 1) field.sample = {count};
      StoredArray array{.name = column.name, .dtype = column.kind.dtype, .shape = {data.num_samples, count}};
      array.elements = column.values.Release();
      array.path = files_.inputs();
      array.element = [offsets, count, compressed, path = files_.inputs()](int64_t i) {
        return absl::StrCat(path, ": byte ", (*offsets)[static_cast<size_t>(i / count)],
                            compressed ? " of the decompressed data" : "", ": record ", i / count, ": ");
      };
      data.arrays.push_back(std::move(array));
      if (label) {
        data.label = std::move(field);
      } else {
        data.features.push_back(std::move(field));
      }
    }
    return data;
  }

  const job::DataFiles& files_;
  MemoryBudget budget_;
  const ReadOptions& options_;
  Records records_;
  bool with_labels_ = false;
  std::vector<Column> columns_;  // the label last, with_labels_
  std::vector<int64_t> offsets_;
};

}  // namespace

absl::StatusOr<StoredData> ReadTfRecord(const job::DataFiles& files, const ReadOptions& options) {
  LS_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(files.inputs(), options.pulse));
  return TfRecordFile(files, options, std::move(source)).Read();
}

bool LooksLikeTfRecord(absl::string_view start) {
  return start.size() >= kHeaderBytes && CrcFits(start.substr(0, kLengthBytes), start.substr(kLengthBytes));
}

}  // namespace lockstep::worker
