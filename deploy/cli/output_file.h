// The place of a file that a command writes, complete and durable, in an existing folder.
//
// Threading: thread-compatible; opening blocks on the file system.
#ifndef LOCKSTEP_DEPLOY_CLI_OUTPUT_FILE_H_
#define LOCKSTEP_DEPLOY_CLI_OUTPUT_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/storage/local/local_storage.h"

namespace lockstep::cli {

struct OutputFile {
  // InvalidArgument: `path` names no file. NotFound: its folder does not exist.
  static absl::StatusOr<OutputFile> At(const std::string& path);

  std::unique_ptr<LocalStorage> folder;
  std::string name;  // the file's name in `folder`
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_OUTPUT_FILE_H_
