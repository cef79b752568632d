// The files chief/token, the secret that every caller of the chief presents, and chief/address, where the chief
// listens.
//
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_CHIEF_TERM_TOKEN_H_
#define LOCKSTEP_CHIEF_TERM_TOKEN_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chief/term/term_claim.h"
#include "common/net/chief_address.h"
#include "common/storage/storage.h"

namespace lockstep::chief {

// Reads chief/token, or makes it if it is missing: 256 random bits as 64 hexadecimal digits, file mode 0600. DataLoss:
// the file holds something else. PermissionDenied: it belongs to another user, or others may read it.
absl::StatusOr<std::string> LoadOrMakeToken(TermHold& hold);
// Reads chief/token. NotFound: there is none.
absl::StatusOr<std::string> ReadToken(const Storage& storage);

// PermissionDenied if the existing token belongs to another user, or others may read it. `own`: the facts of a private
// file of this process.
absl::Status CheckTokenIsOwn(const Storage& storage, const FileFacts& own);

// The address of the chief of the newest term, "HOST:PORT". Codes of reading as ReadChiefAddress.
absl::Status WriteAddress(TermHold& hold, absl::string_view address);
absl::StatusOr<std::string> ReadAddress(const Storage& storage);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TERM_TOKEN_H_
