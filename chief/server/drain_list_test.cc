#include "chief/server/drain_list.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/checkpoint_format/sealed.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

TEST_CASE("drain list: the next chief finds what was recorded, whatever names hold", "[chief]") {
  const std::vector<Drain> drains = {{"worker-1", "host-a"}, {"host-b", ""}, {"a\tb\nc\\ \x01\xff", "sha256 x"}};
  CommitRecord record;
  SetDrains({{"another", ""}}, record);
  SetDrains(drains, record);
  const std::string json = SealJson(&record);

  CommitRecord read;
  REQUIRE(ReadSealedJson(json, "record.json", 2, &read).ok());
  CHECK(DrainsOf(read) == drains);
  SetDrains({}, record);
  CHECK(DrainsOf(record).empty());
}

TEST_CASE("drain list: the file of an earlier program is read, and a damaged one holds nobody", "[chief]") {
  MemoryStorage storage;
  REQUIRE(storage.CreateDirectories("chief").ok());
  CHECK(ReadOlderDrains(storage).value().empty());
  const std::string lines = "worker-1\thost-a\nhost\\tb\t\n";
  std::string bytes = SealText(lines);
  std::vector<Drain> expected;
  SECTION("whole") { expected = {{"worker-1", "host-a"}, {"host\tb", ""}}; }
  SECTION("without a digest") {
    bytes = lines;
    expected = {{"worker-1", "host-a"}, {"host\tb", ""}};
  }
  SECTION("a letter is another one") { bytes[0] = 'W'; }
  SECTION("it has no digest, and a line that is none") { bytes = "worker-1\n"; }
  REQUIRE(WriteNewFile(storage, kDrainList, bytes, Access::kShared).ok());

  CHECK(ReadOlderDrains(storage).value() == expected);
}

}  // namespace
}  // namespace lockstep::chief
