// DIR/chief/address: where the chief of a job's directory listens. The file is bound to its directory: a copy of the
// directory holds the address of the chief of the original, and must not lead anybody there.
//
// The first line is HOST:PORT; the second, "lock <n>", says which chief/lock lay beside the file when it was written
// (the file's number on its file system, which no copy has); the last is the digest of the lines before it. An address
// of one line, of an earlier program or put there by hand, is taken as it is.
//
// Threading: as the storage; every call blocks.
#ifndef LOCKSTEP_COMMON_NET_CHIEF_ADDRESS_H_
#define LOCKSTEP_COMMON_NET_CHIEF_ADDRESS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/storage/storage.h"

namespace lockstep {

// The file's content. `lock_identity`: FileFacts::identity of the lock beside it, 0 when there is none.
std::string EncodeChiefAddress(absl::string_view address, uint64_t lock_identity);

// Reads the address at `path`, HOST:PORT, with the lock at `lock_path` beside it. NotFound: no chief ever listened;
// DataLoss: the file is damaged; FailedPrecondition: another lock lay beside it when it was written, so it is of the
// directory that this one is a copy of, or of a chief whose lock somebody removed. A chief that lives writes its own
// again.
absl::StatusOr<std::string> ReadChiefAddress(const Storage& storage, absl::string_view path,
                                             absl::string_view lock_path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_CHIEF_ADDRESS_H_
