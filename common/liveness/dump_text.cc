#include "common/liveness/dump_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep::liveness {
namespace {

const std::string& ThreadName(const ThreadFacts& thread) {
  return thread.activity.name.empty() ? thread.state.name : thread.activity.name;
}

absl::Duration LongestOf(const ThreadFacts& thread) {
  return thread.activity.doing.empty() ? -absl::InfiniteDuration() : thread.activity.doing.back().lasts;
}

void SortByStanding(std::vector<ThreadFacts>& threads) {
  std::stable_sort(threads.begin(), threads.end(),
                   [](const ThreadFacts& a, const ThreadFacts& b) { return LongestOf(a) > LongestOf(b); });
}

std::string StateLine(const ThreadState& state) {
  std::string line = StateText(state.state);
  if (!state.waits_in.empty()) absl::StrAppend(&line, ", in ", state.waits_in);
  if (!state.system_call.empty()) absl::StrAppend(&line, ", system call ", state.system_call);
  return line;
}

}  // namespace

std::string FormatDump(DumpFacts facts) {
  SortByStanding(facts.threads);
  std::string text = absl::StrCat("lockstep dump of ", facts.role, ", process ", facts.pid, ", at ", facts.time, ": ",
                                  facts.reason, "\n");
  for (const ThreadFacts& thread : facts.threads) {
    if (thread.activity.doing.empty()) continue;
    absl::StrAppend(&text, ThreadName(thread), " (thread ", thread.state.tid, "): ", DoingText(thread.activity.doing),
                    "\n");
  }
  for (const ThreadFacts& thread : facts.threads) {
    absl::StrAppend(&text, "\nthread ", thread.state.tid, " ", ThreadName(thread), ": ", StateLine(thread.state), "\n");
    if (!thread.activity.doing.empty()) absl::StrAppend(&text, "  ", DoingText(thread.activity.doing), "\n");
    for (size_t i = 0; i < thread.frames.size(); ++i) {
      absl::StrAppend(&text, "  #", i, i < 10 ? "  " : " ", thread.frames[i], "\n");
    }
    if (thread.frames.empty() && !thread.no_stack.empty()) {
      absl::StrAppend(&text, "  no stack: ", thread.no_stack, "\n");
    }
  }
  return text;
}

std::string SummaryOf(const DumpFacts& facts) {
  std::vector<ThreadFacts> threads = facts.threads;
  SortByStanding(threads);
  std::string text;
  for (const ThreadFacts& thread : threads) {
    if (thread.activity.doing.empty()) continue;
    absl::StrAppend(&text, text.empty() ? "" : "; ", ThreadName(thread), ": ", DoingText(thread.activity.doing));
  }
  return text;
}

std::vector<ThreadFacts> FactsWithoutStacks(int pid, const Page& page, const std::string& no_stack) {
  const std::vector<ThreadActivity> activities = ReadActivities(page, MonotonicNs());
  std::vector<ThreadFacts> threads;
  for (const int tid : ThreadsOf(pid)) {
    ThreadFacts& thread = threads.emplace_back();
    thread.state = StateOfThread(pid, tid);
    thread.no_stack = no_stack;
    for (const ThreadActivity& activity : activities) {
      if (activity.tid == tid) thread.activity = activity;
    }
  }
  return threads;
}

}  // namespace lockstep::liveness
