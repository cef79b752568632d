#include "common/object_store/storage_probe.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock/clock.h"
#include "common/commit_log/storage_slots.h"
#include "common/object_store/object_slots.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep {
namespace {

constexpr int kRounds = 10;      // of two that race for one slot
constexpr uint64_t kSlots = 12;  // that a listing has to show
constexpr size_t kTailBytes = 70'000;
constexpr char kNoJob[] = "No job can be safe here: two chiefs could both go on. Use another place";

std::string SomeBytes(size_t size, uint32_t state) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  return bytes;
}

// Collects proofs, until one of them makes others pointless.
class Prover {
 public:
  // Whether the property holds.
  bool Try(const std::string& property, const std::function<absl::StatusOr<std::string>()>& prove) {
    if (over_) return false;
    const absl::Time start = SteadyNow();
    const absl::StatusOr<std::string> found = prove();
    proofs_.push_back({property, found.status(), found.value_or(""), SteadyNow() - start});
    over_ = absl::IsUnavailable(found.status()) || absl::IsPermissionDenied(found.status()) ||
            (proofs_.size() == 1 && !found.ok());
    return found.ok();
  }
  // Also when others were left out, but for a place where nothing could be written.
  void TryLast(const std::string& property, const std::function<absl::StatusOr<std::string>()>& prove) {
    const absl::Status& first = proofs_.front().status;
    over_ = !first.ok() && !absl::IsDataLoss(first);
    Try(property, prove);
  }
  std::vector<Proof> Take() { return std::move(proofs_); }

 private:
  std::vector<Proof> proofs_;
  bool over_ = false;
};

absl::Status Differs(const std::string& place, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(place, ": ", what, ". ", kNoJob));
}

// A slot that is filled stays as it is.
absl::Status ProveKept(Slots& slots, uint64_t number) {
  LS_RETURN_IF_ERROR(slots.Create(number, "first"));
  const absl::Status second = slots.Create(number, "second");
  LS_ASSIGN_OR_RETURN(const std::string bytes, slots.Get(number));
  if (second.ok() || bytes != "first") {
    return absl::FailedPreconditionError(
        absl::StrCat(slots.Describe(number), " was to be created where it is there already, and the answer was that ",
                     second.ok() ? "this is done" : "it is there", "; it now reads '", bytes, "'. ", kNoJob));
  }
  return absl::IsAlreadyExists(second) ? absl::OkStatus() : second;
}

// Two that fill one slot at the same instant: one of them wins, and its bytes stay.
absl::Status ProveOneWins(Slots& one, Slots& other, uint64_t number) {
  std::atomic<int> ready{0};
  absl::Status results[2];
  const auto fill = [&](int who, Slots& slots) {
    ++ready;
    while (ready < 2) std::this_thread::yield();
    results[who] = slots.Create(number, absl::StrCat("of ", who));
  };
  std::thread thread([&] { fill(1, other); });
  fill(0, one);
  thread.join();
  for (const absl::Status& result : results) {
    if (!result.ok() && !absl::IsAlreadyExists(result)) return result;
  }
  LS_ASSIGN_OR_RETURN(const std::string bytes, one.Get(number));
  const bool two = results[0].ok() && results[1].ok();
  const bool kept = !(results[0].ok() && bytes != "of 0") && !(results[1].ok() && bytes != "of 1");
  // Neither: an answer was lost, and the one that had won found its own bytes when it asked again.
  if (!two && kept) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      one.Describe(number), " was created by two at the same instant, and ",
      two ? "both were told that it is theirs" : "it has the bytes of the one that had lost", ". ", kNoJob));
}

