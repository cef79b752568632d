#include "chief/watch/page/page_files.h"

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "catch2/catch.hpp"

namespace lockstep::chief {
namespace {

TEST_CASE("page files: the empty path is the page, an unknown one is nothing", "[page]") {
  REQUIRE(FindPageFile("") != nullptr);
  CHECK(FindPageFile("")->path == "index.html");
  CHECK(FindPageFile("")->content_type == "text/html; charset=utf-8");
  CHECK(FindPageFile("index.htm") == nullptr);
  CHECK(FindPageFile("/index.html") == nullptr);
}

TEST_CASE("page files: a file is held byte by byte", "[page]") {
  std::ifstream in("chief/watch/page/index.html", std::ios::binary);
  REQUIRE(in);
  const std::string expected(std::istreambuf_iterator<char>(in), {});

  CHECK(FindPageFile("index.html")->content == expected);
}

TEST_CASE("page files: everything that the page refers to is there", "[page]") {
  const absl::string_view page = FindPageFile("")->content;

  for (const PageFile& file : PageFiles()) {
    if (!absl::EndsWith(file.path, ".css")) continue;
    INFO(file.path);
    CHECK(absl::StrContains(page, absl::StrCat("href=\"", file.path, "\"")));
  }
  for (const absl::string_view path : {"dygraph.min.js", "page.js", "licenses.txt"}) {
    INFO(path);
    REQUIRE(FindPageFile(path) != nullptr);
    CHECK(absl::StrContains(page, absl::StrCat("\"", path, "\"")));
    CHECK_FALSE(FindPageFile(path)->content.empty());
  }
}

TEST_CASE("page files: fingerprints tell files apart, and paths are sorted", "[page]") {
  const absl::Span<const PageFile> files = PageFiles();
  for (size_t i = 1; i < files.size(); ++i) {
    CHECK(files[i - 1].path < files[i].path);
    CHECK(files[i - 1].fingerprint != files[i].fingerprint);
  }
  CHECK(files[0].fingerprint.size() == 16);
}

TEST_CASE("page files: the licence of the charting library goes with it", "[page]") {
  CHECK(absl::StrContains(FindPageFile("licenses.txt")->content, "MIT"));
}

}  // namespace
}  // namespace lockstep::chief
