// Files and directories of MemoryStorage, and its open files.
//
// Threading: thread-compatible; used by the thread that uses the storage.
#ifndef LOCKSTEP_COMMON_STORAGE_MEMORY_MEMORY_NODE_H_
#define LOCKSTEP_COMMON_STORAGE_MEMORY_MEMORY_NODE_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep {

struct MemoryStorage::Node {
  bool is_directory = false;
  std::map<std::string, NodePtr> names;          // of a directory, as callers see it
  std::map<std::string, NodePtr> durable_names;  // as a crash leaves it
  std::string data;                              // of a file
  size_t synced = 0;                             // bytes of `data` that survive a crash
  int links = 1;                                 // names that callers see
  uint64_t identity = 0;                         // of a file

  // Recounts the names of every file below `directory`, and returns the total bytes of these files.
  static uint64_t Recount(Node& directory);

 private:
  static void ForgetLinks(Node& node);
  static uint64_t CountLinks(Node& node);
};

class MemoryWritableFile final : public WritableFile {
 public:
  MemoryWritableFile(MemoryStorage& storage, MemoryStorage::NodePtr node, std::string path);

  absl::Status Append(absl::string_view bytes) override;
  absl::Status Sync() override;
  absl::Status Close() override;

 private:
  absl::Status CheckOpen() const;

  MemoryStorage& storage_;
  MemoryStorage::NodePtr node_;
  const std::string path_;
  const uint64_t epoch_;
  bool open_ = true;
};

class MemoryReadableFile final : public ReadableFile {
 public:
  MemoryReadableFile(const MemoryStorage& storage, MemoryStorage::NodePtr node, std::string path);

  uint64_t size() const override { return size_; }
  FileFacts facts() const override { return {.identity = node_->identity}; }  // no users
  absl::Status ReadAt(uint64_t offset, absl::Span<char> out) const override;

 private:
  const MemoryStorage& storage_;
  const MemoryStorage::NodePtr node_;
  const std::string path_;
  const uint64_t size_;
};

class MemoryLock final : public StorageLock {
 public:
  MemoryLock(MemoryStorage& storage, std::string path);
  ~MemoryLock() override;

 private:
  MemoryStorage& storage_;
  const std::string path_;
  const uint64_t epoch_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STORAGE_MEMORY_MEMORY_NODE_H_
