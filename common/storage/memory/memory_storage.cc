#include "common/storage/memory/memory_storage.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_node.h"

namespace lockstep {
namespace {

constexpr size_t kTornTail = 512;  // a sector

// Steele, Lea, Flood: SplitMix64.
uint64_t NextRandom(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

absl::Status Missing(absl::string_view path) { return absl::NotFoundError(absl::StrCat(path, " does not exist")); }

absl::Status Taken(absl::string_view path) { return absl::AlreadyExistsError(absl::StrCat(path, " exists")); }

}  // namespace

MemoryStorage::MemoryStorage() : root_(std::make_shared<Node>()) { root_->is_directory = true; }
MemoryStorage::~MemoryStorage() = default;

void MemoryStorage::SetFaults(StorageFaults faults) {
  faults_ = std::move(faults);
  operations_ = 0;
}

std::string MemoryStorage::Describe(absl::string_view path) const { return absl::StrCat("memory:/", path); }

absl::Status MemoryStorage::CheckUp() const {
  return down_ ? absl::AbortedError("the machine is down") : absl::OkStatus();
}

absl::Status MemoryStorage::Begin(absl::string_view what, absl::string_view path, uint64_t bytes) {
  LS_RETURN_IF_ERROR(CheckUp());
  const int64_t number = operations_++;
  if (hook_) {
    const auto hook = hook_;  // it may set another
    hook(number, what);
  }
  const std::string shown = Describe(path);
  const uint64_t available = faults_.capacity_bytes - std::min(faults_.capacity_bytes, used_bytes_);
  const auto fault = faults_.at.find(number);
  if ((fault != faults_.at.end() && fault->second == StorageFaults::Kind::kDiskFull) || bytes > available) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot ", what, " ", shown, ": the disk is full; needed ", bytes,
                                                     " bytes, available ", std::min(available, bytes / 2), " bytes"));
  }
  if (fault == faults_.at.end()) return absl::OkStatus();
  if (fault->second == StorageFaults::Kind::kIoError) {
    return absl::UnavailableError(absl::StrCat("cannot ", what, " ", shown, ": Input/output error"));
  }
  down_ = true;
  return CheckUp();
}

MemoryStorage::NodePtr MemoryStorage::Find(absl::string_view path) const {
  NodePtr node = root_;
  if (path.empty()) return node;
  for (absl::string_view part : absl::StrSplit(path, '/')) {
    if (!node->is_directory) return nullptr;
    const auto it = node->names.find(std::string(part));
    if (it == node->names.end()) return nullptr;
    node = it->second;
  }
  return node;
}

absl::StatusOr<MemoryStorage::NodePtr> MemoryStorage::FindParent(absl::string_view path) const {
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  if (path.empty()) return absl::InvalidArgumentError("the root of a storage is there already");
  NodePtr parent = Find(ParentPath(path));
  if (parent == nullptr) return Missing(Describe(ParentPath(path)));
  if (!parent->is_directory) {
    return absl::FailedPreconditionError(absl::StrCat(Describe(ParentPath(path)), " is a file"));
  }
  return parent;
}

void MemoryStorage::Apply(Change change) {
  for (const Change::Entry& entry : change.entries) {
    if (entry.node == nullptr) {
      entry.directory->names.erase(entry.name);
    } else {
      entry.directory->names[entry.name] = entry.node;
    }
  }
  pending_.push_back(std::move(change));
}

void MemoryStorage::Commit(const Change& change) {
  for (const Change::Entry& entry : change.entries) {
    if (entry.node == nullptr) {
      entry.directory->durable_names.erase(entry.name);
    } else {
      entry.directory->durable_names[entry.name] = entry.node;
    }
  }
}

void MemoryStorage::SyncNames(const NodePtr& directory) {
  std::set<Node*> reached = {directory.get()};
  std::vector<bool> needed(pending_.size(), false);
  for (size_t i = pending_.size(); i-- > 0;) {
    const auto& entries = pending_[i].entries;
    needed[i] = std::any_of(entries.begin(), entries.end(),
                            [&](const Change::Entry& e) { return reached.contains(e.directory.get()); });
    if (!needed[i]) continue;
    for (const Change::Entry& entry : entries) reached.insert(entry.directory.get());
  }
  std::vector<Change> rest;
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (needed[i]) {
      Commit(pending_[i]);
    } else {
      rest.push_back(std::move(pending_[i]));
    }
  }
  pending_ = std::move(rest);
}

void MemoryStorage::LoseUnsynced(Node& node, Survival survival, uint64_t& random) {
  if (node.is_directory) {
    node.names = node.durable_names;
    for (auto& [name, child] : node.names) LoseUnsynced(*child, survival, random);
    return;
  }
  const size_t unsynced = node.data.size() - node.synced;
  if (survival == Survival::kNothing) node.data.resize(node.synced);
  if (survival == Survival::kSome && unsynced > 0) {
    node.data.resize(node.synced + NextRandom(random) % (unsynced + 1));
    const size_t tail = std::min(kTornTail, node.data.size() - node.synced);
    if (NextRandom(random) % 2 == 0) std::fill(node.data.end() - static_cast<ptrdiff_t>(tail), node.data.end(), '\0');
  }
  node.synced = node.data.size();
}

