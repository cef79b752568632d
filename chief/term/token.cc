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
  LS_ASSIGN_OR_RETURN(const std::string content, ReadWholeFile(storage, layout::kToken, kMaxSmallFile));
  const std::string token(absl::StripAsciiWhitespace(content));
  const bool plausible = token.size() >= 2 * kTokenBytes &&
                         std::all_of(token.begin(), token.end(), [](char c) { return absl::ascii_isgraph(c); });
  if (!plausible) {
    return absl::DataLossError(absl::StrCat(storage.Describe(layout::kToken), " holds no token; expected ",
                                            2 * kTokenBytes, " characters. Remove it to have a new one made"));
  }
  return token;
}

absl::StatusOr<std::string> LoadOrMakeToken(TermHold& hold) {
  absl::StatusOr<std::string> token = ReadToken(hold.storage());
  if (!absl::IsNotFound(token.status())) return token;
  LS_ASSIGN_OR_RETURN(const std::string made, RandomSecretHex(kTokenBytes));
  LS_RETURN_IF_ERROR(hold.Replace(layout::kToken, made + "\n", Access::kPrivate));
  return made;
}

absl::Status WriteAddress(TermHold& hold, absl::string_view address) {
  return hold.Replace(layout::kAddress, absl::StrCat(address, "\n"));
}

absl::StatusOr<std::string> ReadAddress(const Storage& storage) {
  LS_ASSIGN_OR_RETURN(const std::string content, ReadWholeFile(storage, layout::kAddress, kMaxSmallFile));
  return std::string(absl::StripAsciiWhitespace(content));
}

}  // namespace lockstep::chief
