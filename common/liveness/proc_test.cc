#include "common/liveness/proc.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <new>

#include "absl/strings/str_cat.h"

namespace lockstep::liveness {
namespace {

TEST_CASE("proc: the name of a thread may hold any character", "[liveness]") {
  ThreadState state;
  ParseStat("4711 (a) (b c) D 1 4711 4711 0 -1", state);
  CHECK(state.name == "a) (b c");
  CHECK(state.state == 'D');

  for (const absl::string_view damaged : {"", "4711", "4711 (a", "4711 a) S", ")(", "4711 (a)"}) {
    CAPTURE(std::string(damaged));
    ThreadState unchanged;
    ParseStat(damaged, unchanged);
    CHECK(unchanged.state == '?');
    CHECK(unchanged.name.empty());
  }
}

TEST_CASE("proc: a system call is named, and none is none", "[liveness]") {
  CHECK(ParseSystemCall(absl::StrCat(SYS_fsync, " 0x5 0x0 0x7ffd 0x0")) == "fsync");
  CHECK(ParseSystemCall(absl::StrCat(SYS_futex, " 0x5")) == "futex");
  CHECK(ParseSystemCall("400000 0x5") == "number 400000");
  CHECK(ParseSystemCall("running\n").empty());
  CHECK(ParseSystemCall("-1 0x7ffd 0x0").empty());
  CHECK(ParseSystemCall("").empty());
}

TEST_CASE("proc: a field of the status is found by its whole name", "[liveness]") {
  const absl::string_view text = "Name:\tx\nTracerPidOther:\t5\nTracerPid:\t12\nSigBlk:\t0000000000000004\n";
  CHECK(ParseStatusField(text, "TracerPid") == "12");
  CHECK(ParseStatusField(text, "SigBlk") == "0000000000000004");
  CHECK(ParseStatusField(text, "Tracer").empty());
  CHECK(ParseStatusField("", "TracerPid").empty());
}

TEST_CASE("proc: this process is found, one that is gone is not", "[liveness]") {
  CHECK_FALSE(ThreadsOf(getpid()).empty());
  CHECK(StateOfProcess(getpid()).ok());
  CHECK(StateOfThread(getpid(), getpid()).state == 'R');

  CHECK(ThreadsOf(-1).empty());
  CHECK(absl::IsNotFound(StateOfProcess(-1).status()));
  CHECK(absl::IsNotFound(PageView::Of(getpid()).status()));  // it has made no page
}

TEST_CASE("proc: a page that its owner could cut off under the reader is none", "[liveness]") {
  const int fd = memfd_create(kPageName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(fd >= 0);
  REQUIRE(ftruncate(fd, sizeof(Page)) == 0);
  void* const memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  REQUIRE(memory != MAP_FAILED);
  Page* const page = new (memory) Page;
  page->pid = getpid();
  page->magic = kPageMagic;

  CHECK(absl::IsNotFound(PageView::Of(getpid()).status()));

  REQUIRE(fcntl(fd, F_ADD_SEALS, kPageSeals) == 0);
  CHECK(PageView::Of(getpid()).ok());
  munmap(memory, sizeof(Page));
  close(fd);
}

}  // namespace
}  // namespace lockstep::liveness
