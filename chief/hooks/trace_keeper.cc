#include "chief/hooks/trace_keeper.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace lockstep::chief {
namespace {

// A name of whatever characters as part of a file's.
std::string ForFile(std::string name) {
  for (char& c : name) {
    if (!absl::ascii_isalnum(c) && c != '-' && c != '_' && c != '.') c = '_';
  }
  return name;
}

}  // namespace

std::optional<WholeTrace> TraceKeeper::Take(const std::string& hook, int64_t step, const TracePiece& piece) {
  const std::string file = absl::StrCat(ForFile(hook), "-step-", step, ".", ForFile(piece.worker()), ".trace.json.gz");
  auto part = std::find_if(parts_.begin(), parts_.end(), [&](const Part& one) { return one.file == file; });
  // From the beginning also where another trace of the same steps was not finished.
  if (part != parts_.end() && piece.index() != part->pieces) {
    parts_.erase(part);
    part = parts_.end();
  }
  if (part == parts_.end()) {
    if (piece.index() != 0) return std::nullopt;
    if (parts_.size() == kMostUnfinished) parts_.pop_front();
    parts_.push_back({file, 0, ""});
    part = parts_.end() - 1;
  }
  ++part->pieces;
  part->bytes += piece.bytes();
  const bool whole = part->pieces == piece.pieces();
  if (!whole && part->bytes.size() <= kMostBytes) return std::nullopt;
  WholeTrace trace{file, std::move(part->bytes), ""};
  parts_.erase(part);
  if (!whole) return std::nullopt;
  trace.about = absl::StrCat("the next ", piece.steps(), piece.steps() == 1 ? " step of " : " steps of ",
                             piece.worker(), piece.cut() ? ", cut because it is too long," : "");
  return trace;
}

}  // namespace lockstep::chief
