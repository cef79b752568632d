#include "common/object_store/bucket_storage.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/object_store/forwarding_object_store.h"
#include "common/object_store/memory_object_store.h"
#include "common/object_store/s3_on_fake.h"
#include "common/storage/files.h"
#include "common/sync/mutex.h"

namespace lockstep {
namespace {

using Catch::Contains;

std::string Bytes(size_t size, int seed) {
  std::string bytes(size, '\0');
  uint32_t state = 2654435761u * static_cast<uint32_t>(seed + 1);
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  return bytes;
}

// Counts what is read.
class CountedStore final : public ForwardingObjectStore {
 public:
  CountedStore() : ForwardingObjectStore(store) {}

  absl::StatusOr<std::string> Get(absl::string_view key, uint64_t max_bytes) override {
    ++gets;
    return store.Get(key, max_bytes);
  }
  absl::StatusOr<std::string> GetRange(absl::string_view key, uint64_t offset, uint64_t length) override {
    lengths.push_back(length);
    return store.GetRange(key, offset, length);
  }

  MemoryObjectStore store;
  int gets = 0;
  std::vector<uint64_t> lengths;
};

TEST_CASE("bucket storage: a small file is there after a sync, and after the next one with what came since",
          "[object_store]") {
  MemoryObjectStore store;
  BucketStorage bucket(&store);
  auto file = bucket.CreateFile("events/a", Access::kShared).value();

  REQUIRE(file->Append("one ").ok());
  CHECK(absl::IsNotFound(bucket.OpenFile("events/a").status()));
  REQUIRE(file->Sync().ok());
  CHECK(ReadWholeFile(bucket, "events/a", 100).value() == "one ");
  REQUIRE(file->Append("two").ok());
  REQUIRE(file->Sync().ok());

  CHECK(ReadWholeFile(bucket, "events/a", 100).value() == "one two");
  CHECK(file->Close().ok());
  CHECK(absl::IsFailedPrecondition(file->Append("three")));
  CHECK(absl::IsAlreadyExists(bucket.CreateFile("events/a", Access::kShared).status()));
}

TEST_CASE("bucket storage: a long file is an upload of parts that shows nothing before it is whole", "[object_store]") {
  const bool over_s3 = GENERATE(false, true);
  S3OnFake fake;
  MemoryObjectStore memory;
  ObjectStore& store = over_s3 ? static_cast<ObjectStore&>(*fake.store) : memory;
  BucketStorage bucket(&store, {.part_bytes = kMinPartBytes, .whole_bytes = 1 << 20});
  const std::string content = Bytes(2 * kMinPartBytes + 1000, 1);

  auto file = bucket.CreateFile("checkpoints/s/model", Access::kShared).value();
  for (size_t at = 0; at < content.size(); at += 700'000) REQUIRE(file->Append(content.substr(at, 700'000)).ok());
  CHECK_FALSE(bucket.Exists("checkpoints/s").value());
  CHECK(store.ListUploads("").value().size() == 1);
  REQUIRE(file->Sync().ok());
  REQUIRE(file->Close().ok());

  CHECK(ReadWholeFile(bucket, "checkpoints/s/model", 1 << 30).value() == content);
  CHECK(store.ListUploads("").value().empty());
}

TEST_CASE("bucket storage: a long file that is dropped leaves nothing, not even its upload", "[object_store]") {
  MemoryObjectStore store;
  BucketStorage bucket(&store, {.part_bytes = 100});
  auto file = bucket.CreateFile("a", Access::kShared).value();
  REQUIRE(file->Append(Bytes(1000, 2)).ok());
  REQUIRE(store.ListUploads("").value().size() == 1);

  file.reset();

  CHECK(store.ListUploads("").value().empty());
  CHECK_FALSE(bucket.Exists("a").value());
}

// A store to which parts are sent slowly, or not at all.
class SlowParts final : public ForwardingObjectStore {
 public:
  explicit SlowParts(ObjectStore& below) : ForwardingObjectStore(below) {}

