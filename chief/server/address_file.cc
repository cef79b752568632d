#include "chief/server/address_file.h"

#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/net/chief_channel.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/storage/local/local_storage.h"

namespace lockstep::chief {
namespace {

namespace fs = std::filesystem;

constexpr char kStaged[] = ".lockstep-new";

fs::path Full(const std::string& path) {
  std::error_code error;
  return fs::absolute(path, error);
}

absl::Status Write(const fs::path& path, absl::string_view address) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<LocalStorage> folder, LocalStorage::Open(path.parent_path().string()));
  const std::string name = path.filename().string();
  return ReplaceFile(*folder, absl::StrCat(name, kStaged), name, absl::StrCat(address, "\n"), Access::kShared);
}

}  // namespace

absl::Status WriteAddressFile(const std::string& path, absl::string_view address) {
  const absl::Status written = Write(Full(path), address);
  if (written.ok()) return written;
  return absl::Status(written.code(), absl::StrCat("the chief's address cannot be written to ", path,
                                                   " (--address-file): ", written.message()));
}

absl::Status RestoreAddressFile(const std::string& path, absl::string_view address) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (!error && size > 0) return absl::OkStatus();
  if (error && error != std::errc::no_such_file_or_directory) return absl::OkStatus();  // it may well be there
  fs::create_directory(Full(path).parent_path(), error);
  return WriteAddressFile(path, address);
}

void RemoveAddressFile(const std::string& path) {
  std::error_code none;
  fs::remove(path, none);
  fs::remove(absl::StrCat(path, kStaged), none);
  if (const std::string socket = SocketBeside(path); !socket.empty()) fs::remove(socket, none);
}

}  // namespace lockstep::chief
