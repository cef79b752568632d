#include "chief/server/drain_list.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "chief/term/storage_term_registry.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

TermOwner Owner() {
  TermOwner owner;
  owner.set_pid(1);
  owner.set_host("alpha");
  return owner;
}

TEST_CASE("drain list: the next chief finds what was written, whatever names hold", "[chief]") {
  MemoryStorage storage;
  StorageTermRegistry registry(storage);
  const std::vector<Drain> drains = {{"worker-1", "host-a"}, {"host-b", ""}, {"a\tb\nc\\ \x01", "sha256 x"}};
  {
    auto hold = TermHold::Take(storage, registry, Owner()).value();
    CHECK(FindDrains(*hold).value().empty());
    REQUIRE(WriteDrains(*hold, {{"another", ""}}).ok());
    REQUIRE(WriteDrains(*hold, drains).ok());
  }

  auto hold = TermHold::Take(storage, registry, Owner()).value();
  CHECK(FindDrains(*hold).value() == drains);
  REQUIRE(WriteDrains(*hold, {}).ok());
  CHECK(FindDrains(*hold).value().empty());
}

TEST_CASE("drain list: a damaged file is set aside and holds nobody", "[chief]") {
  MemoryStorage storage;
  StorageTermRegistry registry(storage);
  auto hold = TermHold::Take(storage, registry, Owner()).value();
  REQUIRE(WriteDrains(*hold, {{"worker-1", "host-a"}}).ok());
  std::string bytes = ReadWholeFile(storage, kDrainList, 1 << 20).value();
  SECTION("a letter is another one") { bytes[0] = 'W'; }
  SECTION("it has no digest, and a line that is none") { bytes = "worker-1\n"; }
  REQUIRE(hold->Replace(kDrainList, bytes).ok());

  CHECK(FindDrains(*hold).value().empty());

  CHECK(storage.Exists("set_aside/drains-bad-term-000001").value());
  CHECK_FALSE(storage.Exists(kDrainList).value());
}

}  // namespace
}  // namespace lockstep::chief
