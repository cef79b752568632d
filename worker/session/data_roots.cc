#include "worker/session/data_roots.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace lockstep::worker {
namespace {

bool IsBelow(absl::string_view path, absl::string_view folder) {
  return absl::StartsWith(path, folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string Moved(const std::vector<DataRoot>& roots, const std::string& path) {
  const DataRoot* best = nullptr;
  for (const DataRoot& root : roots) {
    if (IsBelow(path, root.from) && (best == nullptr || root.from.size() > best->from.size())) best = &root;
  }
  return best == nullptr ? path : absl::StrCat(best->to, path.substr(best->from.size()));
}

void MoveFiles(const std::vector<DataRoot>& roots, job::DataFiles& files) {
  if (files.has_inputs()) files.set_inputs(Moved(roots, files.inputs()));
  if (files.has_labels()) files.set_labels(Moved(roots, files.labels()));
  if (files.has_tokens()) files.set_tokens(Moved(roots, files.tokens()));
}

// Without the slash at its end; "" for the root.
std::string Folder(absl::string_view path) {
  absl::ConsumeSuffix(&path, "/");
  return std::string(path);
}

}  // namespace

absl::StatusOr<DataRoot> ParseDataRoot(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string from = text.substr(0, equals), to = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (!absl::StartsWith(from, "/") || !absl::StartsWith(to, "/")) {
    return absl::InvalidArgumentError(absl::StrCat("--data-root '", text,
                                                   "': give FROM=TO, two absolute paths: what the ",
                                                   "job has below FROM is read below TO"));
  }
  return DataRoot{Folder(from), Folder(to)};
}

void MoveData(const std::vector<DataRoot>& roots, JobSpec& job) {
  if (job.data().has_train()) MoveFiles(roots, *job.mutable_data()->mutable_train());
  if (job.data().has_eval()) MoveFiles(roots, *job.mutable_data()->mutable_eval());
}

}  // namespace lockstep::worker
