// The text of a dump: one process, what it does, and each of its threads.
//
//   lockstep dump of worker-1, process 4711, at 2026-11-23T18:00:00Z: it was asked to
//   engine (thread 4720): node 'fc1' for 9.1s, in step 120 for 9.3s
//
//   thread 4720 engine: sleeps in futex_wait_queue, system call futex
//     node 'fc1' for 9.1s, in step 120 for 9.3s
//     #0  __lll_lock_wait libc.so.6+0x8a2a0
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_LIVENESS_DUMP_TEXT_H_
#define LOCKSTEP_COMMON_LIVENESS_DUMP_TEXT_H_

#include <string>
#include <vector>

#include "common/liveness/activity.h"
#include "common/liveness/proc.h"

namespace lockstep::liveness {

struct ThreadFacts {
  ThreadState state;
  ThreadActivity activity;
  std::vector<std::string> frames;  // the innermost first
  std::string no_stack;             // why there are no frames
};

struct DumpFacts {
  std::string role;
  int pid = 0;
  std::string time;    // UTC
  std::string reason;  // of the dump
  std::vector<ThreadFacts> threads;
};

// Threads with activities come first, sorted by the age of their activity, oldest first.
std::string FormatDump(DumpFacts facts);

// "engine: node 'fc1' for 9.1s, in step 120 for 9.3s; data: reading samples for 9.2s": in the order of FormatDump,
// without threads that have no activity.
std::string SummaryOf(const DumpFacts& facts);

// The facts about the threads of process `pid`, whose page this is, without stacks. `no_stack`: why there are none.
std::vector<ThreadFacts> FactsWithoutStacks(int pid, const Page& page, const std::string& no_stack);

}  // namespace lockstep::liveness

#endif  // LOCKSTEP_COMMON_LIVENESS_DUMP_TEXT_H_
