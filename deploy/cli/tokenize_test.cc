#include "deploy/cli/tokenize.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "common/status/exit_code.h"
#include "worker/data/token_file.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "lockstep_tokenize_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string Path(const std::string& name) const { return path_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }
  std::string Read(const std::string& name) const {
    std::ifstream in(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  size_t Entries() const { return static_cast<size_t>(std::distance(fs::directory_iterator(path_), {})); }

 private:
  std::string path_;
};

std::string Expected(const std::string& text) {
  return worker::TokenFileHeader(static_cast<int64_t>(text.size())) + worker::BytesAsTokens(text);
}

void CheckFails(const TokenizeOptions& options, int expected_code, const std::string& part) {
  int exit_code = kExitDone;
  const auto counts = TokenizeBytes(options, exit_code);
  REQUIRE_FALSE(counts.ok());
  CHECK(exit_code == expected_code);
  CHECK_THAT(std::string(counts.status().message()), Catch::Contains(part));
}

TEST_CASE("tokenize: texts become one file of their bytes, in order", "[cli]") {
  const Folder folder;
  std::string long_text(3 << 20, 'x');
  long_text.back() = '\xff';
  int exit_code = kExitDone;

  const auto counts = TokenizeBytes(
      {.texts = {folder.Write("a", long_text), folder.Write("b", "end")}, .out = folder.Path("t.bin")}, exit_code);

  INFO(counts.status());
  REQUIRE(counts.ok());
  CHECK(counts->train == (3 << 20) + 3);
  CHECK(folder.Read("t.bin") == Expected(long_text + "end"));
  CHECK(folder.Entries() == 3);
}

TEST_CASE("tokenize: the end of the text is kept for evaluation", "[cli]") {
  const Folder folder;
  folder.Write("t.bin", "what was there before");
  int exit_code = kExitDone;

  const auto counts = TokenizeBytes({.texts = {folder.Write("a", "abcdefghij")},
                                     .out = folder.Path("t.bin"),
                                     .eval_fraction = 0.25,
                                     .eval_out = folder.Path("e.bin")},
                                    exit_code);

  INFO(counts.status());
  REQUIRE(counts.ok());
  CHECK(folder.Read("t.bin") == Expected("abcdefgh"));
  CHECK(folder.Read("e.bin") == Expected("ij"));
}

TEST_CASE("tokenize: what cannot be is refused before anything is written", "[cli]") {
  const Folder folder;
  const std::string text = folder.Write("a", "abcdefghij");
  const std::string out = folder.Path("t.bin");
  CheckFails({.texts = {text}, .out = out, .eval_fraction = 0.1}, kExitUsage, "belong together");
  CheckFails({.texts = {text}, .out = out, .eval_fraction = 1, .eval_out = folder.Path("e.bin")}, kExitUsage,
             "below 1");
  CheckFails({.texts = {text}, .out = text}, kExitUsage, "would replace");
  CheckFails({.texts = {text}, .out = out, .eval_fraction = 0.5, .eval_out = folder.Path("./t.bin")}, kExitUsage,
             "would replace");
  CheckFails({.texts = {folder.Path("none")}, .out = out}, kExitBadData, "No such file");
  CheckFails({.texts = {folder.Path("")}, .out = out}, kExitBadData, "is not a file");
  CheckFails({.texts = {folder.Write("one", "x")}, .out = out}, kExitBadData, "two tokens at least");
  CheckFails({.texts = {text}, .out = out, .eval_fraction = 0.1, .eval_out = folder.Path("e.bin")}, kExitBadData,
             "1 of them for evaluation");
  CheckFails({.texts = {text}, .out = folder.Path("nowhere/t.bin")}, kExitStorage, "nowhere");
  CHECK_FALSE(fs::exists(out));
  CHECK_FALSE(fs::exists(folder.Path("e.bin")));
  CHECK(folder.Read("a") == "abcdefghij");
}

TEST_CASE("tokenize: a name that is taken by a folder is refused, and nothing is left beside it", "[cli]") {
  const Folder folder;
  fs::create_directory(folder.Path("t.bin"));
  int exit_code = kExitDone;

  const auto counts = TokenizeBytes({.texts = {folder.Write("a", "abc")}, .out = folder.Path("t.bin")}, exit_code);

  CHECK_FALSE(counts.ok());
  CHECK(exit_code != kExitDone);
  CHECK(folder.Entries() == 2);
}

}  // namespace
}  // namespace lockstep::cli
