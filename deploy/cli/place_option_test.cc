#include "deploy/cli/place_option.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep::cli {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("place option: a text that can be no place is a mistake of the command line", "[cli]") {
  CLI::App app;
  std::string place;
  AddPlace(app, "--dir", place, "Where");

  for (const char* text : {"gs://bucket/p", "s3://UPPER/x", "s3:///x"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(app.parse(std::string("--dir ") + text), Contains(text) && Contains("s3://"));
  }
  for (const char* text : {"runs/7", "./gs://bucket/p", "s3://models/runs/7"}) {
    CAPTURE(text);
    app.parse(std::string("--dir ") + text);
    CHECK(place == text);
  }
}

}  // namespace
}  // namespace lockstep::cli
