#include "tests/simulation/job_store/storage_thread.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep::simulation {
namespace {

TEST_CASE("storage thread: of the call and its driver one runs at a time, in the order of the turns", "[simulation]") {
  StorageThread thread;
  std::string told;

  bool ended = thread.Begin([&] {
    told += "a";
    thread.Stop();
    told += "c";
    thread.Stop();
    told += "e";
  });
  CHECK_FALSE(ended);
  CHECK(thread.under_way());
  told += "b";
  ended = thread.Resume();
  CHECK_FALSE(ended);
  told += "d";
  ended = thread.Resume();

  CHECK(ended);
  CHECK_FALSE(thread.under_way());
  CHECK(told == "abcde");
}

TEST_CASE("storage thread: it takes one call after the other", "[simulation]") {
  StorageThread thread;
  int calls = 0;

  CHECK(thread.Begin([&] { ++calls; }));
  CHECK(thread.Begin([&] { ++calls; }));

  CHECK(calls == 2);
}

}  // namespace
}  // namespace lockstep::simulation
