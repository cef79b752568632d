#include "chief/hooks/hook_message.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

namespace lockstep::chief {
namespace {

TEST_CASE("hook message: a command reads one line of JSON with how the job stands", "[hooks]") {
  HookFacts facts{.now = absl::FromUnixMillis(1234567),
                  .job = "mnist",
                  .directory = "/runs/mnist",
                  .agreed_step = 105,
                  .loss = 0.25,
                  .evaluation_step = 100,
                  .evaluation = {{"accuracy", 0.5}, {"loss", std::nan("")}},
                  .checkpoint = "/runs/mnist/checkpoints/step_100",
                  .checkpoint_step = 100};

  const std::string line = HookMessage("tell", "step", 104, facts);

  CHECK(line.back() == '\n');
  CHECK(line.find('\n') == line.size() - 1);
  const auto json = nlohmann::json::parse(line);
  CHECK(json["job"] == "mnist");
  CHECK(json["hook"] == "tell");
  CHECK(json["event"] == "step");
  CHECK(json["step"] == 104);
  CHECK(json["time_ms"] == 1234567);
  CHECK(json["agreed_step"] == 105);
  CHECK(json["loss"] == 0.25);
  CHECK(json["evaluation"]["step"] == 100);
  CHECK(json["evaluation"]["values"]["accuracy"] == 0.5);
  CHECK(json["evaluation"]["values"]["loss"].is_null());
  CHECK(json["checkpoint"]["path"] == "/runs/mnist/checkpoints/step_100");
  CHECK_FALSE(json.contains("exit_code"));

  facts.exit_code = 65;
  facts.reason = "the gradient of 'w' is not finite \xff";
  facts.evaluation_step = 0;
  const auto end = nlohmann::json::parse(HookMessage("tell", "end", 105, facts));
  CHECK(end["exit_code"] == 65);
  CHECK(end["reason"].get<std::string>().find("not finite") != std::string::npos);
  CHECK_FALSE(end.contains("evaluation"));
}

}  // namespace
}  // namespace lockstep::chief
