// DIR/chief/address: the file that says where the chief of a job's directory listens. It is bound to its directory: a
// copy of the directory contains the address of the original's chief, and must not be used to reach it.
//
// The first line is HOST:PORT; the second, "lock <n>", identifies the chief/lock beside it when it was written (the
// file's number on its file system, which no copy has); the last is the digest of the lines before it. A file of one
// line, written by an earlier program or by hand, is accepted without these checks.
//
// Threading: thread-safe if the storage is; every call blocks.
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
// DataLoss: the file is damaged; FailedPrecondition: another lock was beside it when it was written, so this directory
// is a copy, or somebody removed the chief's lock. A running chief rewrites its address.
absl::StatusOr<std::string> ReadChiefAddress(const Storage& storage, absl::string_view path,
                                             absl::string_view lock_path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_CHIEF_ADDRESS_H_
