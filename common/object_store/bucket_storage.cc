#include "common/object_store/bucket_storage.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/object_store/bucket_files.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep {
namespace {

constexpr uint64_t kMaxReplacedBytes = uint64_t{64} << 20;
constexpr int kLooks = 3;  // at a small file that grows while it is opened

// The beginning of the keys of what lies in a directory.
std::string KeysBelow(absl::string_view path) { return path.empty() ? std::string() : absl::StrCat(path, "/"); }

}  // namespace

absl::Status BucketStorage::PutFile(absl::string_view path, absl::string_view content) {
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  return store_.Put(path, content, PutCondition::kNone);
}

absl::Status BucketStorage::PutNewFile(absl::string_view path, absl::string_view content) {
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  return store_.Put(path, content, PutCondition::kIfAbsent);
}

absl::Status BucketStorage::CreateDirectoryExclusive(absl::string_view path) { return CheckStoragePath(path); }

absl::Status BucketStorage::CreateDirectories(absl::string_view path) { return CheckStoragePath(path); }

absl::StatusOr<std::unique_ptr<WritableFile>> BucketStorage::CreateFile(absl::string_view path, Access) {
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  const absl::Status there = store_.Head(path).status();
  if (there.ok()) return absl::AlreadyExistsError(absl::StrCat(Describe(path), " is there already"));
  if (!absl::IsNotFound(there)) return there;
  return std::unique_ptr<WritableFile>(
      std::make_unique<BucketWriter>(&store_, senders_.get(), std::string(path), limits_.part_bytes));
}

absl::StatusOr<std::unique_ptr<ReadableFile>> BucketStorage::OpenFile(absl::string_view path) const {
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  for (int look = 1;; ++look) {
    LS_ASSIGN_OR_RETURN(const ObjectFacts facts, store_.Head(path));
    if (facts.size > limits_.whole_bytes) {
      return std::unique_ptr<ReadableFile>(std::make_unique<BucketReader>(
          &store_, std::string(path), facts.size, BucketReader::Blocks{limits_.first_block, limits_.longest_block}));
    }
    absl::StatusOr<std::string> content = store_.Get(path, limits_.whole_bytes);
    if (absl::IsResourceExhausted(content.status()) && look < kLooks) continue;
    LS_RETURN_IF_ERROR(content.status());
    return std::unique_ptr<ReadableFile>(
        std::make_unique<BucketReader>(&store_, std::string(path), *std::move(content)));
  }
}

absl::StatusOr<std::vector<DirectoryEntry>> BucketStorage::List(absl::string_view path) const {
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  ListRequest request;
  request.prefix = KeysBelow(path);
  request.by_folder = true;
  LS_ASSIGN_OR_RETURN(const Listing listing, store_.List(request));
  std::vector<DirectoryEntry> entries;
  for (const ListedObject& object : listing.objects) {
    absl::string_view name = object.key;
    // A key that ends with '/' is how some tools draw an empty directory.
    if (absl::ConsumePrefix(&name, request.prefix) && !name.empty()) {
      entries.push_back({std::string(name), /*is_directory=*/false, object.size});
    }
  }
  for (const std::string& folder : listing.folders) {
    absl::string_view name = folder;
    absl::ConsumePrefix(&name, request.prefix);
    absl::ConsumeSuffix(&name, "/");
    entries.push_back({std::string(name), /*is_directory=*/true, 0});
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

absl::StatusOr<bool> BucketStorage::Exists(absl::string_view path) const {
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  if (path.empty()) return true;
  const absl::Status head = store_.Head(path).status();
  if (head.ok()) return true;
  if (!absl::IsNotFound(head)) return head;
  ListRequest request;
  request.prefix = KeysBelow(path);
  request.limit = 1;
  LS_ASSIGN_OR_RETURN(const Listing listing, store_.List(request));
  return !listing.objects.empty();
}

absl::Status BucketStorage::Rename(absl::string_view from, absl::string_view to) {
  return absl::UnimplementedError(
      absl::StrCat(Describe(from), " cannot be renamed to ", Describe(to), ": a bucket has no renames"));
}

absl::Status BucketStorage::Replace(absl::string_view from, absl::string_view to) {
  LS_RETURN_IF_ERROR(CheckStoragePath(from));
  LS_ASSIGN_OR_RETURN(const std::string content, store_.Get(from, kMaxReplacedBytes));
  LS_RETURN_IF_ERROR(PutFile(to, content));
  return store_.Delete(from);
}

absl::Status BucketStorage::Link(absl::string_view from, absl::string_view to) {
  LS_RETURN_IF_ERROR(CheckStoragePath(from));
  LS_RETURN_IF_ERROR(CheckStoragePath(to));
  const absl::StatusOr<ObjectFacts> there = store_.Head(to);
  if (there.ok()) return absl::AlreadyExistsError(absl::StrCat(Describe(to), " is there"));
  if (!absl::IsNotFound(there.status())) return there.status();
  const absl::Status copied = store_.Copy(from, to);
  return absl::IsFailedPrecondition(copied) ? absl::UnimplementedError(copied.message()) : copied;
}

absl::Status BucketStorage::RemoveTree(absl::string_view path) {
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  if (!path.empty()) LS_RETURN_IF_ERROR(store_.Delete(path));
  ListRequest request;
  request.prefix = KeysBelow(path);
  LS_ASSIGN_OR_RETURN(const Listing listing, store_.List(request));
  for (const ListedObject& object : listing.objects) LS_RETURN_IF_ERROR(store_.Delete(object.key));
  return absl::OkStatus();
}

absl::Status BucketStorage::SyncDirectory(absl::string_view path) { return CheckStoragePath(path); }

absl::StatusOr<uint64_t> BucketStorage::FreeBytes() const { return std::numeric_limits<uint64_t>::max(); }

absl::StatusOr<std::unique_ptr<StorageLock>> BucketStorage::Lock(absl::string_view path, absl::string_view) {
  return absl::UnimplementedError(absl::StrCat(Describe(path), " cannot be locked: a bucket has no locks"));
}

}  // namespace lockstep
