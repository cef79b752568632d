#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"
#include "common/tensorflow_bundle/bundle_reader.h"
#include "common/tensorflow_bundle/bundle_writer.h"

namespace lockstep {
namespace {

using Catch::Contains;

struct Value {
  TensorSpec spec;
  std::string bytes;
};

std::string Ramp(size_t size, char first) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(first + 3 * i);
  return bytes;
}

const std::vector<Value> kValues = {{{"z/weight", DType::kF32, {2, 5}}, Ramp(40, 'z')},
                                    {{"a/scalar", DType::kI64, {}}, Ramp(8, 'a')},
                                    {{"m/none", DType::kF32, {0, 3}}, ""},
                                    {{"m/half", DType::kBF16, {3}}, Ramp(6, 'h')}};
constexpr char kGraph[] = "some bytes of a graph";

BundleWriter::GiveBytes InPieces(const std::string& bytes) {
  return [&bytes](const BundleWriter::TakeBytes& take) -> absl::Status {
    for (size_t at = 0; at < bytes.size(); at += 7) {
      if (absl::Status taken = take(absl::string_view(bytes).substr(at, 7)); !taken.ok()) return taken;
    }
    return absl::OkStatus();
  };
}

absl::Status WriteValues(Storage& storage, const std::string& prefix,
                         uint64_t shard_bytes = BundleWriter::kShardBytes) {
  auto writer = BundleWriter::Begin(storage, prefix, shard_bytes);
  if (!writer.ok()) return writer.status();
  for (const Value& value : kValues) {
    if (absl::Status added = (*writer)->Add(value.spec, InPieces(value.bytes)); !added.ok()) return added;
  }
  if (absl::Status added = (*writer)->AddString(kObjectGraphKey, kGraph); !added.ok()) return added;
  return (*writer)->Finish().status();
}

// Reads all of it; the values must be those written.
absl::Status ReadValues(const Storage& storage, const std::string& prefix) {
  const auto reader = BundleReader::Open(storage, prefix);
  if (!reader.ok()) return reader.status();
  for (const Value& value : kValues) {
    const BundleEntry* const entry = reader->index().Find(value.spec.name);
    REQUIRE(entry != nullptr);
    CHECK(entry->shape == value.spec.shape);
    CHECK(FromTensorflowType(entry->type) == value.spec.dtype);
    std::string bytes(value.bytes.size(), '\0');
    if (absl::Status read = reader->Read(*entry, absl::MakeSpan(bytes)); !read.ok()) return read;
    CHECK(bytes == value.bytes);
  }
  const absl::StatusOr<std::string> graph = reader->ReadString(*reader->index().Find(kObjectGraphKey));
  if (!graph.ok()) return graph.status();
  CHECK(*graph == kGraph);
  return absl::OkStatus();
}

std::vector<std::string> Names(const Storage& storage, absl::string_view folder = "") {
  std::vector<std::string> names;
  const auto entries = storage.List(folder);
  for (const DirectoryEntry& entry : *entries) names.push_back(entry.name);
  return names;
}

TEST_CASE("bundle: what was written is read, from one data file or several", "[tensorflow]") {
  MemoryStorage storage;
  REQUIRE(storage.CreateDirectories("dir").ok());
  REQUIRE(WriteValues(storage, "dir/one") == absl::OkStatus());
  REQUIRE(WriteValues(storage, "dir/three", /*shard_bytes=*/16) == absl::OkStatus());
  CHECK(ReadValues(storage, "dir/one") == absl::OkStatus());
  CHECK(ReadValues(storage, "dir/three") == absl::OkStatus());
  // 40 bytes are more than a file takes; 8 and 6 share one; the graph has the third.
  CHECK(Names(storage, "dir") == std::vector<std::string>{"one.data-00000-of-00001", "one.index",
                                                          "three.data-00000-of-00003", "three.data-00001-of-00003",
                                                          "three.data-00002-of-00003", "three.index"});
}

TEST_CASE("bundle: an empty one has a data file too", "[tensorflow]") {
  MemoryStorage storage;
  const auto writer = BundleWriter::Begin(storage, "none");
  REQUIRE((*writer)->Finish().ok());
  CHECK(Names(storage) == std::vector<std::string>{"none.data-00000-of-00001", "none.index"});
  CHECK(BundleReader::Open(storage, "none").ok());
}

TEST_CASE("bundle: no cut file and no flipped bit gives other values", "[tensorflow]") {
  MemoryStorage storage;
  REQUIRE(WriteValues(storage, "ck").ok());
  for (const std::string name : {"ck.index", "ck.data-00000-of-00001"}) {
    const std::string whole = *ReadWholeFile(storage, name, 1 << 20);
    const auto with = [&](const std::string& bytes) {
      REQUIRE(ReplaceFile(storage, "scratch", name, bytes, Access::kShared).ok());
      return ReadValues(storage, "ck");  // which compares what it could read
    };
    for (size_t size = 0; size < whole.size(); ++size) CHECK(absl::IsDataLoss(with(whole.substr(0, size))));
    int refused = 0;
    for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      std::string changed = whole;
      changed[bit / 8] ^= static_cast<char>(1 << (bit % 8));
      refused += with(changed).ok() ? 0 : 1;
    }
    CHECK(refused > static_cast<int>(8 * (whole.size() - 48)));  // all but some of the index's last 48 bytes
    REQUIRE(with(whole) == absl::OkStatus());
  }
}