void TrySlots(Prover& prover, Slots& one, Slots& other) {
  const bool exclusive = prover.Try("exclusive", [&]() -> absl::StatusOr<std::string> {
    LS_RETURN_IF_ERROR(ProveKept(one, 1));
    for (int round = 0; round < kRounds; ++round) LS_RETURN_IF_ERROR(ProveOneWins(one, other, 2 + round));
    return absl::StrCat("what is there is kept; of two at once one wins, ", kRounds, " times");
  });
  if (!exclusive) return;
  prover.Try("listing", [&]() -> absl::StatusOr<std::string> {
    std::vector<uint64_t> expected;
    for (uint64_t number = 100; number < 100 + kSlots; ++number) {
      LS_RETURN_IF_ERROR(one.Create(number, "x"));
      expected.insert(expected.begin(), number);
      LS_ASSIGN_OR_RETURN(const std::vector<uint64_t> newest, other.Newest(expected.size()));
      if (newest != expected) {
        return absl::FailedPreconditionError(absl::StrCat("after ", one.Describe(number), " was created, a listing ",
                                                          "does not show it first. ", kNoJob));
      }
    }
    LS_RETURN_IF_ERROR(one.Remove(100 + kSlots - 1));
    LS_ASSIGN_OR_RETURN(const std::vector<uint64_t> newest, other.Newest(1));
    if (newest != std::vector<uint64_t>{100 + kSlots - 2}) {
      return absl::FailedPreconditionError(absl::StrCat("a listing shows what was removed. ", kNoJob));
    }
    return absl::StrCat("shows at once what was written and removed, in order");
  });
}

absl::StatusOr<std::string> ProveUpload(ObjectStore& store, const std::string& key) {
  const std::string whole = SomeBytes(kMinPartBytes + kTailBytes, 7);
  LS_ASSIGN_OR_RETURN(const Upload upload, store.StartUpload(key));
  std::vector<UploadedPart> parts;
  LS_ASSIGN_OR_RETURN(UploadedPart part, store.PutPart(upload, 1, absl::string_view(whole).substr(0, kMinPartBytes)));
  parts.push_back(part);
  LS_ASSIGN_OR_RETURN(part, store.PutPart(upload, 2, absl::string_view(whole).substr(kMinPartBytes)));
  parts.push_back(part);
  if (!absl::IsNotFound(store.Head(key).status())) {
    return Differs(store.Describe(key), "it shows before its upload is complete");
  }
  LS_RETURN_IF_ERROR(store.CompleteUpload(upload, parts));
  LS_ASSIGN_OR_RETURN(const std::string read, store.Get(key, whole.size()));
  if (read != whole) return Differs(store.Describe(key), "it reads other than it was uploaded in parts");
  LS_ASSIGN_OR_RETURN(const Upload given_up, store.StartUpload(key + "-given-up"));
  LS_RETURN_IF_ERROR(store.PutPart(given_up, 1, "x").status());
  LS_ASSIGN_OR_RETURN(const std::vector<Upload> open, store.ListUploads(given_up.key));
  if (open.size() != 1 || open[0].id != given_up.id) {
    return absl::FailedPreconditionError(absl::StrCat(store.Describe(given_up.key), ": its upload is not listed, so ",
                                                      "that those of chiefs that were killed cannot be removed"));
  }
  LS_RETURN_IF_ERROR(store.AbortUpload(given_up));
  return absl::StrCat("5 MiB and a tail; ", upload.takes_checksums ? "CRC-32C is verified and kept by the server"
                                                                   : "the server takes no CRC-32C, and gets SHA-256");
}

absl::StatusOr<std::string> CleanUp(ObjectStore& store, const std::string& prefix) {
  LS_ASSIGN_OR_RETURN(const std::vector<Upload> uploads, store.ListUploads(prefix));
  for (const Upload& upload : uploads) LS_RETURN_IF_ERROR(store.AbortUpload(upload));
  LS_ASSIGN_OR_RETURN(const Listing listing, store.List({prefix}));
  for (const ListedObject& object : listing.objects) LS_RETURN_IF_ERROR(store.Delete(object.key));
  LS_ASSIGN_OR_RETURN(const Listing left, store.List({prefix}));
  if (!left.objects.empty()) return Differs(store.Describe(prefix), "objects are listed after they were deleted");
  return absl::StrCat(listing.objects.size(), " objects of this check are gone");
}

}  // namespace

