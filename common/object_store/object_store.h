// Storage for a job's bytes without a file system: an S3 bucket, or memory for tests. An object exists whole or not at
// all, there is no rename, and the only exclusive operation is a Put of an object that must not exist.
//
// Keys are relative to the place that the store was opened for, and as object_key.h allows them.
//
// Invariants
//   * Among several Puts of one key with kIfAbsent exactly one stores its bytes, as long as nobody deletes the key.
//   * The effect of a call that returned OK is durable and visible to every later Get, Head and List.
//   * An object that is being replaced reads as the old one or the new one. An upload is invisible until it is
//     complete.
// Codes of every call: NotFound (no such object or upload), AlreadyExists (kIfAbsent alone), Unavailable (no answer in
// time despite retries: it is unknown whether the call took or will take effect), PermissionDenied (keys),
// FailedPrecondition (bucket, region, certificate, or a server that lacks an operation: a person has to act), DataLoss
// (bytes that do not match the checksum, or are missing), ResourceExhausted (a quota, or more bytes than asked for),
// InvalidArgument (a bad key or part). Messages name the place as a user sees it, and what to do.
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
  std::string start_after;  // only keys that sort after it; "": all
  size_t limit = std::numeric_limits<size_t>::max();
  bool by_folder = false;  // keys with a '/' after the prefix are listed as their folder. REQUIRES: no start_after
};

struct Listing {
  std::vector<ListedObject> objects;  // in the order of the bytes of their keys
  std::vector<std::string> folders;   // in order, with '/' at the end; by_folder alone
  bool more = false;                  // there are more than `limit` objects and folders
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

  // Stores an object of at most 5 GB. kIfAbsent: AlreadyExists when the object exists. This very call may have stored
  // it (the first answer was lost, and the request was repeated), so the caller has to check whose it is.
  // FailedPrecondition when the server does not support conditions.
  virtual absl::Status Put(absl::string_view key, absl::string_view bytes, PutCondition condition) = 0;

  // Copies the object `from` to `to` inside the server, replacing an existing one. FailedPrecondition when the server
  // cannot copy, or not an object of this size (5 GB and more).
  virtual absl::Status Copy(absl::string_view from, absl::string_view to) = 0;

  // The whole object. ResourceExhausted when it is longer than `max_bytes`.
  virtual absl::StatusOr<std::string> Get(absl::string_view key, uint64_t max_bytes) = 0;
  // `length` bytes from `offset`. DataLoss when the object ends before. REQUIRES: length > 0.
  virtual absl::StatusOr<std::string> GetRange(absl::string_view key, uint64_t offset, uint64_t length) = 0;
  virtual absl::StatusOr<ObjectFacts> Head(absl::string_view key) = 0;
  // Makes as many requests as it takes for `limit` keys.
  virtual absl::StatusOr<Listing> List(const ListRequest& request) = 0;
  // OK when there is none.
  virtual absl::Status Delete(absl::string_view key) = 0;

  // Starts an upload in parts, which are sent one by one, in any order, by several threads at once. The parts of an
  // upload that is never completed cost money until AbortUpload.
  virtual absl::StatusOr<Upload> StartUpload(absl::string_view key) = 0;
  // A part that is sent again replaces the earlier one. NotFound when the upload does not exist any more.
  virtual absl::StatusOr<UploadedPart> PutPart(const Upload& upload, int number, absl::string_view bytes) = 0;
  // Assembles the object from `parts`: all that were sent, numbered 1, 2, … in this order. A repeated call after a
  // success is OK when the object exists with that many parts and bytes, since a key serves one upload. InvalidArgument
  // when a part other than the last is too small, or parts are missing or not in order. After AbortUpload it returns
  // NotFound, or Unavailable: some servers do not distinguish a missing upload from a busy one.
  virtual absl::Status CompleteUpload(const Upload& upload, absl::Span<const UploadedPart> parts) = 0;
  // Forgets the upload and its parts. OK when there is none.
  virtual absl::Status AbortUpload(const Upload& upload) = 0;
  // Uploads that were started and neither completed nor aborted, for keys that begin with `prefix`.
  virtual absl::StatusOr<std::vector<Upload>> ListUploads(absl::string_view prefix) = 0;

  // The object's place as a user knows it, for messages.
  virtual std::string Describe(absl::string_view key) const = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_OBJECT_STORE_H_
