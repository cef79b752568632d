// The file that --address-file asks for: it says where this chief listens to workers that were given its path.
//
// Threading: thread-compatible; calls block on the file system.
#ifndef LOCKSTEP_CHIEF_SERVER_ADDRESS_FILE_H_
#define LOCKSTEP_CHIEF_SERVER_ADDRESS_FILE_H_

#include <string>
#include <utility>

#include "absl/status/status.h"

namespace lockstep::chief {

class AddressFile {
 public:
  // An empty path: no file is wanted, and every call is OK.
  AddressFile(std::string path, std::string address) : path_(std::move(path)), address_(std::move(address)) {}

  // Replaces the file, at once or not at all: workers read it again and again. A link in its place is replaced too, not
  // followed. Codes as PosixError.
  absl::Status Write() const;
  // Writes it again where somebody removed it.
  absl::Status Keep() const;

 private:
  const std::string path_;
  const std::string address_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_ADDRESS_FILE_H_
