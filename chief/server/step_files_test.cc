#include "chief/server/step_files.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

class Folder {
 public:
  Folder() { REQUIRE(storage.CreateDirectories("logs/hooks").ok()); }

  void Write(const std::string& name) {
    const std::string path = absl::StrCat("logs/hooks/", name);
    REQUIRE(ReplaceFile(storage, absl::StrCat(path, ".partial"), path, "text", Access::kShared).ok());
  }
  std::set<std::string> Names() {
    std::set<std::string> names;
    const std::vector<DirectoryEntry> entries = storage.List("logs/hooks").value();
    for (const DirectoryEntry& entry : entries) names.insert(entry.name);
    return names;
  }

  MemoryStorage storage;
};

TEST_CASE("step files: those of the newest steps stay, whatever their names", "[storage]") {
  Folder folder;
  folder.Write("notes.txt");
  StepFiles files(folder.storage, "logs/hooks", 8);
  for (int step = 1; step <= 8; ++step) {
    folder.Write(absl::StrCat(step % 2 == 0 ? "a" : "b", "-step-", step, ".txt"));
    REQUIRE(files.Written().ok());
  }
  CHECK(folder.Names().size() == 9);

  folder.Write("c-step-100.worker-0.trace.json.gz");
  REQUIRE(files.Written().ok());

  // One more than may be there, and an eighth.
  CHECK(folder.Names().count("b-step-1.txt") == 0);
  CHECK(folder.Names().count("a-step-2.txt") == 0);
  CHECK(folder.Names().count("b-step-3.txt") == 1);
  CHECK(folder.Names().count("notes.txt") == 1);
  CHECK(folder.Names().size() == 8);
}

TEST_CASE("step files: what an earlier process left counts", "[storage]") {
  Folder folder;
  for (int step = 1; step <= 30; ++step) folder.Write(absl::StrCat("a-step-", step, ".txt"));

  REQUIRE(StepFiles(folder.storage, "logs/hooks", 8).Written().ok());

  CHECK(folder.Names().size() == 7);
  CHECK(folder.Names().count("a-step-24.txt") == 1);
  CHECK(folder.Names().count("a-step-23.txt") == 0);
}

TEST_CASE("step files: the step of a name is the last one", "[storage]") {
  CHECK(StepInName("tell-step-1200.txt") == 1200);
  CHECK(StepInName("a-step-3-step-14.worker-1.trace.json.gz") == 14);
  CHECK_FALSE(StepInName("tell.txt").has_value());
  CHECK_FALSE(StepInName("tell-step-.txt").has_value());
}

}  // namespace
}  // namespace lockstep::chief
