// The XML that S3 speaks, read strictly: an answer with another root, or without what it has to say, is none.
// tinyxml2 reads it: it is one class of documents without entities, schemas or files to fetch.
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
  std::string region;  // that the server expects; "": it says none
};
// nullopt: the text is no error.
std::optional<S3Error> ParseS3Error(absl::string_view text);

struct S3ListPage {
  std::vector<ListedObject> objects;
  std::vector<std::string> folders;
  std::string next_token;  // "": this is the last page
};
// The Parse functions: Unavailable when the text is not the answer that is expected.
absl::StatusOr<S3ListPage> ParseListPage(absl::string_view text);

struct S3UploadsPage {
  std::vector<Upload> uploads;
  bool truncated = false;
  std::string next_key, next_id;
};
absl::StatusOr<S3UploadsPage> ParseUploadsPage(absl::string_view text);
absl::StatusOr<std::string> ParseUploadId(absl::string_view text);
// OK: the upload is complete.
absl::Status ParseCompleted(absl::string_view text);
// OK: the object is copied.
absl::Status ParseCopied(absl::string_view text);

// The body of CompleteMultipartUpload.
std::string CompletionBody(absl::Span<const UploadedPart> parts, bool with_checksums);
// A CRC as S3's headers and bodies have it: its four bytes, the highest first, in base64.
std::string ChecksumText(uint32_t crc32c);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_S3_XML_H_
