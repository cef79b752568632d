// Storage in memory that loses on a crash what was not made durable: the disk of simulations and fault tests.
// Deterministic: the same calls and the same plan give the same results.
//
// What a crash leaves: the bytes of a file up to its last Sync and, of what came after, a prefix that the plan's seed
// picks, perhaps with its tail torn (zeros); the names in a directory as of its last sync and some of the later
// changes, whole (a rename is never half done), each only together with the earlier ones of the directories it touches.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_STORAGE_MEMORY_MEMORY_STORAGE_H_
#define LOCKSTEP_COMMON_STORAGE_MEMORY_MEMORY_STORAGE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/storage/storage.h"

namespace lockstep {

// A plan of faults, by the number of the modifying operation that fails (0 is the first after the plan was set).
// Appends, syncs, creations, renames, replacements and every single removal of a tree count as one each.
struct StorageFaults {
  enum class Kind {
    kDiskFull,  // ResourceExhausted; half of an append is written
    kIoError,   // Unavailable; half of an append is written
    kCrash,     // half done if it is an append; this and every later call fails with Aborted until Restart
  };
  std::map<int64_t, Kind> at;
  uint64_t capacity_bytes = ~uint64_t{0};  // of all files together
};

class MemoryStorage : public Storage {
 public:
  MemoryStorage();
  ~MemoryStorage() override;

  // Sets a new plan; operations are counted from 0 again.
  void SetFaults(StorageFaults faults);
  // Operations that changed something since the plan was set.
  int64_t operations() const { return operations_; }
  // Called before each operation with its number and a word; for tests that interleave two writers.
  void SetHook(std::function<void(int64_t number, absl::string_view what)> hook) { hook_ = std::move(hook); }

  // How much unsynced data survives a crash.
  enum class Survival { kNothing, kEverything, kSome };
  // Simulates a power loss and a restart: unsynced changes are lost as described above, locks are released, open files
  // become invalid, and the plan of faults is cleared.
  void Restart(Survival survival, uint64_t seed);
  // Simulates the death of the process while the machine keeps running: unsynced changes stay, and may be lost by a
  // later crash. Locks are released, open files become invalid, and the plan of faults is cleared.
  void KillProcess();
  // Forgets all locks, as if each process ran on a machine of its own with locks that others do not see.
  void DropLocks() { locks_.clear(); }
  // Flips one bit of a file, or cuts it to `size`; for tests of damage. NotFound.
  absl::Status FlipBit(absl::string_view path, uint64_t offset, int bit);
  absl::Status Truncate(absl::string_view path, uint64_t size);

  absl::Status CreateDirectoryExclusive(absl::string_view path) override;
  absl::Status CreateDirectories(absl::string_view path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(absl::string_view path, Access access) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(absl::string_view path) const override;
  absl::StatusOr<std::vector<DirectoryEntry>> List(absl::string_view path) const override;
  absl::StatusOr<bool> Exists(absl::string_view path) const override;
  absl::Status Rename(absl::string_view from, absl::string_view to) override;
  absl::Status Replace(absl::string_view from, absl::string_view to) override;
  absl::Status Link(absl::string_view from, absl::string_view to) override;
  absl::Status RemoveTree(absl::string_view path) override;
  absl::Status SyncDirectory(absl::string_view path) override;
  absl::StatusOr<uint64_t> FreeBytes() const override;
  absl::StatusOr<std::unique_ptr<StorageLock>> Lock(absl::string_view path, absl::string_view owner) override;
  std::string Describe(absl::string_view path) const override;

 private:
  friend class MemoryWritableFile;
  friend class MemoryReadableFile;
  friend class MemoryLock;

  struct Node;
  using NodePtr = std::shared_ptr<Node>;
  // A change of names that is not durable yet: removals and insertions that become durable together.
  struct Change {
    struct Entry {
      NodePtr directory;
      std::string name;
      NodePtr node;  // null: the name is removed
    };
    std::vector<Entry> entries;
  };

  // Counts an operation that will write `bytes` and returns the planned fault, if there is one.
  absl::Status Begin(absl::string_view what, absl::string_view path, uint64_t bytes);
  absl::Status CheckUp() const;
  NodePtr Find(absl::string_view path) const;
  absl::StatusOr<NodePtr> FindParent(absl::string_view path) const;
  void Apply(Change change);
  static void Commit(const Change& change);
  void SyncNames(const NodePtr& directory);
  static void LoseUnsynced(Node& node, Survival survival, uint64_t& random);
  absl::Status Move(absl::string_view from, absl::string_view to, bool replace);
  void Unlinked(Node& node);
  absl::Status RemoveNode(const NodePtr& parent, const std::string& name, absl::string_view path);

  NodePtr root_;
  std::vector<Change> pending_;  // in order
  std::map<std::string, std::string> locks_;
  StorageFaults faults_;
  uint64_t used_bytes_ = 0;
  uint64_t last_identity_ = 0;  // of a file
  int64_t operations_ = 0;
  uint64_t epoch_ = 0;  // counts crashes; files opened in an earlier epoch are invalid
  bool down_ = false;
  std::function<void(int64_t, absl::string_view)> hook_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STORAGE_MEMORY_MEMORY_STORAGE_H_
