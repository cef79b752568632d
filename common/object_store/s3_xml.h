// Reads and writes S3's XML. Reading is strict: an answer with another root, or without a required element, is
// rejected. It uses tinyxml2, which knows no custom entities and loads no schemas or files.
//
// Threading: immutable; all functions are thread-safe.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_S3_XML_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_S3_XML_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/object_store/object_store.h"

namespace lockstep {

struct S3Error {
  std::string code;  // "NoSuchKey"
  std::string message;
  std::string region;  // that the server expects; "": not given
};
// nullopt when the text is no error.
std::optional<S3Error> ParseS3Error(absl::string_view text);

struct S3ListPage {
  std::vector<ListedObject> objects;
  std::vector<std::string> folders;
  std::string next_token;  // "": this is the last page
};
// The following functions return Unavailable when the text is not the expected answer.
absl::StatusOr<S3ListPage> ParseListPage(absl::string_view text);

struct S3UploadsPage {
  std::vector<Upload> uploads;
  bool truncated = false;
  std::string next_key, next_id;
};
absl::StatusOr<S3UploadsPage> ParseUploadsPage(absl::string_view text);
absl::StatusOr<std::string> ParseUploadId(absl::string_view text);
// OK when the upload is complete.
absl::Status ParseCompleted(absl::string_view text);
// OK when the object was copied.
absl::Status ParseCopied(absl::string_view text);

// The body of CompleteMultipartUpload.
std::string CompletionBody(absl::Span<const UploadedPart> parts, bool with_checksums);
// A CRC in the form of S3's headers and bodies: its four bytes, most significant first, in base64.
std::string ChecksumText(uint32_t crc32c);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_S3_XML_H_
