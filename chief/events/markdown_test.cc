#include "chief/events/markdown.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep::chief {
namespace {

TEST_CASE("markdown: plain words stay as they are", "[events]") {
  CHECK(MarkdownLine("worker-1: left on notice (40 s), step 7.") == "worker-1: left on notice (40 s), step 7.");
}

TEST_CASE("markdown: whatever a text has, it is one line and one cell", "[events]") {
  CHECK(MarkdownLine("a\nb\r\n\tc\x7f") == "a b   c ");
  CHECK(MarkdownLine("a | b") == "a &#124; b");
  CHECK(MarkdownLine("<img src=x> & `code` *b* _c_ [d](e) # \\") ==
        "&lt;img src=x&gt; &amp; \\`code\\` \\*b\\* \\_c\\_ \\[d](e) \\# \\\\");
}

TEST_CASE("markdown: a long text is cut, between two characters", "[events]") {
  const std::string whole(kMostMarkdownBytes, 'a');
  CHECK(MarkdownLine(whole) == whole);
  CHECK(MarkdownLine(whole + "b") == whole + "...");
  CHECK(MarkdownLine(std::string(32u << 20, 'a')) == whole + "...");
  const std::string before(kMostMarkdownBytes - 1, 'a');
  CHECK(MarkdownLine(before + "\xc3\xa9" + "b") == before + "...");
  CHECK(MarkdownLine(std::string(1000, '\x80')).size() <= kMostMarkdownBytes + 3);  // not UTF-8
}

TEST_CASE("markdown: a text of several lines is a block of code, cut between characters", "[events]") {
  CHECK(MarkdownBlock("# no title\n```\n*x*", 100) == "    # no title\n    ```\n    *x*");
  CHECK(MarkdownBlock("a\rb\tc\x01", 100) == "    a b\tc ");
  CHECK(MarkdownBlock("abc\xC3\xA4", 4) == "    abc...");
  CHECK(MarkdownBlock("", 4) == "    ");
  CHECK(MarkdownBlock("a\xFFz", 100) == "    a\xEF\xBF\xBDz");
}

}  // namespace
}  // namespace lockstep::chief
