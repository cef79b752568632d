// What every Storage promises, asked of each implementation.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "common/storage/files.h"
#include "common/storage/local/local_storage.h"
#include "common/storage/local/posix_error.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep {
namespace {

using Catch::Contains;

// A fresh directory that goes with the fixture.
struct TemporaryDirectory {
  TemporaryDirectory() {
    const char* base = std::getenv("TEST_TMPDIR");
    std::string pattern = std::string(base != nullptr ? base : "/tmp") + "/storage-XXXXXX";
    path = mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
  std::string path;
};

struct Local {
  TemporaryDirectory directory;
  std::unique_ptr<Storage> storage = LocalStorage::Create(directory.path + "/deep/root").value();
};

struct Memory {
  std::unique_ptr<Storage> storage = std::make_unique<MemoryStorage>();
};

std::string Read(const Storage& storage, absl::string_view path) {
  auto content = ReadWholeFile(storage, path, 1 << 20);
  return content.ok() ? *content : content.status().ToString();
}

std::vector<std::string> Names(const Storage& storage, absl::string_view path) {
  std::vector<std::string> names;
  const auto entries = storage.List(path).value();
  for (const DirectoryEntry& entry : entries) names.push_back(entry.name);
  return names;
}

TEMPLATE_TEST_CASE("storage: a directory is created exclusively by one caller only", "[storage]", Local, Memory) {
  TestType fixture;
  Storage& s = *fixture.storage;

  CHECK(s.CreateDirectoryExclusive("chief").ok());

  CHECK(s.CreateDirectoryExclusive("chief").code() == absl::StatusCode::kAlreadyExists);
  CHECK(s.CreateDirectoryExclusive("a/b").code() == absl::StatusCode::kNotFound);
  REQUIRE(s.CreateFile("file", Access::kShared).ok());
  CHECK(s.CreateDirectoryExclusive("file").code() == absl::StatusCode::kAlreadyExists);
  CHECK(s.CreateDirectories("file").code() == absl::StatusCode::kFailedPrecondition);
  CHECK(s.CreateDirectories("a/b/c").ok());
  CHECK(s.CreateDirectories("a/b/c").ok());
  CHECK(s.CreateDirectories("").ok());
  CHECK(Names(s, "a/b") == std::vector<std::string>{"c"});
}

TEMPLATE_TEST_CASE("storage: what is appended is read back, whole and in ranges", "[storage]", Local, Memory) {
  TestType fixture;
  Storage& s = *fixture.storage;
  auto file = s.CreateFile("data", Access::kShared).value();

  REQUIRE(file->Append("hello, ").ok());
  REQUIRE(file->Append("").ok());
  REQUIRE(file->Append(std::string("wor\0ld", 6)).ok());
  REQUIRE(file->Sync().ok());
  REQUIRE(file->Close().ok());

  CHECK(file->Append("x").code() == absl::StatusCode::kFailedPrecondition);
  CHECK(file->Sync().code() == absl::StatusCode::kFailedPrecondition);
  CHECK(Read(s, "data") == std::string("hello, wor\0ld", 13));
  auto reader = s.OpenFile("data").value();
  CHECK(reader->size() == 13);
  char buffer[5];
  CHECK(reader->ReadAt(5, absl::MakeSpan(buffer)).ok());
  CHECK(std::string(buffer, 5) == ", wor");
  const absl::Status beyond = reader->ReadAt(10, absl::MakeSpan(buffer));
  CHECK(beyond.code() == absl::StatusCode::kDataLoss);
  CHECK_THAT(std::string(beyond.message()), Contains("data") && Contains("13") && Contains("truncated"));
  CHECK(ReadWholeFile(s, "data", 12).status().code() == absl::StatusCode::kDataLoss);
}

TEMPLATE_TEST_CASE("storage: a file is written once under its name", "[storage]", Local, Memory) {
  TestType fixture;
  Storage& s = *fixture.storage;
  REQUIRE(WriteNewFile(s, "once", "first", Access::kShared).ok());

  CHECK(s.CreateFile("once", Access::kShared).status().code() == absl::StatusCode::kAlreadyExists);
  CHECK(s.CreateFile("missing/file", Access::kShared).status().code() == absl::StatusCode::kNotFound);
  CHECK(Read(s, "once") == "first");
  CHECK(s.OpenFile("nothing").status().code() == absl::StatusCode::kNotFound);
  REQUIRE(s.CreateDirectoryExclusive("d").ok());
  CHECK(s.OpenFile("d").status().code() == absl::StatusCode::kFailedPrecondition);
}

TEMPLATE_TEST_CASE("storage: a listing is sorted and tells files from directories", "[storage]", Local, Memory) {
  TestType fixture;
  Storage& s = *fixture.storage;
  REQUIRE(s.CreateDirectories("top/dir").ok());
  REQUIRE(WriteNewFile(s, "top/zeta", "12345", Access::kShared).ok());
  REQUIRE(WriteNewFile(s, "top/alpha", "", Access::kShared).ok());

  CHECK(s.List("top").value() ==
        std::vector<DirectoryEntry>{{"alpha", false, 0}, {"dir", true, 0}, {"zeta", false, 5}});
  CHECK(s.List("none").status().code() == absl::StatusCode::kNotFound);
  CHECK(s.Exists("top/zeta").value());
  CHECK(s.Exists("").value());
  CHECK_FALSE(s.Exists("top/none").value());
  CHECK_FALSE(s.Exists("top/zeta/below").value());
}

TEMPLATE_TEST_CASE("storage: a rename moves whole trees and never onto a taken name", "[storage]", Local, Memory) {
  TestType fixture;
  Storage& s = *fixture.storage;
  REQUIRE(s.CreateDirectories("staging/save/optimizer").ok());
  REQUIRE(s.CreateDirectories("checkpoints/taken").ok());
  REQUIRE(WriteNewFile(s, "staging/save/optimizer/shard", "bits", Access::kShared).ok());

  CHECK(s.Rename("staging/save", "checkpoints/taken").code() == absl::StatusCode::kAlreadyExists);
  CHECK(s.Rename("staging/none", "checkpoints/new").code() == absl::StatusCode::kNotFound);
  CHECK(s.Rename("staging/save", "nowhere/new").code() == absl::StatusCode::kNotFound);
  REQUIRE(s.Rename("staging/save", "checkpoints/new").ok());

  CHECK(Read(s, "checkpoints/new/optimizer/shard") == "bits");
  CHECK(Names(s, "staging").empty());
}

TEMPLATE_TEST_CASE("storage: an open file follows its directory when that is renamed", "[storage]", Local, Memory) {
  TestType fixture;
  Storage& s = *fixture.storage;
  REQUIRE(s.CreateDirectories("staging").ok());
  auto file = s.CreateFile("staging/shard", Access::kShared).value();
  REQUIRE(s.Rename("staging", "aside").ok());

  CHECK(file->Append("late").ok());
  CHECK(file->Sync().ok());

  CHECK_FALSE(s.Exists("staging/shard").value());
  CHECK(Read(s, "aside/shard") == "late");
}

TEMPLATE_TEST_CASE("storage: a file is replaced in one step", "[storage]", Local, Memory) {
  TestType fixture;
  Storage& s = *fixture.storage;
  REQUIRE(s.CreateDirectories("staging").ok());
  REQUIRE(ReplaceFile(s, "staging/tmp", "latest", "one", Access::kShared).ok());
  REQUIRE(WriteNewFile(s, "staging/tmp", "left behind", Access::kShared).ok());

  CHECK(ReplaceFile(s, "staging/tmp", "latest", "two", Access::kShared).ok());

  CHECK(Read(s, "latest") == "two");
  CHECK(Names(s, "staging").empty());
  CHECK(s.Replace("staging/none", "latest").code() == absl::StatusCode::kNotFound);
  CHECK_FALSE(s.Replace("latest", "staging").ok());
}

TEMPLATE_TEST_CASE("storage: a second name keeps the bytes when the first one goes", "[storage]", Local, Memory) {
  TestType place;
  Storage& storage = *place.storage;
  REQUIRE(storage.CreateDirectories("a").ok());
  REQUIRE(storage.CreateDirectories("b").ok());
  REQUIRE(WriteNewFile(storage, "a/file", "content", Access::kShared).ok());
  REQUIRE(WriteNewFile(storage, "a/other", "other", Access::kShared).ok());

  REQUIRE(storage.Link("a/file", "b/same").ok());
  CHECK(absl::IsAlreadyExists(storage.Link("a/other", "b/same")));
  CHECK(absl::IsNotFound(storage.Link("a/none", "b/none")));
  CHECK(absl::IsNotFound(storage.Link("a/file", "c/same")));
  const uint64_t identity = storage.OpenFile("a/file").value()->facts().identity;
  CHECK(storage.OpenFile("b/same").value()->facts().identity == identity);
  CHECK(storage.OpenFile("a/other").value()->facts().identity != identity);

  REQUIRE(storage.RemoveTree("a").ok());
  CHECK(ReadWholeFile(storage, "b/same", 100).value() == "content");
  REQUIRE(storage.RemoveTree("b/same").ok());
  CHECK(storage.Exists("b/same").value() == false);
}

TEMPLATE_TEST_CASE("storage: removing takes everything below a name, and nothing is fine", "[storage]", Local, Memory) {
  TestType fixture;
  Storage& s = *fixture.storage;
  REQUIRE(s.CreateDirectories("a/b").ok());
  REQUIRE(WriteNewFile(s, "a/b/c", "x", Access::kShared).ok());

  CHECK(s.RemoveTree("a").ok());
  CHECK(s.RemoveTree("a").ok());
  CHECK(s.RemoveTree("x/y").ok());
  CHECK(s.RemoveTree("").code() == absl::StatusCode::kInvalidArgument);
  CHECK(Names(s, "").empty());
}

TEMPLATE_TEST_CASE("storage: a path cannot leave the root", "[storage]", Local, Memory) {
  TestType fixture;
  Storage& s = *fixture.storage;
  for (const char* path : {"../x", "/etc", "a//b", "a/./b", "a/..", "a/"}) {
    CAPTURE(path);
    CHECK(s.CreateFile(path, Access::kShared).status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(s.OpenFile(path).status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(s.RemoveTree(path).code() == absl::StatusCode::kInvalidArgument);
    CHECK(s.CreateDirectories(path).code() == absl::StatusCode::kInvalidArgument);
  }
}

TEMPLATE_TEST_CASE("storage: a lock has one holder, whom the message names", "[storage]", Local, Memory) {
  TestType fixture;
  Storage& s = *fixture.storage;
  auto first = s.Lock("lock", "pid 17 on host alpha");
  REQUIRE(first.ok());

  const absl::Status second = s.Lock("lock", "pid 18 on host beta").status();
  first->reset();

  CHECK(second.code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(second.message()), Contains("pid 17 on host alpha"));
  CHECK(s.Lock("lock", "p").ok());
}

TEMPLATE_TEST_CASE("storage: there is room to write", "[storage]", Local, Memory) {
  TestType fixture;
  CHECK(fixture.storage->FreeBytes().value() > 0);
  CHECK(fixture.storage->SyncDirectory("").ok());
  CHECK(fixture.storage->SyncDirectory("none").code() == absl::StatusCode::kNotFound);
}

TEST_CASE("local storage: a private file is readable by its owner alone", "[storage]") {
  Local fixture;
  REQUIRE(WriteNewFile(*fixture.storage, "token", "secret", Access::kPrivate).ok());

  struct stat info;
  REQUIRE(stat(fixture.storage->Describe("token").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE("local storage: a write that does not fit names needed and available bytes", "[storage]") {
  Local fixture;
  auto file = fixture.storage->CreateFile("large", Access::kShared).value();
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {4096, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);

  const absl::Status written = file->Append(std::string(10000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);

  CHECK(written.code() == absl::StatusCode::kResourceExhausted);
  CHECK_THAT(std::string(written.message()),
             Contains("large") && Contains("needed 5904 bytes") && Contains("available") && Contains("--dir"));
}

TEST_CASE("local storage: a full disk is a full disk", "[storage]") {
  const absl::Status full = PosixWriteError(ENOSPC, "/disk/shard", 4096);
  CHECK(full.code() == absl::StatusCode::kResourceExhausted);
  CHECK_THAT(std::string(full.message()), Contains("/disk/shard") && Contains("the disk is full; needed 4096 bytes"));
  CHECK(PosixError(EACCES, "create", "/x").code() == absl::StatusCode::kPermissionDenied);
  CHECK_THAT(std::string(PosixError(EACCES, "create", "/x").message()), Contains("--dir"));
}

TEST_CASE("local storage: a root that is a file, or not writable, is refused with a remedy", "[storage]") {
  TemporaryDirectory directory;
  auto storage = LocalStorage::Create(directory.path).value();
  REQUIRE(WriteNewFile(*storage, "file", "x", Access::kShared).ok());

  const absl::Status file = LocalStorage::Create(directory.path + "/file").status();
  CHECK(file.code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(file.message()), Contains("is a file") && Contains("--dir"));
  CHECK(LocalStorage::Open(directory.path + "/none").status().code() == absl::StatusCode::kNotFound);
  const absl::Status denied = LocalStorage::Create("/proc/lockstep").status();
  CHECK_FALSE(denied.ok());
  CHECK_THAT(std::string(denied.message()), Contains("/proc"));
}

}  // namespace
}  // namespace lockstep
