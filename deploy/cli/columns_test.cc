#include "deploy/cli/columns.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep::cli {
namespace {

TEST_CASE("columns: a row is cut between characters, never within one", "[cli]") {
  CHECK(CutToColumns("worker-0", 6) == "worker");
  CHECK(CutToColumns("worker-0", 8) == "worker-0");
  CHECK(CutToColumns("r\u00e9gion", 2) == "r\u00e9");
  CHECK(CutToColumns("\u6a5f\u68b0", 3) == "\u6a5f");
  CHECK(CutToColumns("\U0001f680!", 1).empty());
  CHECK(CutToColumns("e\u0301x", 1) == "e\u0301");
  CHECK(CutToColumns("a", 0).empty());
}

TEST_CASE("columns: wide characters take two, marks none, and broken bytes one", "[cli]") {
  CHECK(ColumnsOf("") == 0);
  CHECK(ColumnsOf("r\u00e9gion") == 6);
  CHECK(ColumnsOf("\u6a5f\u68b0") == 4);
  CHECK(ColumnsOf("\U0001f680") == 2);
  CHECK(ColumnsOf("e\u0301") == 1);
  CHECK(ColumnsOf("\t") == 8);
  CHECK(ColumnsOf("\xc3") == 1);
  CHECK(ColumnsOf("\xe6\xa9-") == 3);
  CHECK(ColumnsOf("\xff\x80") == 2);
}

}  // namespace
}  // namespace lockstep::cli
