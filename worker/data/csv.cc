#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/data/containers.h"
#include "worker/data/csv_rows.h"
#include "worker/data/field_choice.h"
#include "worker/data/growing_array.h"

namespace lockstep::worker {
namespace {

// Whole numbers up to here are exact in float64.
constexpr double kLargestWhole = 9007199254740992.0;

bool ParseNumber(absl::string_view text, double* value) {
  return absl::SimpleAtod(absl::StripAsciiWhitespace(text), value) && std::isfinite(*value);
}

// Whether a cell is what tables have in place of a number: nothing, or a NaN or infinity.
bool IsMissing(absl::string_view text) {
  double value = 0;
  text = absl::StripAsciiWhitespace(text);
  return text.empty() || (absl::SimpleAtod(text, &value) && !std::isfinite(value));
}

// Numbers as they come in. Whole ones are kept as integers when all are.
class Numbers {
 public:
  explicit Numbers(MemoryBudget* budget) : values_(budget) {}

  absl::Status Append(double value) {
    whole_ = whole_ && value == std::floor(value) && std::abs(value) <= kLargestWhole;
    return values_.Append(value);
  }

  StoredArray Finish(std::string name, Shape shape) {
    if (whole_) {
      for (size_t at = 0; at < values_.size(); at += sizeof(double)) {
        double value = 0;
        std::memcpy(&value, values_.data() + at, sizeof(value));
        const auto integer = static_cast<int64_t>(value);
        std::memcpy(values_.data() + at, &integer, sizeof(integer));
      }
    }
    StoredArray array{.name = std::move(name), .dtype = whole_ ? DType::kI64 : DType::kF64, .shape = std::move(shape)};
    array.elements = values_.Release();
    return array;
  }

 private:
  GrowingArray values_;
  bool whole_ = true;
};

// Which line each row began in: rows follow each other line by line but for the few remembered here.
class RowLines {
 public:
  absl::Status Add(int64_t row, int64_t line, MemoryBudget* budget) {
    if (!jumps_.empty() && line - row == jumps_.back().second) return absl::OkStatus();
    // Most tables have one; a table may have one for every row.
    if (!jumps_.empty()) LS_RETURN_IF_ERROR(budget->Take(sizeof(jumps_[0])));
    jumps_.emplace_back(row, line - row);
    return absl::OkStatus();
  }
  int64_t LineOf(int64_t row) const {
    const auto after = std::upper_bound(jumps_.begin(), jumps_.end(), row,
                                        [](int64_t value, const auto& jump) { return value < jump.first; });
    return row + std::prev(after)->second;
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> jumps_;
};

class CsvTable {
 public:
  CsvTable(const job::DataFiles& files, const ReadOptions& options, ByteSource source)
      : files_(files),
        budget_{.limit_bytes = options.memory_limit_bytes},
        options_(options),
        source_(std::move(source)),
        rows_(&source_, Delimiter(files), &budget_),
        inputs_(&budget_),
        labels_(&budget_) {}

  absl::StatusOr<StoredData> Read() {
    std::vector<std::string> cells;
    LS_ASSIGN_OR_RETURN(bool more, rows_.Next(&cells));
    if (!more) return absl::InvalidArgumentError(absl::StrCat(source_.name(), ": the table is empty"));
    LS_ASSIGN_OR_RETURN(const bool header, ReadHeader(cells));
    LS_ASSIGN_OR_RETURN(choice_, ChooseFields(files_, names_, "column", /*by_position=*/true, options_));
    with_labels_ = choice_.label.has_value() && options_.labels != Labels::kNone;
    if (header) {
      LS_ASSIGN_OR_RETURN(more, rows_.Next(&cells));
    }
    while (more) {
      LS_RETURN_IF_ERROR(AddRow(cells));
      LS_ASSIGN_OR_RETURN(more, rows_.Next(&cells));
    }
    if (count_ == 0) return absl::InvalidArgumentError(absl::StrCat(source_.name(), ": the table has no row"));
    return Finish();
  }

 private:
  static char Delimiter(const job::DataFiles& files) {
    return files.delimiter().size() == 1 ? files.delimiter()[0] : files.delimiter() == "tab" ? '\t' : ',';
  }

