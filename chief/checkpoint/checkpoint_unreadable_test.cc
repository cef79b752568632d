// Errors of the place for one checkpoint: what cannot be read for now is neither lost nor in the way.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/checkpoint/checkpoint_test_util.h"
#include "common/storage/files.h"
#include "common/storage/forwarding_storage.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

// A place that gives an error for every file of one folder.
class FailingFolder : public ForwardingStorage {
 public:
  FailingFolder(Storage& below, std::string folder) : ForwardingStorage(below), folder_(std::move(folder)) {}
  void Mend() { mended_ = true; }

  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(absl::string_view path) const override {
    if (!mended_ && absl::StartsWith(path, folder_))
      return absl::UnavailableError(absl::StrCat(path, ": Input/output error"));
    return ForwardingStorage::OpenFile(path);
  }

 private:
  const std::string folder_;
  bool mended_ = false;
};

// Opens its files, and fails to read the bytes of tensors.
class FailingContent : public ForwardingStorage {
 public:
  FailingContent(Storage& below, std::string folder) : ForwardingStorage(below), folder_(std::move(folder)) {}

  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(absl::string_view path) const override {
    LS_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, ForwardingStorage::OpenFile(path));
    if (!absl::StartsWith(path, folder_) || !absl::EndsWith(path, ".safetensors")) return file;
    return std::make_unique<File>(std::move(file));
  }

 private:
  struct File : ReadableFile {
    explicit File(std::unique_ptr<ReadableFile> the_file) : file(std::move(the_file)) {}
    uint64_t size() const override { return file->size(); }
    FileFacts facts() const override { return file->facts(); }
    absl::Status ReadAt(uint64_t offset, absl::Span<char> out) const override {
      if (offset + out.size() == size()) return absl::UnavailableError("Input/output error");
      return file->ReadAt(offset, out);
    }
    std::unique_ptr<ReadableFile> file;
  };

  const std::string folder_;
};

TEST_CASE("retention: a checkpoint whose bytes cannot be read for now does not keep the others from being verified",
          "[checkpoint]") {
  MemoryStorage storage;
  {
    const auto chief = SmallChief::Start(storage, 9).value();
    for (const int64_t step : {0, 10, 20, 30}) REQUIRE(chief->Save(SmallState(step)).ok());
  }
  FailingContent failing(storage, "checkpoints/step-000000020/");
  const auto chief = SmallChief::Start(failing, 3).value();
  CHECK(chief->store->NextUnverified() == "step-000000020");
  std::vector<std::string> messages;

  SECTION("one after another") {
    CHECK(absl::IsUnavailable(chief->store->StillGood("step-000000020", true, messages).status()));
    chief->store->Postpone("step-000000020");
    CHECK(chief->store->NextUnverified() == "step-000000010");
    REQUIRE(chief->store->StillGood("step-000000010", true, messages).value());
    REQUIRE(chief->store->StillGood("step-000000000", true, messages).value());
    CHECK(chief->store->NextUnverified() == "step-000000020");  // again, when nothing else is left
  }
  SECTION("where a save needs room") {
    CHECK(chief->store->MakeRoom(messages).ok());
    REQUIRE(messages.size() == 1);
    CHECK_THAT(messages[0], Contains("step-000000020 was not read through"));
    CHECK(chief->store->accepted().at("step-000000010").verified);
    CHECK(chief->store->accepted().contains("step-000000020"));
  }
}

TEST_CASE("recovery: an older checkpoint that cannot be read for now stops nothing, and counts again when it can",
          "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 9).value();
  for (const int64_t step : {0, 10, 20}) REQUIRE(chief->Save(SmallState(step)).ok());
  chief.reset();
  {
    FailingFolder failing(storage, "checkpoints/step-000000010/");
    auto without = SmallChief::Start(failing, 9).value();
    CHECK(without->store->accepted().size() == 2);
    REQUIRE(without->messages.size() == 1);
    CHECK_THAT(without->messages[0], Contains("step-000000010") && Contains("Input/output error"));
    REQUIRE(without->Save(SmallState(30)).ok());
    REQUIRE(without->log.head().live_size() == 4);
    CHECK(without->log.head().live(1).step() == 10);
  }
  auto again = SmallChief::Start(storage, 9).value();
  REQUIRE(again->Save(SmallState(40)).ok());

  CHECK(again->store->accepted().contains("step-000000010"));
  CHECK(again->log.head().live_size() == 5);
  CHECK(Names(storage, "set_aside").empty());
}

