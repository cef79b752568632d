// Keeps the chief's address in a file of the user's choice (--address-file), besides DIR/chief/address: one line,
// HOST:PORT. Workers that are given this file never meet another chief of the directory.
//
// Threading: thread-safe for different files; every call blocks.
#ifndef LOCKSTEP_CHIEF_SERVER_ADDRESS_FILE_H_
#define LOCKSTEP_CHIEF_SERVER_ADDRESS_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep::chief {

// Writes `address` to the file at `path` atomically: readers find the old or the new content, never a part. Returns
// codes of the storage.
absl::Status WriteAddressFile(const std::string& path, absl::string_view address);

// Writes the file if it is missing or empty. Makes its folder again if that is missing, but no folder above. Returns
// codes of the storage.
absl::Status RestoreAddressFile(const std::string& path, absl::string_view address);

// Removes the file, the socket beside it, and a partly written file that a killed chief left.
void RemoveAddressFile(const std::string& path);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_ADDRESS_FILE_H_