TEST_CASE("bundle: an error at any operation leaves no checkpoint, and what was there", "[tensorflow]") {
  const auto kind = GENERATE(StorageFaults::Kind::kDiskFull, StorageFaults::Kind::kIoError);
  for (int64_t at = 0;; ++at) {
    MemoryStorage storage;
    REQUIRE(WriteValues(storage, "other").ok());
    storage.SetFaults({.at = {{at, kind}}});
    const absl::Status written = WriteValues(storage, "ck", /*shard_bytes=*/16);
    storage.SetFaults({});
    CHECK(ReadValues(storage, "other") == absl::OkStatus());
    if (written.ok()) {
      REQUIRE(at > 20);
      CHECK(ReadValues(storage, "ck") == absl::OkStatus());
      break;
    }
    INFO("operation " << at << ": " << written);
    CHECK(Names(storage) == std::vector<std::string>{"other.data-00000-of-00001", "other.index"});
  }
}

TEST_CASE("bundle: after a crash the checkpoint is whole or not there", "[tensorflow]") {
  const auto survival =
      GENERATE(MemoryStorage::Survival::kNothing, MemoryStorage::Survival::kEverything, MemoryStorage::Survival::kSome);
  for (int64_t at = 0;; ++at) {
    MemoryStorage storage;
    storage.SetFaults({.at = {{at, StorageFaults::Kind::kCrash}}});
    const absl::Status written = WriteValues(storage, "ck", /*shard_bytes=*/16);
    storage.Restart(survival, /*seed=*/static_cast<uint64_t>(at));
    INFO("operation " << at);
    if (*storage.Exists("ck.index")) CHECK(ReadValues(storage, "ck") == absl::OkStatus());
    if (written.ok()) break;
    // What is left of it under scratch names is in nobody's way; what has its name is named.
    if (!*storage.Exists("ck.index")) {
      absl::Status again = WriteValues(storage, "ck", /*shard_bytes=*/16);
      if (absl::IsAlreadyExists(again)) {
        CHECK_THAT(std::string(again.message()), Contains("ck.data-00000-of-00003") && Contains("remove"));
        for (int i = 0; i < 3; ++i) REQUIRE(storage.RemoveTree(DataFileName("ck", i, 3)).ok());
        again = WriteValues(storage, "ck", /*shard_bytes=*/16);
      }
      REQUIRE(again == absl::OkStatus());
    }
    CHECK(ReadValues(storage, "ck") == absl::OkStatus());
  }
}

TEST_CASE("bundle: a checkpoint that is there is not written over", "[tensorflow]") {
  MemoryStorage storage;
  REQUIRE(WriteValues(storage, "ck").ok());
  const absl::Status again = WriteValues(storage, "ck");
  CHECK(absl::IsAlreadyExists(again));
  CHECK_THAT(std::string(again.message()), Contains("ck.index") && Contains("another prefix"));
  CHECK(ReadValues(storage, "ck") == absl::OkStatus());
}

TEST_CASE("bundle: a data file that is there is neither replaced nor removed", "[tensorflow]") {
  MemoryStorage storage;
  REQUIRE(WriteNewFile(storage, "ck.data-00001-of-00003", "another's", Access::kShared).ok());
  const absl::Status refused = WriteValues(storage, "ck", /*shard_bytes=*/16);
  CHECK(absl::IsAlreadyExists(refused));
  CHECK_THAT(std::string(refused.message()), Contains("ck.data-00001-of-00003") && Contains("another prefix"));
  CHECK(Names(storage) == std::vector<std::string>{"ck.data-00001-of-00003"});
  CHECK(*ReadWholeFile(storage, "ck.data-00001-of-00003", 100) == "another's");
}

TEST_CASE("bundle: of two writers of one prefix the first has it, whole", "[tensorflow]") {
  MemoryStorage storage;
  auto late = BundleWriter::Begin(storage, "ck");
  const std::string four = "1234";
  REQUIRE((*late)->Add({"a", DType::kF32, {1}}, InPieces(four)).ok());
  const uint64_t shard_bytes = GENERATE(uint64_t{16}, BundleWriter::kShardBytes);
  REQUIRE(WriteValues(storage, "ck", shard_bytes) == absl::OkStatus());
  CHECK(absl::IsAlreadyExists((*late)->Finish().status()));
  late->reset();
  CHECK(ReadValues(storage, "ck") == absl::OkStatus());
  CHECK(Names(storage).size() == (shard_bytes == 16 ? 4 : 2));
}

TEST_CASE("bundle: a tensor comes with all its bytes and under a key of its own", "[tensorflow]") {
  MemoryStorage storage;
  const auto writer = BundleWriter::Begin(storage, "ck");
  const std::string four = "1234", eight = "12345678";
  REQUIRE((*writer)->Add({"a", DType::kF32, {1}}, InPieces(four)).ok());
  CHECK(absl::IsInvalidArgument((*writer)->Add({"a", DType::kF32, {1}}, InPieces(four))));
  CHECK(absl::IsInvalidArgument((*writer)->Add({"", DType::kF32, {1}}, InPieces(four))));
  CHECK(absl::IsInternal((*writer)->Add({"b", DType::kF32, {1}}, InPieces(eight))));
}

TEST_CASE("bundle: what is missing or of another index is named", "[tensorflow]") {
  MemoryStorage storage;
  REQUIRE(WriteValues(storage, "ck").ok());
  CHECK(absl::IsNotFound(BundleReader::Open(storage, "no").status()));
  REQUIRE(ReplaceFile(storage, "scratch", "ck.data-00000-of-00001", "short", Access::kShared).ok());
  CHECK_THAT(std::string(BundleReader::Open(storage, "ck").status().message()), Contains("has 5 bytes"));
  REQUIRE(storage.RemoveTree("ck.data-00000-of-00001").ok());
  const absl::Status gone = BundleReader::Open(storage, "ck").status();
  CHECK(absl::IsNotFound(gone));
  CHECK_THAT(std::string(gone.message()), Contains("ck.data-00000-of-00001"));
}

}  // namespace
}  // namespace lockstep
