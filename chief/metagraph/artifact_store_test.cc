#include "chief/metagraph/artifact_store.h"

#include <catch2/catch.hpp>
#include <string>

#include "chief/term/storage_term_registry.h"
#include "common/digest/sha256.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

absl::StatusOr<std::string> ByHash(absl::string_view bytes) { return Sha256Hex(bytes); }

struct Fixture {
  Fixture() { Claim(); }
  void Claim() {
    hold.reset();
    hold = TermHold::Take(storage, registry, TermOwner()).value();
  }
  absl::StatusOr<bool> Store(absl::string_view bytes) {
    return StoreArtifact(*hold, "metagraphs", Sha256Hex(bytes), bytes, ByHash);
  }
  absl::StatusOr<std::string> Load(absl::string_view bytes) {
    return LoadArtifact(storage, "metagraphs", Sha256Hex(bytes), ByHash);
  }
  MemoryStorage storage;
  StorageTermRegistry registry{storage};
  std::unique_ptr<TermHold> hold;
};

TEST_CASE("metagraph: written once per fingerprint and read back", "[metagraph]") {
  Fixture f;
  CHECK(f.Load("graph").status().code() == absl::StatusCode::kNotFound);

  CHECK(f.Store("graph").value());
  const int64_t writes = f.storage.operations();
  CHECK_FALSE(f.Store("graph").value());
  CHECK(f.storage.operations() == writes + 1);  // only the directory is synced again
  CHECK(f.Store("other").value());

  CHECK(f.Load("graph").value() == "graph");
  CHECK(f.storage.List("metagraphs")->size() == 2);
  CHECK(StoreArtifact(*f.hold, "metagraphs", "wrong", "graph", ByHash).status().code() ==
        absl::StatusCode::kInvalidArgument);
}

TEST_CASE("metagraph: a damaged one is refused, kept aside and written anew", "[metagraph]") {
  Fixture f;
  REQUIRE(f.Store("graph").ok());
  REQUIRE(f.storage.FlipBit("metagraphs/" + Sha256Hex("graph") + ".pb", 2, 1).ok());

  const absl::Status damaged = f.Load("graph").status();
  CHECK(damaged.code() == absl::StatusCode::kDataLoss);
  CHECK_THAT(std::string(damaged.message()), Contains(Sha256Hex("graph")) && Contains("damaged"));

  CHECK(f.Store("graph").value());
  CHECK(f.Load("graph").value() == "graph");
  CHECK(f.storage.List("set_aside")->size() == 1);
}

TEST_CASE("metagraph: a crash at any operation of a write leaves it whole or absent", "[metagraph]") {
  bool finished = false;
  for (int64_t at = 0; !finished; ++at) {
    CAPTURE(at);
    Fixture f;
    StorageFaults faults;
    faults.at[at] = StorageFaults::Kind::kCrash;
    f.storage.SetFaults(faults);

    finished = f.Store("graph").ok();
    f.storage.Restart(MemoryStorage::Survival::kSome, static_cast<uint64_t>(at));
    f.Claim();

    const auto loaded = f.Load("graph");
    CHECK((loaded.ok() || absl::IsNotFound(loaded.status())));
    if (finished) CHECK(loaded.ok());
    CHECK(f.Store("graph").ok());
  }
}

}  // namespace
}  // namespace lockstep::chief
