#include "common/job/reference.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "common/job/job.h"

namespace lockstep {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  INFO(path);
  REQUIRE(file.good());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_CASE("reference: docs/job_file.md says what the proto says", "[job]") {
  const std::string page = ReadFile("docs/job_file.md");

  const std::string made = WithJobFileReference(page);

  REQUIRE_FALSE(made.empty());
  INFO("make it anew: bazel run //common/job:reference -- $PWD/docs/job_file.md > /tmp/new.md");
  CHECK(page == made);
  CHECK_THAT(made, Catch::Contains("| `lr` | number ≥ 0, ≤ 1000000 | **required** |"));
}

TEST_CASE("reference: the example of docs/job_file.md is a job", "[job]") {
  const std::string page = ReadFile("docs/job_file.md");
  const size_t begin = page.find("```yaml\n") + 8;
  const std::string example = page.substr(begin, page.find("```", begin) - begin);

  const auto spec = ParseJob(example, "/jobs/job.yaml");

  INFO(spec.status());
  CHECK(spec.ok());
}

TEST_CASE("reference: the jobs that are shipped are jobs", "[job]") {
  for (const char* name : {"fashion_mnist.yaml", "fashion_mnist_short.yaml", "gpt_text.yaml", "text.yaml"}) {
    const auto spec = LoadJob(std::string("deploy/jobs/") + name);
    INFO(spec.status());
    CHECK(spec.ok());
  }
}

}  // namespace
}  // namespace lockstep
