#include "common/storage/local/directory_names.h"

#include <cerrno>
#include <memory>

#include "common/storage/local/posix_error.h"

namespace lockstep {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

}  // namespace

absl::StatusOr<std::vector<std::string>> CollectNames(const std::function<const dirent*()>& next,
                                                      absl::string_view path) {
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* const entry = next();
    if (entry == nullptr && errno != 0) return PosixError(errno, "list directory", path);
    if (entry == nullptr) return names;
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
}

absl::StatusOr<std::vector<std::string>> ReadDirectoryNames(const std::string& path) {
  const std::unique_ptr<DIR, CloseDirectory> directory(opendir(path.c_str()));
  if (directory == nullptr) return PosixError(errno, "list directory", path);
  return CollectNames([&] { return readdir(directory.get()); }, path);
}

}  // namespace lockstep