  absl::StatusOr<UploadedPart> PutPart(const Upload& upload, int number, absl::string_view bytes) override {
    {
      MutexLock lock(&mutex_);
      most = std::max(most, ++under_way_);
      changed_.SignalAll();
      while (under_way_ < wait_for && most < wait_for) changed_.Wait(&mutex_);
    }
    absl::StatusOr<UploadedPart> part = number == fails ? absl::StatusOr<UploadedPart>(absl::UnavailableError("lost"))
                                                        : ForwardingObjectStore::PutPart(upload, number, bytes);
    MutexLock lock(&mutex_);
    --under_way_;
    return part;
  }

  int wait_for = 1;  // no part is sent before so many were on their way at once
  int fails = 0;     // the number of a part
  int most = 0;      // on their way at once

 private:
  Mutex mutex_;
  CondVar changed_;
  int under_way_ GUARDED_BY(mutex_) = 0;
};

TEST_CASE("bucket storage: with senders the parts of a long file go side by side, to one whole", "[object_store]") {
  MemoryObjectStore memory;
  SlowParts store(memory);
  store.wait_for = 4;
  BucketStorage bucket(&store, {.part_bytes = kMinPartBytes, .senders = 8, .whole_bytes = 1 << 20});
  const std::string content = Bytes(9 * kMinPartBytes + 1000, 1);

  auto file = bucket.CreateFile("model", Access::kShared).value();
  for (size_t at = 0; at < content.size(); at += 1'700'000) REQUIRE(file->Append(content.substr(at, 1'700'000)).ok());
  REQUIRE(file->Sync().ok());

  CHECK(store.most == 4);  // more of one file are not held in memory
  CHECK(ReadWholeFile(bucket, "model", 1 << 30).value() == content);
}

TEST_CASE("bucket storage: a part that is lost while others are sent fails the file, and leaves nothing",
          "[object_store]") {
  MemoryObjectStore memory;
  SlowParts store(memory);
  store.fails = GENERATE(1, 3, 6);
  BucketStorage bucket(&store, {.part_bytes = kMinPartBytes, .senders = 2});
  auto file = bucket.CreateFile("model", Access::kShared).value();
  absl::Status status;
  for (int part = 0; part < 6; ++part) status.Update(file->Append(Bytes(kMinPartBytes, part)));
  status.Update(file->Sync());
  CHECK(absl::IsUnavailable(status));
  CHECK(absl::IsUnavailable(file->Append(Bytes(2 * kMinPartBytes, 7))));
  CHECK(absl::IsUnavailable(file->Sync()));

  file.reset();

  CHECK_FALSE(bucket.Exists("model").value());
  CHECK(memory.ListUploads("").value().empty());
}

TEST_CASE("bucket storage: a long file does not grow after it was complete", "[object_store]") {
  MemoryObjectStore store;
  BucketStorage bucket(&store, {.part_bytes = kMinPartBytes});
  auto file = bucket.CreateFile("a", Access::kShared).value();
  REQUIRE(file->Append(Bytes(kMinPartBytes + 1, 2)).ok());
  REQUIRE(file->Sync().ok());

  const absl::Status grown = file->Append("more");

  CHECK(absl::IsFailedPrecondition(grown));
  CHECK_THAT(std::string(grown.message()), Contains("cannot grow"));
  CHECK(bucket.OpenFile("a").value()->size() == kMinPartBytes + 1);
}

