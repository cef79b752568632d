// Where a job's bytes live when there is no file system: an S3 bucket, or memory for tests. Objects are whole or not
// there; nothing is renamed, and the only exclusive operation is a Put of an object that must not exist.
//
// Keys are relative to the place that the store was opened for, and as object_key.h allows them.
//
// Invariants
//   * Among several Puts of one key with kIfAbsent exactly one stores its bytes, as long as nobody deletes the key.
//   * What a call said OK to is durable, and every later Get, Head and List shows it.
//   * An object that is being replaced reads as the old one or the new one. An upload shows nothing before it is
//     complete.
// Codes of every call: NotFound (no such object or upload), AlreadyExists (kIfAbsent alone), Unavailable (no answer in
// time, though it was asked again: it is unknown whether the call had its effect, or will have), PermissionDenied
// (keys), FailedPrecondition (bucket, region, certificate, or a server that lacks an operation: somebody has to act),
// DataLoss (the bytes are not those of the checksum, or are not there), ResourceExhausted (a quota, or more bytes than
// asked for), InvalidArgument (a bad key or part). Messages name the place as a user sees it, and what to do.
//
// Threading: thread-safe; every call blocks.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_OBJECT_STORE_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_OBJECT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lockstep {

enum class PutCondition : uint8_t { kNone, kIfAbsent };

struct ObjectFacts {
  uint64_t size = 0;
  std::string etag;  // changes with the content; says nothing else
};

struct ListedObject {
  std::string key;
  uint64_t size = 0;

  friend bool operator==(const ListedObject&, const ListedObject&) = default;
};

struct ListRequest {
  std::string prefix;       // of the keys
  std::string start_after;  // keys that sort after it; "": all
  size_t limit = std::numeric_limits<size_t>::max();
  bool by_folder = false;  // keys with a '/' after the prefix are given as their folder. REQUIRES: no start_after
};

struct Listing {
  std::vector<ListedObject> objects;  // in the order of the bytes of their keys
  std::vector<std::string> folders;   // in order, with '/' at the end; by_folder alone
  bool more = false;                  // there are others beyond the limit, which counts objects and folders
};

struct Upload {
  std::string key;
  std::string id;
  bool takes_checksums = false;  // the server verifies CRC-32C of parts, and of the object at its completion
};

struct UploadedPart {
  int number = 0;
  uint64_t size = 0;
  std::string etag;
  uint32_t crc32c = 0;
};

constexpr uint64_t kMinPartBytes = uint64_t{5} << 20;  // of every part of an upload but the last
constexpr int kMaxParts = 10'000;                      // numbered from 1

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // Stores an object of at most 5 GB. kIfAbsent: AlreadyExists when there is one, which may be from this very call (its
  // first answer was lost, and it was sent again), so that the caller has to look whose it is. FailedPrecondition when
  // the server takes no conditions.
  virtual absl::Status Put(absl::string_view key, absl::string_view bytes, PutCondition condition) = 0;

  // Makes the object `to` of the bytes of `from`, which do not travel; in the place of what is there.
  // FailedPrecondition: the server does not copy, or not an object of this size (5 GB and more).
  virtual absl::Status Copy(absl::string_view from, absl::string_view to) = 0;

  // The whole object. ResourceExhausted: it is longer than `max_bytes`.
  virtual absl::StatusOr<std::string> Get(absl::string_view key, uint64_t max_bytes) = 0;
  // `length` bytes from `offset`. DataLoss: the object ends before. REQUIRES: length > 0.
  virtual absl::StatusOr<std::string> GetRange(absl::string_view key, uint64_t offset, uint64_t length) = 0;
  virtual absl::StatusOr<ObjectFacts> Head(absl::string_view key) = 0;
  // As many requests as it takes for `limit` keys.
  virtual absl::StatusOr<Listing> List(const ListRequest& request) = 0;
  // OK when there is none.
  virtual absl::Status Delete(absl::string_view key) = 0;

  // An object in parts that are sent one by one, in any order, by several threads at once. Parts that no
  // CompleteUpload follows cost money until AbortUpload.
  virtual absl::StatusOr<Upload> StartUpload(absl::string_view key) = 0;
  // A part that is sent again replaces the one before. NotFound: there is no such upload any more.
  virtual absl::StatusOr<UploadedPart> PutPart(const Upload& upload, int number, absl::string_view bytes) = 0;
  // Makes the object of `parts`: all that were sent, numbered 1, 2, … and in this order. Called again after it went
  // through, it is OK when the object is there with that many parts and bytes: a key serves one upload.
  // InvalidArgument: a part other than the last is too small, or parts are missing or not in order. After AbortUpload
  // it is NotFound, or Unavailable: some servers do not tell an upload that is gone from one that is busy.
  virtual absl::Status CompleteUpload(const Upload& upload, absl::Span<const UploadedPart> parts) = 0;
  // Forgets the upload and its parts. OK when there is none.
  virtual absl::Status AbortUpload(const Upload& upload) = 0;
  // Those that were started and neither completed nor aborted, of keys that begin with `prefix`.
  virtual absl::StatusOr<std::vector<Upload>> ListUploads(absl::string_view prefix) = 0;

  // As a user finds it, for messages.
  virtual std::string Describe(absl::string_view key) const = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_OBJECT_STORE_H_
