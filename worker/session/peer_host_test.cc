#include "worker/session/peer_host.h"

#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"

namespace lockstep::worker {
namespace {

using Catch::Contains;

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

std::string FreshFolder(const std::string& name) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / absl::StrCat(name, "-", getpid());
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path.string();
}

TEST_CASE("peer host: a chief on loopback is reached from loopback, of its own kind") {
  CHECK(AddressTowards("127.0.0.1:29400").value() == "127.0.0.1");
  CHECK(AddressTowards("localhost:29400").value() != "");
}

TEST_CASE("peer host: another address of this machine is reached from itself") {
  CHECK(AddressTowards("127.3.2.1:29400").value() == "127.0.0.1");
}

TEST_CASE("peer host: a name that nobody knows and a place that is none are told apart") {
  const absl::Status unknown = AddressTowards("no-such-host.invalid:1").status();
  CHECK(absl::IsUnavailable(unknown));
  CHECK_THAT(std::string(unknown.message()), Contains("no-such-host.invalid is not known"));
  CHECK(absl::IsInvalidArgument(AddressTowards("127.0.0.1").status()));
}

TEST_CASE("peer host: the chief's address is waited for") {
  const sigset_t signals = Signals();
  ChiefLocation location;
  location.file = absl::StrCat(FreshFolder("peer-host"), "/address");
  std::thread chief([&] { std::ofstream(location.file) << "127.0.0.1:29400\n"; });
  CHECK(AwaitAddressTowards(location, absl::Minutes(5), signals).value() == "127.0.0.1");
  chief.join();
}

TEST_CASE("peer host: waiting ends with what was missing, or with a signal") {
  const sigset_t signals = Signals();
  ChiefLocation location;
  location.file = absl::StrCat(FreshFolder("peer-host-none"), "/address");
  CHECK(absl::IsNotFound(AwaitAddressTowards(location, absl::ZeroDuration(), signals).status()));
  raise(SIGTERM);  // to this thread: others of the program may take one that is for the process
  CHECK(absl::IsCancelled(AwaitAddressTowards(location, absl::Minutes(5), signals).status()));
}

}  // namespace
}  // namespace lockstep::worker
