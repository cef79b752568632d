#include "worker/data/csv_rows.h"

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr size_t kBufferBytes = 1 << 18;

}  // namespace

CsvRows::CsvRows(ByteSource* source, char delimiter, const MemoryBudget* budget)
    : source_(source), delimiter_(delimiter), budget_(budget), buffer_(kBufferBytes, '\0') {
  if (Peek() != 0xef) return;
  if (size_ >= 3 && buffer_[1] == '\xbb' && buffer_[2] == '\xbf') at_ = 3;
}

std::string CsvRows::At(int64_t line) const { return absl::StrCat(source_->name(), ": line ", line, ": "); }

absl::Status CsvRows::Bad(absl::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat(At(line_), message));
}

int CsvRows::Peek() {
  if (at_ == size_ && !ended_) {
    const auto got = source_->ReadSome(absl::MakeSpan(reinterpret_cast<std::byte*>(buffer_.data()), buffer_.size()));
    if (!got.ok()) status_ = got.status();
    size_ = got.value_or(0);
    at_ = 0;
    ended_ = size_ < buffer_.size();
  }
  return at_ == size_ ? kEnd : static_cast<uint8_t>(buffer_[at_]);
}

int CsvRows::Get() {
  const int c = Peek();
  if (c == kEnd) return kEnd;
  ++at_;
  if (c == '\n') ++line_;
  return c;
}

absl::StatusOr<int> CsvRows::QuotedCell(std::string* cell) {
  const int64_t begin = line_;
  Get();
  while (true) {
    const int c = Get();
    if (c == kEnd) {
      LS_RETURN_IF_ERROR(status_);
      return absl::DataLossError(
          absl::StrCat(At(begin), "a quoted cell begins here and never ends; copy the file again, or mend the quotes"));
    }
    if (c == '"') {
      if (Peek() != '"') break;
      Get();
    }
    if (cell->size() == kLargestCell) return Bad(absl::StrCat("a cell of more than ", kLargestCell, " bytes"));
    cell->push_back(static_cast<char>(c));
  }
  int c = Get();
  if (c == '\r' && Peek() == '\n') c = Get();
  if (c == kEnd) LS_RETURN_IF_ERROR(status_);
  if (c == kEnd || c == '\n' || c == static_cast<uint8_t>(delimiter_)) return c;
  return Bad("a quoted cell is followed by more than the delimiter or the end of the line");
}

absl::StatusOr<int> CsvRows::Cell(std::string* cell) {
  cell->clear();
  if (Peek() == '"') return QuotedCell(cell);
  while (true) {
    const int c = Peek();
    if (c == kEnd) LS_RETURN_IF_ERROR(status_);
    if (c == kEnd || c == '\n' || c == static_cast<uint8_t>(delimiter_)) {
      if (c != static_cast<uint8_t>(delimiter_) && !cell->empty() && cell->back() == '\r') cell->pop_back();
      return Get();
    }
    if (c == 0) return Bad("a zero byte; this is no text");
    if (cell->size() == kLargestCell) return Bad(absl::StrCat("a cell of more than ", kLargestCell, " bytes"));
    cell->push_back(static_cast<char>(Get()));
    if (c == '\r' && Peek() != '\n' && Peek() != kEnd) {
      return Bad("a carriage return in the middle of a line; save the table with lines that end with LF or CRLF");
    }
  }
}

void CsvRows::DropCells(size_t from, std::vector<std::string>* cells) {
  for (size_t i = from; i < cells->size(); ++i) held_ -= sizeof(std::string) + (*cells)[i].capacity();
  cells->resize(from);
}

absl::StatusOr<int> CsvRows::NextCell(size_t index, std::vector<std::string>* cells) {
  if (index == kMostCells) return Bad(absl::StrCat("more than ", kMostCells, " cells"));
  if (index == cells->size()) {
    cells->emplace_back();
    held_ += sizeof(std::string) + cells->back().capacity();
  }
  std::string& cell = (*cells)[index];
  held_ -= cell.capacity();
  const absl::StatusOr<int> ended_by = Cell(&cell);
  held_ += cell.capacity();
  if (!ended_by.ok() || held_ <= static_cast<size_t>(budget_->scratch_bytes())) return ended_by;
  return absl::ResourceExhaustedError(absl::StrCat(At(row_line_), "the line takes more than the ",
                                                   budget_->scratch_bytes(),
                                                   " bytes that are left of data.memory; "
                                                   "raise it"));
}

absl::StatusOr<bool> CsvRows::Next(std::vector<std::string>* cells) {
  while (true) {
    row_line_ = line_;
    if (Peek() == kEnd) {
      LS_RETURN_IF_ERROR(status_);
      return false;
    }
    // Cells keep their memory for the next row, but not that of the longest of all rows.
    if (held_ > static_cast<size_t>(budget_->scratch_bytes()) / 2) {
      DropCells(0, cells);
      cells->shrink_to_fit();
    }
    size_t count = 0;
    const bool quoted = Peek() == '"';
    int ended_by = 0;
    do {
      LS_ASSIGN_OR_RETURN(ended_by, NextCell(count++, cells));
    } while (ended_by == static_cast<uint8_t>(delimiter_));
    DropCells(count, cells);
    if (count > 1 || quoted || !cells->front().empty()) return true;
  }
}

}  // namespace lockstep::worker
