#include "common/net/chief_address.h"

#include <memory>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/checkpoint_format/sealed.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep {
namespace {

constexpr uint64_t kMaxAddressBytes = 4096;
constexpr absl::string_view kLockWord = "lock ";

}  // namespace

std::string EncodeChiefAddress(absl::string_view address, uint64_t lock_identity) {
  const std::string lock = lock_identity == 0 ? "" : absl::StrCat(kLockWord, lock_identity, "\n");
  return SealText(absl::StrCat(address, "\n", lock));
}

absl::StatusOr<std::string> ReadChiefAddress(const Storage& storage, absl::string_view path,
                                             absl::string_view lock_path) {
  const std::string shown = storage.Describe(path);
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, storage.OpenFile(path));
  if (file->size() > kMaxAddressBytes) return absl::DataLossError(absl::StrCat(shown, " is too long for an address"));
  std::string content(file->size(), '\0');
  LS_RETURN_IF_ERROR(file->ReadAt(0, absl::MakeSpan(content.data(), content.size())));
  LS_ASSIGN_OR_RETURN(const std::string text, ReadSealedText(content, shown));
  const std::vector<std::string> lines = absl::StrSplit(absl::StripTrailingAsciiWhitespace(text), '\n');
  absl::string_view lock;
  if (lines.size() > 1) lock = lines[1];  // a choice between it and "" would be a copy, gone behind this line
  uint64_t written_beside = 0;
  const bool bound = absl::ConsumePrefix(&lock, kLockWord) && absl::SimpleAtoi(lock, &written_beside);
  if (lines.size() > 2 || (lines.size() == 2 && !bound)) {
    return absl::DataLossError(absl::StrCat(shown, " was damaged: it holds more than an address"));
  }
  std::string found(absl::StripAsciiWhitespace(lines[0]));
  if (found.empty()) return absl::NotFoundError(absl::StrCat(shown, " is empty"));
  if (!bound) return found;
  const auto beside = storage.OpenFile(lock_path);
  const uint64_t identity = beside.ok() ? (*beside)->facts().identity : 0;
  if (identity == 0 || identity == written_beside) return found;
  return absl::FailedPreconditionError(absl::StrCat(
      shown, " was written beside another lock: this directory is a copy of the one where that chief listens, or ",
      storage.Describe(lock_path),
      " was removed and made again since. No chief is known to listen for this directory: start one here, "
      "or give the address of the one that is meant"));
}

}  // namespace lockstep
