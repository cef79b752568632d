#include "common/liveness/dump_text.h"

#include <catch2/catch.hpp>

namespace lockstep::liveness {
namespace {

DumpFacts Example() {
  DumpFacts facts{.role = "worker-1", .pid = 4711, .time = "2026-01-02T03:04:05Z", .reason = "it was asked to"};
  ThreadFacts idle;
  idle.state = {.tid = 4711, .name = "lockstep", .state = 'S', .waits_in = "futex_wait_queue", .system_call = "futex"};
  idle.frames = {"pthread_cond_wait libc.so.6+0x1", "main lockstep+0x2"};
  ThreadFacts disk;
  disk.state = {.tid = 4713, .name = "storage", .state = 'D', .waits_in = "nfs_wait", .system_call = "fsync"};
  disk.activity = {.tid = 4713, .name = "storage", .doing = {{"fsync of a/b", absl::Seconds(3)}}};
  disk.no_stack = "it did not answer";
  ThreadFacts engine;
  engine.state = {.tid = 4712, .name = "engine", .state = 'R', .waits_in = "", .system_call = ""};
  engine.activity = {
      .tid = 4712, .name = "engine", .doing = {{"step 120", absl::Seconds(95)}, {"node 'fc1'", absl::Seconds(90)}}};
  engine.frames = {"Launch() lockstep+0x3"};
  facts.threads = {idle, disk, engine};
  return facts;
}

TEST_CASE("dump: the threads that stand for longest come first, each with its state and stack", "[liveness]") {
  CHECK(FormatDump(Example()) ==
        "lockstep dump of worker-1, process 4711, at 2026-01-02T03:04:05Z: it was asked to\n"
        "engine (thread 4712): node 'fc1' for 1m30s, in step 120 for 1m35s\n"
        "storage (thread 4713): fsync of a/b for 3s\n"
        "\n"
        "thread 4712 engine: runs\n"
        "  node 'fc1' for 1m30s, in step 120 for 1m35s\n"
        "  #0  Launch() lockstep+0x3\n"
        "\n"
        "thread 4713 storage: sleeps in the kernel, and no signal wakes it, in nfs_wait, system call fsync\n"
        "  fsync of a/b for 3s\n"
        "  no stack: it did not answer\n"
        "\n"
        "thread 4711 lockstep: sleeps, in futex_wait_queue, system call futex\n"
        "  #0  pthread_cond_wait libc.so.6+0x1\n"
        "  #1  main lockstep+0x2\n");
}

TEST_CASE("dump: a summary names what stands, and nothing else", "[liveness]") {
  CHECK(SummaryOf(Example()) == "engine: node 'fc1' for 1m30s, in step 120 for 1m35s; storage: fsync of a/b for 3s");
  CHECK(SummaryOf({}).empty());
}

}  // namespace
}  // namespace lockstep::liveness
