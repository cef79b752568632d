#include "common/object_store/memory_object_store.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/digest/crc32c.h"
#include "common/digest/sha256.h"
#include "common/object_store/object_key.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

std::string EtagOfBytes(absl::string_view bytes) { return Sha256Hex(bytes).substr(0, 32); }

}  // namespace

template <typename Result, typename Effect>
Result MemoryObjectStore::Apply(const Effect& effect) {
  const ObjectFault fault = next_fault();
  if (fault == ObjectFault::kNone) return effect();
  if (fault == ObjectFault::kTwice || fault == ObjectFault::kAnswerLost) (void)effect();
  if (fault == ObjectFault::kTwice) return effect();
  return absl::UnavailableError("the connection was reset");
}

absl::Status MemoryObjectStore::Put(absl::string_view key, absl::string_view bytes, PutCondition condition) {
  LS_RETURN_IF_ERROR(CheckObjectKey(key));
  MutexLock lock(&mutex_);
  const ObjectFault fault = next_fault();
  const auto store = [&]() EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return Store(std::string(key), bytes, condition); };
  if (fault == ObjectFault::kNone) return store();
  if (fault == ObjectFault::kTwice || fault == ObjectFault::kAnswerLost) store().IgnoreError();
  if (fault == ObjectFault::kTwice) return store();
  if (fault == ObjectFault::kLate) late_.push_back({std::string(key), std::string(bytes), condition});
  return absl::UnavailableError("the connection was reset");
}

absl::Status MemoryObjectStore::Store(const std::string& key, absl::string_view bytes, PutCondition condition) {
  if (condition == PutCondition::kIfAbsent && objects_.count(key) != 0) {
    return absl::AlreadyExistsError(absl::StrCat(Describe(key), " is there"));
  }
  objects_[key] = {std::string(bytes), EtagOfBytes(bytes)};
  return absl::OkStatus();
}

