#include "common/object_store/storage_probe.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/object_store/forwarding_object_store.h"
#include "common/object_store/memory_object_store.h"
#include "common/object_store/s3_on_fake.h"
#include "common/storage/local/local_storage.h"

namespace lockstep {
namespace {

using Catch::Contains;

// The properties that did not hold.
std::string Broken(const std::vector<Proof>& proofs) {
  std::string names;
  for (const Proof& proof : proofs) {
    if (!proof.status.ok()) absl::StrAppend(&names, names.empty() ? "" : ", ", proof.property);
  }
  return names;
}

const Proof& Find(const std::vector<Proof>& proofs, const std::string& property) {
  return *std::find_if(proofs.begin(), proofs.end(), [&](const Proof& proof) { return proof.property == property; });
}

TEST_CASE("storage probe: a store that keeps its promises has every proof, and is left as it was", "[object_store]") {
  MemoryObjectStore memory;
  S3OnFake s3;
  ObjectStore& store = GENERATE(true, false) ? static_cast<ObjectStore&>(memory) : *s3.store;
  REQUIRE(store.Put("others", "bytes", PutCondition::kNone).ok());

  const std::vector<Proof> proofs = ProbeObjectStore(store, "probe-1");

  CHECK(Broken(proofs) == "");
  CHECK(proofs.size() == 7);
  CHECK_THAT(Find(proofs, "parts").found, Contains("CRC-32C is verified"));
  CHECK(store.List({})->objects == std::vector<ListedObject>{{"others", 5}});
  CHECK(store.ListUploads("")->empty());
}

TEST_CASE("storage probe: a server without conditions is found, in either way", "[object_store]") {
  S3OnFake s3;
  SECTION("it refuses them") {
    s3.fake.conditions = FakeS3::Conditions::kRefused;
    const std::vector<Proof> proofs = ProbeObjectStore(*s3.store, "probe-1");
    CHECK(Broken(proofs) == "exclusive");
    CHECK(absl::IsFailedPrecondition(Find(proofs, "exclusive").status));
    CHECK_THAT(std::string(Find(proofs, "exclusive").status.message()),
               Contains("answers 501 NotImplemented") && Contains("If-None-Match"));
  }
  SECTION("it ignores them") {
    s3.fake.conditions = FakeS3::Conditions::kIgnored;
    const std::vector<Proof> proofs = ProbeObjectStore(*s3.store, "probe-1");
    CHECK(Broken(proofs) == "exclusive");
    CHECK_THAT(std::string(Find(proofs, "exclusive").status.message()),
               Contains("reads 'second'") && Contains("two chiefs"));
  }
  CHECK(s3.store->List({})->objects.empty());
}

TEST_CASE("storage probe: listings out of order are found", "[object_store]") {
  S3OnFake s3;
  s3.fake.lists_in_order = false;
  CHECK_THAT(Broken(ProbeObjectStore(*s3.store, "probe-1")), Contains("listing"));
}

TEST_CASE("storage probe: a place that cannot be reached is said once", "[object_store]") {
  S3OnFake s3;
  s3.fake.next_fault = [] { return S3Fault::kLost; };
  CHECK(Broken(ProbeObjectStore(*s3.store, "probe-1")) == "write");
  S3ObjectStore nowhere({"gone", ""}, {"http", "fake", "/gone", "us-east-1"}, &s3.fake, s3.credentials.get(), {});
  s3.fake.next_fault = [] { return S3Fault::kNone; };
  CHECK(Broken(ProbeObjectStore(nowhere, "probe-1")) == "write");
}

// Lies in one way.
class LyingStore final : public ForwardingObjectStore {
 public:
  enum class Lie : uint8_t { kBothWin, kReplaces, kOtherRange };

  explicit LyingStore(Lie lie) : ForwardingObjectStore(inner_), lie_(lie) {}
  absl::Status Put(absl::string_view key, absl::string_view bytes, PutCondition condition) override {
    const absl::Status put = inner_.Put(key, bytes, condition);
    if (lie_ == Lie::kReplaces) inner_.Put(key, bytes, PutCondition::kNone).IgnoreError();
    return lie_ == Lie::kBothWin && bytes != "second" && absl::IsAlreadyExists(put) ? absl::OkStatus() : put;
  }
  absl::StatusOr<std::string> GetRange(absl::string_view key, uint64_t offset, uint64_t length) override {
    return inner_.GetRange(key, lie_ == Lie::kOtherRange && offset > 0 ? offset - 1 : offset, length);
  }

 private:
  const Lie lie_;
  MemoryObjectStore inner_;
};

TEST_CASE("storage probe: two winners of one slot, and ranges that read wrong, are found", "[object_store]") {
  LyingStore both(LyingStore::Lie::kBothWin);
  const std::vector<Proof> proofs = ProbeObjectStore(both, "probe-1");
  CHECK(Broken(proofs) == "exclusive");
  CHECK_THAT(std::string(Find(proofs, "exclusive").status.message()), Contains("both were told"));
  LyingStore replaces(LyingStore::Lie::kReplaces);
  CHECK(Broken(ProbeObjectStore(replaces, "probe-1")) == "exclusive");
  LyingStore shifted(LyingStore::Lie::kOtherRange);
  CHECK(Broken(ProbeObjectStore(shifted, "probe-1")) == "ranges");
}

TEST_CASE("storage probe: a directory has every proof, and is left as it was", "[object_store]") {
  const char* const temporary = std::getenv("TEST_TMPDIR");
  const std::string root = absl::StrCat(temporary != nullptr ? temporary : "/tmp", "/probe-", getpid());
  const auto storage = LocalStorage::Create(root).value();

  const std::vector<Proof> proofs = ProbeDirectory(*storage, "probe-1");

  CHECK(Broken(proofs) == "");
  CHECK_THAT(Find(proofs, "lock").found, Contains("refused to others"));
  CHECK(std::filesystem::is_empty(root));
  std::filesystem::remove_all(root);
  CHECK(Broken(ProbeDirectory(*storage, "../probe")) == "write");
}

}  // namespace
}  // namespace lockstep
