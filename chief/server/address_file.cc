#include "chief/server/address_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "common/digest/random_secret.h"
#include "common/status/status_macros.h"
#include "common/storage/local/posix_error.h"

namespace lockstep::chief {

absl::Status AddressFile::Write() const {
  if (path_.empty()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const std::string unique, RandomSecretHex(8));
  const std::string staged = absl::StrCat(path_, ".", unique);
  const int file = open(staged.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return PosixError(errno, "create", staged);
  const std::string line = absl::StrCat(address_, "\n");
  int error = write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size()) ? 0 : errno;
  if (close(file) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(staged.c_str(), path_.c_str()) != 0) error = errno;
  if (error == 0) return absl::OkStatus();
  std::remove(staged.c_str());
  return PosixWriteError(error, path_, line.size());
}

absl::Status AddressFile::Keep() const {
  struct stat info;
  const bool gone = !path_.empty() && lstat(path_.c_str(), &info) != 0 && errno == ENOENT;
  return gone ? Write() : absl::OkStatus();
}

}  // namespace lockstep::chief