TEST_CASE("bucket storage: what is read in order is fetched in blocks that grow", "[object_store]") {
  CountedStore store;
  BucketStorage bucket(&store, {.whole_bytes = 10, .first_block = 100, .longest_block = 1600});
  const std::string content = Bytes(10'000, 3);
  REQUIRE(bucket.PutFile("a", content).ok());
  const auto file = bucket.OpenFile("a").value();

  std::string read(content.size(), '\0');
  for (size_t at = 0; at < read.size(); at += 50) {
    REQUIRE(file->ReadAt(at, absl::MakeSpan(&read[at], 50)).ok());
  }

  CHECK(read == content);
  CHECK(store.lengths == std::vector<uint64_t>{100, 400, 1600, 1600, 1600, 1600, 1600, 1500});
  CHECK(store.gets == 0);
}

TEST_CASE("bucket storage: reads here and there give the bytes that lie there", "[object_store]") {
  MemoryObjectStore store;
  BucketStorage bucket(&store, {.whole_bytes = 10, .first_block = 64, .longest_block = 512});
  const std::string content = Bytes(5000, 4);
  REQUIRE(bucket.PutFile("a", content).ok());
  const auto file = bucket.OpenFile("a").value();

  uint32_t state = 1;
  for (int i = 0; i < 500; ++i) {
    state = state * 1664525u + 1013904223u;
    const size_t offset = (state >> 8) % content.size();
    const size_t size = std::min<size_t>((state >> 4) % 1200, content.size() - offset);
    std::string out(size, '\0');
    REQUIRE(file->ReadAt(offset, absl::MakeSpan(out.data(), size)).ok());
    REQUIRE(out == content.substr(offset, size));
  }
  std::string beyond(11, '\0');
  CHECK(absl::IsDataLoss(file->ReadAt(4990, absl::MakeSpan(beyond.data(), beyond.size()))));
}

TEST_CASE("bucket storage: a small file that is replaced while it is open reads as it was", "[object_store]") {
  MemoryObjectStore store;
  BucketStorage bucket(&store);
  REQUIRE(bucket.PutFile("stats", "before").ok());
  const auto file = bucket.OpenFile("stats").value();

  REQUIRE(bucket.PutFile("stats", "after it").ok());

  std::string read(file->size(), '\0');
  REQUIRE(file->ReadAt(0, absl::MakeSpan(read.data(), read.size())).ok());
  CHECK(read == "before");
}

TEST_CASE("bucket storage: directories are implied, and list what lies in them", "[object_store]") {
  MemoryObjectStore store;
  BucketStorage bucket(&store);
  CHECK(bucket.CreateDirectories("a/b").ok());
  CHECK(bucket.List("a").value().empty());
  REQUIRE(bucket.PutFile("a/b/c", "12").ok());
  REQUIRE(bucket.PutFile("a/b.txt", "1").ok());
  REQUIRE(bucket.PutFile("ab", "1").ok());

  CHECK(bucket.List("a").value() == std::vector<DirectoryEntry>{{"b", true, 0}, {"b.txt", false, 1}});
  CHECK(bucket.Exists("a/b").value());
  CHECK_FALSE(bucket.Exists("a/b/d").value());
  REQUIRE(bucket.RemoveTree("a/b").ok());
  CHECK(bucket.List("").value() == std::vector<DirectoryEntry>{{"a", true, 0}, {"ab", false, 1}});
  CHECK(bucket.List("a").value() == std::vector<DirectoryEntry>{{"b.txt", false, 1}});
}

TEST_CASE("bucket storage: what a bucket lacks is refused", "[object_store]") {
  MemoryObjectStore store;
  BucketStorage bucket(&store);
  REQUIRE(bucket.PutFile("a/b", "1").ok());

  CHECK(absl::IsUnimplemented(bucket.Rename("a", "b")));
  CHECK(absl::IsUnimplemented(bucket.Lock("chief/lock", "me").status()));
  CHECK(absl::IsInvalidArgument(bucket.PutFile("../a", "1")));
  CHECK(absl::IsNotFound(bucket.OpenFile("a").status()));

  CHECK(ReplaceFile(bucket, "scratch", "a/b", "2", Access::kShared).ok());
  CHECK(ReadWholeFile(bucket, "a/b", 10).value() == "2");
  CHECK_FALSE(bucket.Exists("scratch").value());
  CHECK(absl::IsAlreadyExists(bucket.PutNewFile("a/b", "3")));
}

TEST_CASE("bucket storage: a file whose parts could not all be sent is not there", "[object_store]") {
  MemoryObjectStore store;
  BucketStorage bucket(&store, {.part_bytes = kMinPartBytes});
  auto file = bucket.CreateFile("a", Access::kShared).value();
  REQUIRE(file->Append(Bytes(kMinPartBytes, 5)).ok());
  int requests = 0;
  store.next_fault = [&] { return ++requests == 2 ? ObjectFault::kLost : ObjectFault::kNone; };

  CHECK(absl::IsUnavailable(file->Append("x")));
  file.reset();

  CHECK_FALSE(bucket.Exists("a").value());
  CHECK(store.ListUploads("").value().empty());
}

}  // namespace
}  // namespace lockstep
