// chief/token, the secret that every caller of the chief shows, and chief/address, where the chief listens.
//
// Threading: as the storage; every call blocks.
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

// Reads chief/token; makes it when it is missing: 256 random bits as 64 hexadecimal digits, file mode 0600.
// DataLoss when the file holds something else; PermissionDenied when it belongs to another user, or others may read it.
absl::StatusOr<std::string> LoadOrMakeToken(TermHold& hold);
// Reads it without making one. NotFound.
absl::StatusOr<std::string> ReadToken(const Storage& storage);

// PermissionDenied when the token that is there belongs to another user, or others may read it. `own`: what the storage
// says of a private file of this process.
absl::Status CheckTokenIsOwn(const Storage& storage, const FileFacts& own);

// Where the chief of the newest term listens, "HOST:PORT". Codes of reading as ReadChiefAddress.
absl::Status WriteAddress(TermHold& hold, absl::string_view address);
absl::StatusOr<std::string> ReadAddress(const Storage& storage);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TERM_TOKEN_H_
