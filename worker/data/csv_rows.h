// Reads a CSV file row by row. Cells are separated by the delimiter; a cell in double quotes may contain delimiters,
// newlines and doubled quotes. Lines end with LF or CRLF. Empty lines and a byte order mark are skipped.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_DATA_CSV_ROWS_H_
#define LOCKSTEP_WORKER_DATA_CSV_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/data/byte_source.h"
#include "worker/data/growing_array.h"

namespace lockstep::worker {

class CsvRows {
 public:
  static constexpr size_t kLargestCell = 1 << 16;
  static constexpr size_t kMostCells = 1 << 20;

  // `budget` limits the memory of one row. REQUIRES: both outlive this object.
  CsvRows(ByteSource* source, char delimiter, const MemoryBudget* budget);

  // Reads the next row into `cells`; false at the end. Pass the same vector each time: its memory is counted and
  // reused. InvalidArgument, DataLoss and ResourceExhausted name the line.
  absl::StatusOr<bool> Next(std::vector<std::string>* cells);

  // The line, counted from 1, in which the last row began.
  int64_t line() const { return row_line_; }

  // "FILE: line 7: ".
  std::string At(int64_t line) const;

 private:
  static constexpr int kEnd = -1;

  // The next byte, or kEnd: at the end, or when `status_` is no longer OK.
  int Get();
  int Peek();
  // Reads one cell; returns the byte that ended it: the delimiter, '\n' or kEnd.
  absl::StatusOr<int> Cell(std::string* cell);
  absl::StatusOr<int> QuotedCell(std::string* cell);
  absl::Status Bad(absl::string_view message) const;

  // Reads cell number `index` into `cells`; returns as Cell.
  absl::StatusOr<int> NextCell(size_t index, std::vector<std::string>* cells);
  void DropCells(size_t from, std::vector<std::string>* cells);

  ByteSource* source_;
  char delimiter_;
  const MemoryBudget* budget_;
  size_t held_ = 0;  // bytes that the cells take
  std::string buffer_;
  size_t at_ = 0;
  size_t size_ = 0;
  bool ended_ = false;
  absl::Status status_;
  int64_t line_ = 1;
  int64_t row_line_ = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_CSV_ROWS_H_
