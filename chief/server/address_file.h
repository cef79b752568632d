// The chief's address in a file of somebody's choice (--address-file), beside DIR/chief/address: whoever is given it
// never meets another chief of the directory. One line, HOST:PORT.
//
// Threading: thread-safe for different files; every call blocks.
#ifndef LOCKSTEP_CHIEF_SERVER_ADDRESS_FILE_H_
#define LOCKSTEP_CHIEF_SERVER_ADDRESS_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep::chief {

// Puts `address` into the file at `path`, in one step: readers find all of it or what was there before. Codes of the
// storage.
absl::Status WriteAddressFile(const std::string& path, absl::string_view address);

// Writes it where the file is missing or empty; the folder it lies in is made again as well, but none above. Codes of
// the storage.
absl::Status RestoreAddressFile(const std::string& path, absl::string_view address);

// Removes the file, and what a chief that was killed while it wrote left beside it.
void RemoveAddressFile(const std::string& path);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_ADDRESS_FILE_H_
