#include "worker/session/data_roots.h"

#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

using Catch::Contains;

std::vector<DataRoot> Roots(const std::vector<std::string>& texts) {
  std::vector<DataRoot> roots;
  for (const std::string& text : texts) roots.push_back(ParseDataRoot(text).value());
  return roots;
}

std::string Moved(const std::vector<std::string>& roots, const std::string& path) {
  JobSpec job;
  job.mutable_data()->mutable_train()->set_inputs(path);
  MoveData(Roots(roots), job);
  CHECK_FALSE(job.data().train().has_labels());
  CHECK_FALSE(job.data().has_eval());
  return job.data().train().inputs();
}

TEST_CASE("data roots: what lies below a folder of the job is read below another") {
  CHECK(Moved({"/home/me/data=/scratch"}, "/home/me/data/train.npy") == "/scratch/train.npy");
  CHECK(Moved({"/home/me/data/=/scratch/"}, "/home/me/data/train.npy") == "/scratch/train.npy");
  CHECK(Moved({"/data/train.npy=/scratch/t.npy"}, "/data/train.npy") == "/scratch/t.npy");
  CHECK(Moved({"/=/mnt"}, "/data/train.npy") == "/mnt/data/train.npy");
  CHECK(Moved({"/data=/"}, "/data/train.npy") == "/train.npy");
}

TEST_CASE("data roots: a name that only begins alike is another folder") {
  CHECK(Moved({"/data=/scratch"}, "/data2/train.npy") == "/data2/train.npy");
  CHECK(Moved({}, "/data/train.npy") == "/data/train.npy");
}

TEST_CASE("data roots: the longest that fits counts, in any order") {
  for (const bool turned : {false, true}) {
    std::vector<std::string> roots = {"/data=/a", "/data/mnist=/b"};
    if (turned) std::swap(roots[0], roots[1]);
    CHECK(Moved(roots, "/data/mnist/x") == "/b/x");
    CHECK(Moved(roots, "/data/x") == "/a/x");
  }
}

TEST_CASE("data roots: all files of both sets are moved") {
  JobSpec job;
  job.mutable_data()->mutable_train()->set_tokens("/data/a");
  job.mutable_data()->mutable_eval()->set_inputs("/data/b");
  job.mutable_data()->mutable_eval()->set_labels("/data/c");
  MoveData(Roots({"/data=/x"}), job);
  CHECK(job.data().train().tokens() == "/x/a");
  CHECK(job.data().eval().inputs() == "/x/b");
  CHECK(job.data().eval().labels() == "/x/c");
}

TEST_CASE("data roots: what is no pair of absolute paths is refused") {
  for (const char* text : {"", "/data", "/data=", "=/data", "data=/x", "/data=x"}) {
    CHECK_THAT(std::string(ParseDataRoot(text).status().message()), Contains("FROM=TO"));
  }
}

}  // namespace
}  // namespace lockstep::worker
