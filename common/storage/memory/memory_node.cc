#include "common/storage/memory/memory_node.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep {

void MemoryStorage::Node::ForgetLinks(Node& node) {
  node.links = 0;
  for (const auto& [name, child] : node.names) ForgetLinks(*child);
}

uint64_t MemoryStorage::Node::CountLinks(Node& node) {
  uint64_t total = ++node.links == 1 ? node.data.size() : 0;
  for (const auto& [name, child] : node.names) total += CountLinks(*child);
  return total;
}

uint64_t MemoryStorage::Node::Recount(Node& directory) {
  ForgetLinks(directory);
  return CountLinks(directory);
}

MemoryWritableFile::MemoryWritableFile(MemoryStorage& storage, MemoryStorage::NodePtr node, std::string path)
    : storage_(storage), node_(std::move(node)), path_(std::move(path)), epoch_(storage.epoch_) {}

absl::Status MemoryWritableFile::CheckOpen() const {
  if (epoch_ != storage_.epoch_) return absl::AbortedError(absl::StrCat(path_, " was open when the machine went down"));
  if (!open_) return absl::FailedPreconditionError(absl::StrCat(path_, " is closed"));
  return storage_.CheckUp();
}

absl::Status MemoryWritableFile::Append(absl::string_view bytes) {
  LS_RETURN_IF_ERROR(CheckOpen());
  absl::Status begun = storage_.Begin("write", path_, bytes.size());
  if (!begun.ok()) bytes = bytes.substr(0, bytes.size() / 2);
  node_->data.append(bytes.data(), bytes.size());
  storage_.used_bytes_ += bytes.size();
  return begun;
}

absl::Status MemoryWritableFile::Sync() {
  LS_RETURN_IF_ERROR(CheckOpen());
  LS_RETURN_IF_ERROR(storage_.Begin("sync", path_, 0));
  node_->synced = node_->data.size();
  return absl::OkStatus();
}

absl::Status MemoryWritableFile::Close() {
  LS_RETURN_IF_ERROR(CheckOpen());
  open_ = false;
  return storage_.CheckUp();
}

MemoryReadableFile::MemoryReadableFile(const MemoryStorage& storage, MemoryStorage::NodePtr node, std::string path)
    : storage_(storage), node_(std::move(node)), path_(std::move(path)), size_(node_->data.size()) {}

absl::Status MemoryReadableFile::ReadAt(uint64_t offset, absl::Span<char> out) const {
  LS_RETURN_IF_ERROR(storage_.CheckUp());
  if (out.empty()) return absl::OkStatus();
  const std::string& data = node_->data;
  if (offset > data.size() || out.size() > data.size() - offset) {
    return absl::DataLossError(absl::StrCat(storage_.Describe(path_), " ends at byte ", data.size(), "; expected ",
                                            out.size(), " bytes from byte ", offset, ". It was truncated"));
  }
  std::memcpy(out.data(), data.data() + offset, out.size());
  return absl::OkStatus();
}

MemoryLock::MemoryLock(MemoryStorage& storage, std::string path)
    : storage_(storage), path_(std::move(path)), epoch_(storage.epoch_) {}

MemoryLock::~MemoryLock() {
  if (epoch_ == storage_.epoch_) storage_.locks_.erase(path_);
}

}  // namespace lockstep