absl::Status MemoryObjectStore::Copy(absl::string_view from, absl::string_view to) {
  LS_RETURN_IF_ERROR(CheckObjectKey(from));
  LS_RETURN_IF_ERROR(CheckObjectKey(to));
  MutexLock lock(&mutex_);
  return Apply<absl::Status>([&]() EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
    const auto found = objects_.find(std::string(from));
    if (found == objects_.end()) return absl::NotFoundError(Describe(from));
    objects_.insert_or_assign(std::string(to), Object(found->second));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::string> MemoryObjectStore::Get(absl::string_view key, uint64_t max_bytes) {
  LS_RETURN_IF_ERROR(CheckObjectKey(key));
  MutexLock lock(&mutex_);
  return Apply<absl::StatusOr<std::string>>([&]() -> absl::StatusOr<std::string> {
    const auto found = objects_.find(std::string(key));
    if (found == objects_.end()) return absl::NotFoundError(Describe(key));
    if (found->second.bytes.size() > max_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(Describe(key), " has more than ", max_bytes, " bytes"));
    }
    return found->second.bytes;
  });
}

absl::StatusOr<std::string> MemoryObjectStore::GetRange(absl::string_view key, uint64_t offset, uint64_t length) {
  LS_RETURN_IF_ERROR(CheckObjectKey(key));
  MutexLock lock(&mutex_);
  return Apply<absl::StatusOr<std::string>>([&]() -> absl::StatusOr<std::string> {
    const auto found = objects_.find(std::string(key));
    if (found == objects_.end()) return absl::NotFoundError(Describe(key));
    const std::string& bytes = found->second.bytes;
    if (offset > bytes.size() || length > bytes.size() - offset) {
      return absl::DataLossError(absl::StrCat(Describe(key), " ends before byte ", offset + length));
    }
    return bytes.substr(offset, length);
  });
}

absl::StatusOr<ObjectFacts> MemoryObjectStore::Head(absl::string_view key) {
  LS_RETURN_IF_ERROR(CheckObjectKey(key));
  MutexLock lock(&mutex_);
  return Apply<absl::StatusOr<ObjectFacts>>([&]() -> absl::StatusOr<ObjectFacts> {
    const auto found = objects_.find(std::string(key));
    if (found == objects_.end()) return absl::NotFoundError(Describe(key));
    return ObjectFacts{found->second.bytes.size(), found->second.etag};
  });
}

absl::StatusOr<Listing> MemoryObjectStore::List(const ListRequest& request) {
  LS_RETURN_IF_ERROR(CheckKeyPrefix(request.prefix));
  MutexLock lock(&mutex_);
  return Apply<absl::StatusOr<Listing>>([&]() -> absl::StatusOr<Listing> {
    Listing listing;
    for (auto it = objects_.lower_bound(request.prefix); it != objects_.end(); ++it) {
      const std::string& key = it->first;
      if (!absl::StartsWith(key, request.prefix)) break;
      if (key <= request.start_after) continue;
      const size_t slash = request.by_folder ? key.find('/', request.prefix.size()) : std::string::npos;
      const std::string folder = slash == std::string::npos ? "" : key.substr(0, slash + 1);
      if (!folder.empty() && !listing.folders.empty() && listing.folders.back() == folder) continue;
      if (listing.objects.size() + listing.folders.size() >= request.limit) {
        listing.more = true;
        break;
      }
      if (folder.empty()) {
        listing.objects.push_back({key, it->second.bytes.size()});
      } else {
        listing.folders.push_back(folder);
      }
    }
    return listing;
  });
}

absl::Status MemoryObjectStore::Delete(absl::string_view key) {
  LS_RETURN_IF_ERROR(CheckObjectKey(key));
  MutexLock lock(&mutex_);
  return Apply<absl::Status>([&] {
    objects_.erase(std::string(key));
    return absl::OkStatus();
  });
}

absl::StatusOr<Upload> MemoryObjectStore::StartUpload(absl::string_view key) {
  LS_RETURN_IF_ERROR(CheckObjectKey(key));
  MutexLock lock(&mutex_);
  return Apply<absl::StatusOr<Upload>>([&]() -> absl::StatusOr<Upload> {
    Upload upload = {std::string(key), absl::StrCat("upload-", ++last_id_), /*takes_checksums=*/true};
    uploads_[upload.id].key = upload.key;
    return upload;
  });
}

absl::StatusOr<UploadedPart> MemoryObjectStore::PutPart(const Upload& upload, int number, absl::string_view bytes) {
  if (number < 1 || number > kMaxParts) return absl::InvalidArgumentError(absl::StrCat("part ", number));
  MutexLock lock(&mutex_);
  return Apply<absl::StatusOr<UploadedPart>>([&]() -> absl::StatusOr<UploadedPart> {
    const auto found = uploads_.find(upload.id);
    if (found == uploads_.end()) return absl::NotFoundError(absl::StrCat(Describe(upload.key), ": no such upload"));
    found->second.bytes[number] = std::string(bytes);
    return UploadedPart{number, bytes.size(), EtagOfBytes(bytes), Crc32c(bytes)};
  });
}

absl::Status MemoryObjectStore::CompleteUpload(const Upload& upload, absl::Span<const UploadedPart> parts) {
  MutexLock lock(&mutex_);
  return Apply<absl::Status>([&] { return Assemble(upload, parts); });
}

absl::Status MemoryObjectStore::Assemble(const Upload& upload, absl::Span<const UploadedPart> parts) {
  uint64_t size = 0;
  for (const UploadedPart& part : parts) size += part.size;
  const std::string suffix = absl::StrCat("-", parts.size());
  const auto found = uploads_.find(upload.id);
  if (found == uploads_.end()) {
    const auto object = objects_.find(upload.key);
    const bool same =
        object != objects_.end() && object->second.bytes.size() == size && absl::EndsWith(object->second.etag, suffix);
    return same ? absl::OkStatus() : absl::NotFoundError(absl::StrCat(Describe(upload.key), ": no such upload"));
  }
  std::string whole;
  int last = 0;
  for (const UploadedPart& part : parts) {
    const auto stored = found->second.bytes.find(part.number);
    const bool known = stored != found->second.bytes.end() && EtagOfBytes(stored->second) == part.etag;
    if (!known || part.number != last + 1) {
      return absl::InvalidArgumentError(absl::StrCat("part ", part.number, " is not known, or not in order"));
    }
    if (&part != &parts.back() && stored->second.size() < kMinPartBytes) {
      return absl::InvalidArgumentError(absl::StrCat("part ", part.number, " is too small"));
    }
    last = part.number;
    whole += stored->second;
  }
  if (parts.empty() || parts.size() != found->second.bytes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an upload of ", found->second.bytes.size(), " parts ends with ", parts.size()));
  }
  const std::string etag = EtagOfBytes(whole) + suffix;
  objects_[upload.key] = {std::move(whole), etag};
  uploads_.erase(found);
  return absl::OkStatus();
}

absl::Status MemoryObjectStore::AbortUpload(const Upload& upload) {
  MutexLock lock(&mutex_);
  return Apply<absl::Status>([&] {
    uploads_.erase(upload.id);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<Upload>> MemoryObjectStore::ListUploads(absl::string_view prefix) {
  MutexLock lock(&mutex_);
  return Apply<absl::StatusOr<std::vector<Upload>>>([&]() -> absl::StatusOr<std::vector<Upload>> {
    std::vector<Upload> uploads;
    for (const auto& [id, parts] : uploads_) {
      if (absl::StartsWith(parts.key, prefix)) uploads.push_back({parts.key, id, true});
    }
    return uploads;
  });
}

std::string MemoryObjectStore::Describe(absl::string_view key) const { return absl::StrCat("memory:", key); }

void MemoryObjectStore::Arrive(size_t count) {
  MutexLock lock(&mutex_);
  for (; count > 0 && !late_.empty(); --count) {
    const LatePut put = late_.front();
    late_.erase(late_.begin());
    Store(put.key, put.bytes, put.condition).IgnoreError();
  }
}

size_t MemoryObjectStore::late() const {
  MutexLock lock(&mutex_);
  return late_.size();
}

}  // namespace lockstep
