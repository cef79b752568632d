#include "chief/term/token.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/naming.h"
#include "common/digest/random_secret.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr int kTokenBytes = 32;
constexpr uint64_t kMaxSmallFile = 4096;

}  // namespace

absl::StatusOr<std::string> ReadToken(const Storage& storage) {
  const absl::StatusOr<std::string> content = ReadWholeFile(storage, layout::kToken, kMaxSmallFile);
  if (!content.ok() && !absl::IsDataLoss(content.status())) return content.status();
  const std::string token(content.ok() ? absl::StripAsciiWhitespace(*content) : "");
  const bool plausible = token.size() >= 2 * kTokenBytes &&
                         std::all_of(token.begin(), token.end(), [](char c) { return absl::ascii_isgraph(c); });
  if (!plausible) {
    return absl::DataLossError(absl::StrCat(storage.Describe(layout::kToken), " holds no token; expected ",
                                            2 * kTokenBytes, " characters. Remove it to have a new one made"));
  }
  return token;
}

namespace {

// What the place says of a private file that this process has just made: some show another owner than the one who
// writes, or keep no permissions.
absl::StatusOr<FileFacts> FactsOfOwnFile(TermHold& hold) {
  Storage& storage = hold.storage();
  LS_ASSIGN_OR_RETURN(const std::string probe, hold.Scratch("probe"));
  LS_RETURN_IF_ERROR(WriteNewFile(storage, probe, "", Access::kPrivate));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, storage.OpenFile(probe));
  const FileFacts facts = file->facts();
  LS_RETURN_IF_ERROR(storage.RemoveTree(probe));
  return facts;
}

}  // namespace

// Whoever may read or has written the token can stop the job and read its weights.
absl::Status CheckTokenIsOwn(const Storage& storage, const FileFacts& own) {
  const std::string shown = storage.Describe(layout::kToken);
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, storage.OpenFile(layout::kToken));
  const FileFacts facts = file->facts();
  if (facts.owner != own.owner) {
    return absl::PermissionDeniedError(
        absl::StrCat(shown, " belongs to the user with id ", facts.owner, ", this chief writes as ", own.owner,
                     ": somebody else knows the token. Remove it to have a new one made"));
  }
  if (own.is_private && !facts.is_private) {
    return absl::PermissionDeniedError(
        absl::StrCat(shown, " can be read by others; set its mode with: chmod 600 ", shown));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> LoadOrMakeToken(TermHold& hold) {
  absl::StatusOr<std::string> token = ReadToken(hold.storage());
  if (token.ok() && !hold.in_bucket()) {  // whoever has the keys of a bucket may read and write all of it
    LS_ASSIGN_OR_RETURN(const FileFacts own, FactsOfOwnFile(hold));
    LS_RETURN_IF_ERROR(CheckTokenIsOwn(hold.storage(), own));
  }
  if (!absl::IsNotFound(token.status())) return token;
  LS_ASSIGN_OR_RETURN(const std::string made, RandomSecretHex(kTokenBytes));
  if (hold.in_bucket()) {
    const absl::Status stored = hold.StoreNew(layout::kToken, made + "\n");
    if (absl::IsAlreadyExists(stored))
      return ReadToken(hold.storage());  // another chief was faster, or this call twice
    LS_RETURN_IF_ERROR(stored);
    return made;
  }
  LS_RETURN_IF_ERROR(hold.Replace(layout::kToken, made + "\n", Access::kPrivate));
  return made;
}

absl::Status WriteAddress(TermHold& hold, absl::string_view address) {
  const auto lock = hold.storage().OpenFile(layout::kLock);
  if (!lock.ok() && !absl::IsNotFound(lock.status())) return lock.status();
  return hold.Replace(layout::kAddress, EncodeChiefAddress(address, lock.ok() ? (*lock)->facts().identity : 0));
}

absl::StatusOr<std::string> ReadAddress(const Storage& storage) {
  return ReadChiefAddress(storage, layout::kAddress, layout::kLock);
}

}  // namespace lockstep::chief