  // Whether the first line names the columns; fills names_ either way.
  absl::StatusOr<bool> ReadHeader(const std::vector<std::string>& cells) {
    bool header = files_.header() == job::DataFiles::HEADER_PRESENT;
    if (!header && files_.header() != job::DataFiles::HEADER_ABSENT) {
      double unused = 0;
      header =
          std::any_of(cells.begin(), cells.end(), [&](const std::string& cell) { return !ParseNumber(cell, &unused); });
    }
    if (header && files_.header() != job::DataFiles::HEADER_PRESENT) {
      // A first sample that lacks a value must not pass for names.
      const auto missing = std::find_if(cells.begin(), cells.end(), IsMissing);
      if (missing != cells.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat(rows_.At(rows_.line()), "column ", missing - cells.begin(), " holds '",
                         absl::CHexEscape(missing->substr(0, 40)),
                         "', which is neither a name nor a finite number; say with header: present or absent what the "
                         "line is"));
      }
    }
    for (size_t i = 0; i < cells.size(); ++i) {
      names_.push_back(header ? std::string(absl::StripAsciiWhitespace(cells[i])) : absl::StrCat(i));
    }
    return header;
  }

  absl::StatusOr<double> NumberIn(const std::vector<std::string>& cells, size_t column) const {
    double value = 0;
    if (ParseNumber(cells[column], &value)) return value;
    return absl::InvalidArgumentError(absl::StrCat(rows_.At(rows_.line()), "column '",
                                                   absl::CHexEscape(names_[column].substr(0, 40)), "' holds '",
                                                   absl::CHexEscape(cells[column].substr(0, 40)),
                                                   "', which is no finite number; correct it, or leave the column "
                                                   "out with input_fields"));
  }

  absl::Status AddRow(const std::vector<std::string>& cells) {
    if (cells.size() != names_.size()) {
      return absl::InvalidArgumentError(absl::StrCat(rows_.At(rows_.line()), "has ", cells.size(),
                                                     " cells, and the "
                                                     "first line ",
                                                     names_.size()));
    }
    absl::Status status;
    if (with_labels_) {
      LS_ASSIGN_OR_RETURN(const double label, NumberIn(cells, *choice_.label));
      status = labels_.Append(label);
    }
    for (size_t i = 0; i < choice_.inputs.size() && status.ok(); ++i) {
      LS_ASSIGN_OR_RETURN(const double value, NumberIn(cells, choice_.inputs[i]));
      status = inputs_.Append(value);
    }
    if (status.ok()) status = lines_.Add(count_++, rows_.line(), &budget_);
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat(rows_.At(rows_.line()), status.message()));
  }

  StoredData Finish() {
    const auto columns = static_cast<int64_t>(choice_.inputs.size());
    StoredData data;
    data.num_samples = count_;
    data.features.push_back({.name = kInputsField, .array = 0, .sample = {columns}});
    data.arrays.push_back(inputs_.Finish(kInputsField, {count_, columns}));
    if (with_labels_) {
      data.label = {.name = kLabelsField, .array = 1};
      data.arrays.push_back(labels_.Finish(kLabelsField, {count_}));
    }
    const auto lines = std::make_shared<const RowLines>(std::move(lines_));
    for (StoredArray& array : data.arrays) {
      const int64_t per_row = array.shape.size() == 1 ? 1 : columns;
      array.path = source_.name();
      array.element = [lines, per_row, path = source_.name()](int64_t i) {
        return absl::StrCat(path, ": line ", lines->LineOf(i / per_row), ": ");
      };
    }
    return data;
  }

  const job::DataFiles& files_;
  MemoryBudget budget_;
  const ReadOptions& options_;
  ByteSource source_;
  CsvRows rows_;
  std::vector<std::string> names_;
  FieldChoice choice_;
  bool with_labels_ = false;
  Numbers inputs_;
  Numbers labels_;
  RowLines lines_;
  int64_t count_ = 0;
};

}  // namespace

absl::StatusOr<StoredData> ReadCsv(const job::DataFiles& files, const ReadOptions& options) {
  LS_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(files.inputs(), options.pulse));
  return CsvTable(files, options, std::move(source)).Read();
}

}  // namespace lockstep::worker
