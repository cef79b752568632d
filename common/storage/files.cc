#include "common/storage/files.h"

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status/status_macros.h"

namespace lockstep {

absl::Status CheckStoragePath(absl::string_view path) {
  if (path.empty()) return absl::OkStatus();
  for (absl::string_view part : absl::StrSplit(path, '/')) {
    const bool strange = absl::StrContains(part, absl::string_view("\0", 1)) || absl::StrContains(part, '\\');
    if (part.empty() || part == "." || part == ".." || strange) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "' is not a storage path; expected relative parts separated by '/'"));
    }
  }
  return absl::OkStatus();
}

std::string JoinPath(absl::string_view a, absl::string_view b) {
  if (a.empty()) return std::string(b);
  if (b.empty()) return std::string(a);
  return absl::StrCat(a, "/", b);
}

absl::string_view ParentPath(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? absl::string_view() : path.substr(0, slash);
}

absl::string_view BaseName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

absl::StatusOr<std::string> ReadWholeFile(const Storage& storage, absl::string_view path, uint64_t limit_bytes) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, storage.OpenFile(path));
  if (file->size() > limit_bytes) {
    return absl::DataLossError(absl::StrCat(storage.Describe(path), " has ", file->size(), " bytes; expected at most ",
                                            limit_bytes, ". It is damaged, or another file was put in its place"));
  }
  std::string content(file->size(), '\0');
  LS_RETURN_IF_ERROR(file->ReadAt(0, absl::MakeSpan(content.data(), content.size())));
  return content;
}

absl::Status WriteNewFile(Storage& storage, absl::string_view path, absl::string_view content, Access access) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, storage.CreateFile(path, access));
  LS_RETURN_IF_ERROR(file->Append(content));
  LS_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

absl::Status ReplaceFile(Storage& storage, absl::string_view scratch, absl::string_view path, absl::string_view content,
                         Access access) {
  LS_RETURN_IF_ERROR(storage.RemoveTree(scratch));
  if (absl::Status written = WriteNewFile(storage, scratch, content, access); !written.ok()) {
    storage.RemoveTree(scratch).IgnoreError();
    return written;
  }
  return storage.Replace(scratch, path);
}

}  // namespace lockstep
