// The rows of a CSV file, one after the other: cells between delimiters, in double quotes where they hold one, a quote
// in them doubled; lines end with LF or CRLF. Empty lines and a byte order mark are passed over.
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

namespace lockstep::worker {

class CsvRows {
 public:
  static constexpr size_t kLargestCell = 1 << 16;
  static constexpr size_t kMostCells = 1 << 20;

  // REQUIRES: `source` outlives the rows.
  CsvRows(ByteSource* source, char delimiter);

  // Reads the next row into `cells`; false at the end. InvalidArgument and DataLoss name the line.
  absl::StatusOr<bool> Next(std::vector<std::string>* cells);

  // The line, from 1, that the row read last began in.
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

  ByteSource* source_;
  char delimiter_;
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