void MemoryStorage::Restart(Survival survival, uint64_t seed) {
  std::set<Node*> lost;  // directories of which a change was lost: later ones are lost as well
  for (const Change& change : pending_) {
    const bool depends = std::any_of(change.entries.begin(), change.entries.end(),
                                     [&](const Change::Entry& e) { return lost.contains(e.directory.get()); });
    const bool keep = survival == Survival::kEverything || (survival == Survival::kSome && NextRandom(seed) % 2 == 0);
    if (keep && !depends) {
      Commit(change);
      continue;
    }
    for (const Change::Entry& entry : change.entries) lost.insert(entry.directory.get());
  }
  pending_.clear();
  LoseUnsynced(*root_, survival, seed);
  used_bytes_ = Node::Recount(*root_);
  KillProcess();
}

void MemoryStorage::KillProcess() {
  locks_.clear();
  faults_ = {};
  operations_ = 0;
  ++epoch_;
  down_ = false;
}

absl::Status MemoryStorage::FlipBit(absl::string_view path, uint64_t offset, int bit) {
  const NodePtr node = Find(path);
  if (node == nullptr || offset >= node->data.size()) return Missing(Describe(path));
  node->data[offset] = static_cast<char>(node->data[offset] ^ (1 << bit));
  return absl::OkStatus();
}

absl::Status MemoryStorage::Truncate(absl::string_view path, uint64_t size) {
  const NodePtr node = Find(path);
  if (node == nullptr || size > node->data.size()) return Missing(Describe(path));
  node->data.resize(size);
  node->synced = std::min<size_t>(node->synced, size);
  return absl::OkStatus();
}

absl::Status MemoryStorage::CreateDirectoryExclusive(absl::string_view path) {
  LS_RETURN_IF_ERROR(Begin("create directory", path, 0));
  LS_ASSIGN_OR_RETURN(const NodePtr parent, FindParent(path));
  const std::string name(BaseName(path));
  if (parent->names.contains(name)) return Taken(Describe(path));
  auto node = std::make_shared<Node>();
  node->is_directory = true;
  Apply({{{parent, name, node}}});
  LS_RETURN_IF_ERROR(Begin("sync the parent of", path, 0));
  SyncNames(parent);
  return absl::OkStatus();
}

absl::Status MemoryStorage::CreateDirectories(absl::string_view path) {
  LS_RETURN_IF_ERROR(CheckUp());
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  const NodePtr node = Find(path);
  if (node != nullptr) {
    if (!node->is_directory) return absl::FailedPreconditionError(absl::StrCat(Describe(path), " is a file"));
    if (path.empty()) return absl::OkStatus();
    // Whoever made it may have ended before its name was synced.
    LS_RETURN_IF_ERROR(Begin("sync the parent of", path, 0));
    SyncNames(Find(ParentPath(path)));
    return absl::OkStatus();
  }
  LS_RETURN_IF_ERROR(CreateDirectories(ParentPath(path)));
  const absl::Status created = CreateDirectoryExclusive(path);
  return absl::IsAlreadyExists(created) ? absl::OkStatus() : created;  // somebody else made it meanwhile
}

absl::StatusOr<std::unique_ptr<WritableFile>> MemoryStorage::CreateFile(absl::string_view path, Access) {
  LS_RETURN_IF_ERROR(Begin("create", path, 0));
  LS_ASSIGN_OR_RETURN(const NodePtr parent, FindParent(path));
  const std::string name(BaseName(path));
  if (parent->names.contains(name)) return Taken(Describe(path));
  auto node = std::make_shared<Node>();
  node->identity = ++last_identity_;
  Apply({{{parent, name, node}}});
  return std::make_unique<MemoryWritableFile>(*this, node, std::string(path));
}

absl::StatusOr<std::unique_ptr<ReadableFile>> MemoryStorage::OpenFile(absl::string_view path) const {
  LS_RETURN_IF_ERROR(CheckUp());
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  const NodePtr node = Find(path);
  if (node == nullptr) return Missing(Describe(path));
  if (node->is_directory) return absl::FailedPreconditionError(absl::StrCat(Describe(path), " is not a file"));
  return std::make_unique<MemoryReadableFile>(*this, node, std::string(path));
}

absl::StatusOr<std::vector<DirectoryEntry>> MemoryStorage::List(absl::string_view path) const {
  LS_RETURN_IF_ERROR(CheckUp());
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  const NodePtr node = Find(path);
  if (node == nullptr) return Missing(Describe(path));
  if (!node->is_directory) return absl::FailedPreconditionError(absl::StrCat(Describe(path), " is not a directory"));
  std::vector<DirectoryEntry> entries;
  for (const auto& [name, child] : node->names) {
    entries.push_back({name, child->is_directory, child->is_directory ? 0 : child->data.size()});
  }
  return entries;
}