TEST_CASE("repair: an audited checkpoint that could not be read at the start is read when the job must go back to it",
          "[checkpoint][rule22]") {
  MemoryStorage storage;
  {
    auto chief = SmallChief::Start(storage, 9).value();
    for (const int64_t step : {10, 20}) {
      CommitInfo info = SmallCommit();
      info.audited = step == 10;
      REQUIRE(chief->store->Publish(StoreAll(*chief->hold, SmallState(step), 2).value(), info).ok());
    }
  }
  FailingFolder failing(storage, "checkpoints/step-000000010/");
  auto chief = SmallChief::Start(failing, 9).value();
  REQUIRE(chief->store->accepted().size() == 1);
  CHECK(chief->store->OldestAudited() == 10);
  std::vector<std::string> messages;

  SECTION("while it cannot be read, that is no verdict") {
    CHECK(absl::IsUnavailable(chief->store->FindAudited(100, messages).status()));
    failing.Mend();
    CHECK(chief->store->FindAudited(100, messages).value() == "step-000000010");
    CHECK(chief->store->accepted().at("step-000000010").verified);
    CHECK(messages.empty());
  }
  SECTION("it was removed by hand") {
    failing.Mend();
    REQUIRE(storage.RemoveTree("checkpoints/step-000000010").ok());
    CHECK(absl::IsDataLoss(chief->store->FindAudited(100, messages).status()));
    CHECK(messages.size() == 1);
  }
  SECTION("it is damaged") {
    failing.Mend();
    const std::string file = GENERATE(as<std::string>(), "checkpoints/step-000000010/manifest.json",
                                      "checkpoints/step-000000010/model-00001-of-00002.safetensors");
    REQUIRE(storage.FlipBit(file, 300, 1).ok());
    CHECK(absl::IsDataLoss(chief->store->FindAudited(100, messages).status()));
    CHECK(Names(storage, "set_aside").size() == 1);
    CHECK(chief->log.head().live_size() == 1);
  }
}

TEST_CASE("recovery: a checkpoint that turns up and cannot be read does not keep the others from being saved",
          "[checkpoint]") {
  MemoryStorage storage;
  FailingFolder failing(storage, "checkpoints/step-000000010/");
  auto chief = SmallChief::Start(failing, 9).value();
  REQUIRE(chief->Save(SmallState(0)).ok());
  REQUIRE(storage.CreateDirectories("checkpoints/step-000000010").ok());
  REQUIRE(WriteNewFile(storage, "checkpoints/step-000000010/manifest.json", "{}", Access::kShared).ok());

  const auto saved = chief->Save(SmallState(20));

  REQUIRE(saved.ok());
  REQUIRE(saved->messages.size() == 1);
  CHECK_THAT(saved->messages[0], Contains("left step-000000010 alone"));
}

TEST_CASE("recovery: the best checkpoint, when it cannot be read for now, stops the start and stays the best",
          "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 9).value();
  for (const int64_t step : {0, 10, 20}) REQUIRE(chief->Save(SmallState(step)).ok());
  REQUIRE(
      chief->log.Change("the best", [](CommitRecord& record) { record.set_best("checkpoints/step-000000010"); }).ok());
  chief.reset();
  FailingFolder failing(storage, "checkpoints/step-000000010/");

  CHECK(absl::IsUnavailable(SmallChief::Start(failing, 9).status()));

  CHECK(SmallChief::Start(storage, 9).value()->log.head().best() == "checkpoints/step-000000010");
}

}  // namespace
}  // namespace lockstep::chief
