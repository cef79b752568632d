#include "deploy/cli/notice_options.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace lockstep::cli {
namespace {

worker::NoticeOptions Parsed(std::vector<std::string> words) {
  CLI::App app;
  worker::NoticeOptions notices;
  AddNoticeOptions(app, notices);
  std::reverse(words.begin(), words.end());  // as CLI11 takes a vector
  app.parse(words);
  return notices;
}

TEST_CASE("notice options: what one command line says, the next one says again", "[cli]") {
  const std::vector<std::string> words = {"--notice-file", "/run/going",        "--notice",
                                          "gcp",           "--notice-endpoint", "http://127.0.0.1:80"};

  const worker::NoticeOptions notices = Parsed(words);

  CHECK(notices.file == "/run/going");
  CHECK(notices.cloud == "gcp");
  CHECK(notices.endpoint == "http://127.0.0.1:80");
  CHECK(NoticeWords(notices) == words);
}

TEST_CASE("notice options: without notices there is nothing to say", "[cli]") {
  CHECK(NoticeWords(Parsed({})).empty());
  CHECK(NoticeWords(Parsed({"--notice", "none"})).empty());
}

}  // namespace
}  // namespace lockstep::cli