absl::StatusOr<bool> MemoryStorage::Exists(absl::string_view path) const {
  LS_RETURN_IF_ERROR(CheckUp());
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  return Find(path) != nullptr;
}

absl::Status MemoryStorage::Move(absl::string_view from, absl::string_view to, bool replace) {
  LS_RETURN_IF_ERROR(Begin("rename", from, 0));
  LS_ASSIGN_OR_RETURN(const NodePtr source, FindParent(from));
  LS_ASSIGN_OR_RETURN(const NodePtr target, FindParent(to));
  const auto it = source->names.find(std::string(BaseName(from)));
  if (it == source->names.end()) return Missing(Describe(from));
  const NodePtr node = it->second;
  const auto taken = target->names.find(std::string(BaseName(to)));
  if (taken != target->names.end()) {
    if (!replace) return Taken(Describe(to));
    if (taken->second->is_directory || node->is_directory) {
      return absl::FailedPreconditionError(absl::StrCat(Describe(to), " is a directory"));
    }
  }
  if (taken != target->names.end()) Unlinked(*taken->second);
  Apply({{{source, std::string(BaseName(from)), nullptr}, {target, std::string(BaseName(to)), node}}});
  LS_RETURN_IF_ERROR(Begin("sync the parent of", to, 0));
  SyncNames(target);
  return absl::OkStatus();
}

void MemoryStorage::Unlinked(Node& node) {
  if (--node.links == 0) used_bytes_ -= node.data.size();
}

absl::Status MemoryStorage::Link(absl::string_view from, absl::string_view to) {
  LS_RETURN_IF_ERROR(Begin("link", from, 0));
  LS_RETURN_IF_ERROR(CheckStoragePath(from));
  LS_ASSIGN_OR_RETURN(const NodePtr target, FindParent(to));
  const NodePtr node = Find(from);
  if (node == nullptr) return Missing(Describe(from));
  if (node->is_directory) return absl::FailedPreconditionError(absl::StrCat(Describe(from), " is a directory"));
  if (target->names.contains(std::string(BaseName(to)))) return Taken(Describe(to));
  ++node->links;
  Apply({{{target, std::string(BaseName(to)), node}}});
  return absl::OkStatus();
}

absl::Status MemoryStorage::Rename(absl::string_view from, absl::string_view to) { return Move(from, to, false); }

absl::Status MemoryStorage::Replace(absl::string_view from, absl::string_view to) { return Move(from, to, true); }

absl::Status MemoryStorage::RemoveNode(const NodePtr& parent, const std::string& name, absl::string_view path) {
  const auto it = parent->names.find(name);
  if (it == parent->names.end()) return absl::OkStatus();  // gone meanwhile
  const NodePtr node = it->second;
  const std::map<std::string, NodePtr> children = node->names;
  for (const auto& [child_name, child] : children) {
    LS_RETURN_IF_ERROR(RemoveNode(node, child_name, JoinPath(path, child_name)));
  }
  LS_RETURN_IF_ERROR(Begin("remove", path, 0));
  if (!parent->names.contains(name)) return absl::OkStatus();
  Unlinked(*node);
  Apply({{{parent, name, nullptr}}});
  return absl::OkStatus();
}

absl::Status MemoryStorage::RemoveTree(absl::string_view path) {
  LS_RETURN_IF_ERROR(CheckUp());
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  if (path.empty()) return absl::InvalidArgumentError("the root of a storage is not removed");
  const NodePtr parent = Find(ParentPath(path));
  if (parent == nullptr || !parent->names.contains(std::string(BaseName(path)))) return absl::OkStatus();
  return RemoveNode(parent, std::string(BaseName(path)), path);
}

absl::Status MemoryStorage::SyncDirectory(absl::string_view path) {
  LS_RETURN_IF_ERROR(Begin("sync directory", path, 0));
  LS_RETURN_IF_ERROR(CheckStoragePath(path));
  const NodePtr node = Find(path);
  if (node == nullptr) return Missing(Describe(path));
  SyncNames(node);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> MemoryStorage::FreeBytes() const {
  LS_RETURN_IF_ERROR(CheckUp());
  return faults_.capacity_bytes - std::min(faults_.capacity_bytes, used_bytes_);
}

absl::StatusOr<std::unique_ptr<StorageLock>> MemoryStorage::Lock(absl::string_view path, absl::string_view owner) {
  LS_RETURN_IF_ERROR(CheckUp());
  LS_ASSIGN_OR_RETURN(const NodePtr parent, FindParent(path));
  const auto [it, taken] = locks_.emplace(std::string(path), std::string(owner));
  if (!taken) return absl::FailedPreconditionError(absl::StrCat(Describe(path), " is held by ", it->second));
  auto& node = parent->names[std::string(BaseName(path))];
  if (node == nullptr) node = std::make_shared<Node>();
  used_bytes_ += owner.size();
  node->data = std::string(owner);
  return std::make_unique<MemoryLock>(*this, std::string(path));
}

}  // namespace lockstep