std::vector<Proof> ProbeObjectStore(ObjectStore& store, const std::string& name) {
  Prover prover;
  const std::string prefix = name + "/";
  const std::string key = prefix + "object";
  const std::string bytes = SomeBytes(100'000, 1);
  prover.Try("write", [&]() -> absl::StatusOr<std::string> {
    LS_RETURN_IF_ERROR(store.Put(key, "before", PutCondition::kNone));
    LS_RETURN_IF_ERROR(store.Put(key, bytes, PutCondition::kNone));
    LS_ASSIGN_OR_RETURN(const std::string read, store.Get(key, bytes.size()));
    if (read != bytes) return Differs(store.Describe(key), "it reads other than it was written");
    return std::string("an object is written, replaced and read back");
  });
  ObjectSlots one(&store, prefix + "log"), other(&store, prefix + "log");
  TrySlots(prover, one, other);
  prover.Try("ranges", [&]() -> absl::StatusOr<std::string> {
    for (const uint64_t offset : {uint64_t{0}, uint64_t{777}, uint64_t{bytes.size() - 1000}}) {
      LS_ASSIGN_OR_RETURN(const std::string read, store.GetRange(key, offset, 1000));
      if (read != bytes.substr(offset, 1000)) return Differs(store.Describe(key), "a range of it reads wrong");
    }
    LS_ASSIGN_OR_RETURN(const ObjectFacts facts, store.Head(key));
    if (facts.size != bytes.size()) return Differs(store.Describe(key), "its size is wrong");
    return std::string("parts of an object are read");
  });
  prover.Try("parts", [&] { return ProveUpload(store, prefix + "parts"); });
  prover.Try("delete", [&]() -> absl::StatusOr<std::string> {
    LS_RETURN_IF_ERROR(store.Delete(key));
    if (!absl::IsNotFound(store.Get(key, bytes.size()).status())) {
      return Differs(store.Describe(key), "it is read after it was deleted");
    }
    return std::string("what was deleted is gone");
  });
  prover.TryLast("clean up", [&] { return CleanUp(store, prefix); });
  return prover.Take();
}

std::vector<Proof> ProbeDirectory(Storage& storage, const std::string& name) {
  Prover prover;
  const std::string bytes = SomeBytes(100'000, 1);
  const std::string path = JoinPath(name, "file");
  prover.Try("write", [&]() -> absl::StatusOr<std::string> {
    LS_RETURN_IF_ERROR(storage.CreateDirectories(name));
    LS_RETURN_IF_ERROR(WriteNewFile(storage, path, "before", Access::kShared));
    LS_RETURN_IF_ERROR(ReplaceFile(storage, JoinPath(name, "scratch"), path, bytes, Access::kShared));
    LS_ASSIGN_OR_RETURN(const std::string read, ReadWholeFile(storage, path, bytes.size()));
    if (read != bytes) return Differs(storage.Describe(path), "it reads other than it was written");
    return std::string("a file is written, synced, replaced and read back");
  });
  std::atomic<int> names{0};
  const auto make_name = [&names] { return absl::StrCat("n", ++names); };
  StorageSlots one(&storage, JoinPath(name, "log"), make_name), other(&storage, JoinPath(name, "log"), make_name);
  TrySlots(prover, one, other);
  prover.Try("lock", [&]() -> absl::StatusOr<std::string> {
    const std::string lock = JoinPath(name, "lock");
    const auto held = storage.Lock(lock, "this check");
    if (absl::IsUnimplemented(held.status()))
      return std::string("there are no locks; the log alone keeps chiefs apart");
    LS_RETURN_IF_ERROR(held.status());
    if (storage.Lock(lock, "this check, again").ok()) {
      return std::string("a lock does not exclude; the log alone keeps chiefs apart");
    }
    return std::string("a lock that is held is refused to others");
  });
  prover.Try("space", [&]() -> absl::StatusOr<std::string> {
    LS_ASSIGN_OR_RETURN(const uint64_t free, storage.FreeBytes());
    return absl::StrFormat("%.1f GiB free", static_cast<double>(free) / (uint64_t{1} << 30));
  });
  prover.TryLast("clean up", [&]() -> absl::StatusOr<std::string> {
    LS_RETURN_IF_ERROR(storage.RemoveTree(name));
    LS_ASSIGN_OR_RETURN(const bool left, storage.Exists(name));
    if (left) return Differs(storage.Describe(name), "it is there after it was removed");
    return std::string("the files of this check are gone");
  });
  return prover.Take();
}

}  // namespace lockstep
