#include "deploy/cli/launcher.h"

#include <catch2/catch.hpp>
#include <map>

namespace lockstep::cli {
namespace {

using Catch::Contains;
using Variables = std::map<std::string, std::string>;

absl::StatusOr<std::optional<LaunchedTask>> Read(const Variables& variables) {
  return ThisLaunchedTask([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST_CASE("launcher: without its variables nothing is assumed") {
  CHECK_FALSE(Read({})->has_value());
  CHECK_FALSE(Read({{"RANK", "1"}})->has_value());
  CHECK_FALSE(Read({{"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}})->has_value());
}

TEST_CASE("launcher: TF_CONFIG names the chief and the task") {
  const auto task = **Read({{"TF_CONFIG",
                             R"({"cluster": {"chief": ["job-chief-0:2222"], "worker": ["job-worker-0:2222"]},
                                 "task": {"type": "worker", "index": 3}, "environment": "cloud"})"}});
  CHECK(task.by == "TF_CONFIG");
  CHECK(task.chief == "job-chief-0:2222");
  CHECK(task.name == "worker-3");
  CHECK_FALSE(task.local_rank.has_value());
}

TEST_CASE("launcher: a TF_CONFIG without a chief names only the task") {
  const auto task =
      **Read({{"TF_CONFIG", R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}})"}});
  CHECK(task.chief.empty());
  CHECK(task.name == "worker-0");
}

TEST_CASE("launcher: what is no TF_CONFIG is refused") {
  for (const char* text :
       {"{", "[]", "{}", R"({"task": "worker"})", R"({"task": {"type": 1}})",
        R"({"task": {"type": "worker", "index": "x"}})", R"({"task": {"type": "worker", "index": -1}})"}) {
    CAPTURE(text);
    CHECK_THAT(std::string(Read({{"TF_CONFIG", text}}).status().message()), Contains("TF_CONFIG"));
  }
}

TEST_CASE("launcher: RANK and MASTER_ADDR name the worker and the chief") {
  const auto task =
      **Read({{"RANK", "5"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "job-master-0"}, {"MASTER_PORT", "23456"}});
  CHECK(task.chief == "job-master-0:23456");
  CHECK(task.name == "worker-5");
  CHECK(task.local_rank == 1);
}

TEST_CASE("launcher: where torchrun itself listens is no chief") {
  const auto task = **Read({{"RANK", "5"},
                            {"LOCAL_RANK", "1"},
                            {"MASTER_ADDR", "a"},
                            {"MASTER_PORT", "29500"},
                            {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  CHECK(task.chief.empty());
  CHECK(task.name == "worker-5");
}

TEST_CASE("launcher: a rank that is no number is refused") {
  CHECK_THAT(std::string(Read({{"RANK", "x"}, {"MASTER_ADDR", "a"}}).status().message()), Contains("RANK='x'"));
  CHECK_THAT(std::string(Read({{"RANK", "1"}, {"LOCAL_RANK", "-1"}, {"MASTER_ADDR", "a"}}).status().message()),
             Contains("LOCAL_RANK='-1'"));
}

}  // namespace
}  // namespace lockstep::cli
