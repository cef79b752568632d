#include "chief/term/other_chief.h"

#include <sys/stat.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/checkpoint_format/naming.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr uint64_t kMaxLockBytes = 4096;

// Whether the process that `owner` names holds a lock on the file with this inode. The kernel lists all locks, a line
// each: "1: FLOCK  ADVISORY  WRITE 1234 08:01:131137 0 EOF".
bool IsHeld(const std::string& owner, uint64_t inode) {
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() < 6 || words[1] != "FLOCK") continue;
    if (absl::EndsWith(words[5], absl::StrCat(":", inode)) &&
        absl::StrContains(owner, absl::StrCat("pid ", words[4], " "))) {
      return true;
    }
  }
  return false;
}

}  // namespace

absl::Status OtherChiefError(const Storage& storage, absl::string_view held) {
  return absl::FailedPreconditionError(absl::StrCat("another chief runs this job: ", held,
                                                    ". Stop it first (lockstep stop --dir ", storage.Describe(""),
                                                    ") or choose another --dir"));
}

std::string LockText(int64_t pid, absl::string_view host) {
  return absl::StrCat("the chief with pid ", pid, " on host ", host);
}

std::optional<std::string> LockHolderHere(const Storage& storage) {
  struct stat info;
  const absl::StatusOr<std::string> owner = ReadWholeFile(storage, layout::kLock, kMaxLockBytes);
  if (!owner.ok() || stat(storage.Describe(layout::kLock).c_str(), &info) != 0) return std::nullopt;
  return IsHeld(*owner, info.st_ino) ? std::optional(*owner) : std::nullopt;
}

absl::Status CheckNoOtherChief(const Storage& storage) {
  const std::optional<std::string> holder = LockHolderHere(storage);
  if (!holder.has_value()) return absl::OkStatus();
  return OtherChiefError(storage, absl::StrCat(storage.Describe(layout::kLock), " is held by ", *holder));
}

}  // namespace lockstep::chief
