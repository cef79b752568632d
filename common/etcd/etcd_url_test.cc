#include "common/etcd/etcd_url.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

TEST_CASE("etcd url: endpoints of one cluster, and the prefix of a job", "[etcd]") {
  CHECK(ParseEtcdUrl("http://10.0.0.1:2379/mnist").value() == EtcdUrl{false, {"10.0.0.1:2379"}, "mnist"});
  CHECK(ParseEtcdUrl("https://a:1,[::1]:2/jobs/mnist/").value() == EtcdUrl{true, {"a:1", "[::1]:2"}, "jobs/mnist"});
}

TEST_CASE("etcd url: what is wrong is said, with an example", "[etcd]") {
  const auto [text, why] = GENERATE(table<std::string, std::string>({
      {"etcd://a:1/x", "neither http:// nor https://"},
      {"http://a:1", "no prefix"},
      {"http://a:1/", "no prefix"},
      {"http://a/x", "has no port"},
      {"http://a:0/x", "port 0"},
      {"http://a:1,/x", "has no port"},
      {"http://a:1//x", "an empty part"},
      {"http://a:1/x y", "not allowed"},
  }));
  const auto url = ParseEtcdUrl(text);
  REQUIRE(absl::IsInvalidArgument(url.status()));
  CHECK_THAT(std::string(url.status().message()), Catch::Contains(why) && Catch::Contains("https://etcd.example"));
}

}  // namespace
}  // namespace lockstep
