#include "common/liveness/examine.h"

#include <signal.h>
#include <sys/types.h>

#include <fstream>
#include <iterator>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/clock/clock.h"
#include "common/clock/wall_time.h"
#include "common/liveness/dump_text.h"
#include "common/liveness/proc.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

using liveness::Page;

constexpr absl::Duration kLookEvery = absl::Milliseconds(5);
// The one thread that answers requests runs every second.
constexpr absl::Duration kAnswers = absl::Seconds(3);

absl::Duration SilenceOn(const Page& page) {
  return absl::Nanoseconds(liveness::MonotonicNs() - page.beat_ns.load(std::memory_order_relaxed));
}

// Whether the process wrote another dump within `limit`.
bool AskForDump(int pid, const Page& page, absl::Duration limit) {
  const uint32_t before = page.dumps;
  const absl::Time until = SteadyNow() + limit;
  if (kill(pid, SIGQUIT) != 0) return false;
  while (page.dumps == before) {
    if (SteadyNow() >= until) return false;
    absl::SleepFor(kLookEvery);
  }
  return true;
}

}  // namespace

absl::StatusOr<Examination> ExamineProcess(int pid, absl::Duration limit) {
  LS_ASSIGN_OR_RETURN(const liveness::ProcessState state, liveness::StateOfProcess(pid));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<liveness::PageView> view, liveness::PageView::Of(pid));
  const Page& page = view->page();
  Examination examination;
  examination.role = page.role.Get();
  // Without a role it is not ready for the signal yet.
  if (examination.role.empty()) return absl::NotFoundError(absl::StrCat("process ", pid, " is no chief or worker"));
  const bool stopped = state.state == 'T' || state.state == 't';
  const bool runs = !stopped && SilenceOn(page) < kAnswers;
  // Before it is asked: it may end meanwhile.
  liveness::DumpFacts facts;
  facts.role = examination.role;
  facts.pid = pid;
  facts.time = WallTimeText();
  facts.reason = absl::StrCat("from outside, for it ", stopped ? liveness::StateText(state.state) : "does not answer");
  facts.threads = liveness::FactsWithoutStacks(pid, page, "the process cannot be asked");
  examination.doing = liveness::SummaryOf(facts);
  if (runs && AskForDump(pid, page, limit)) {
    examination.path = page.last_dump.Get();
    std::ifstream in(examination.path, std::ios::binary);
    examination.text.assign(std::istreambuf_iterator<char>(in), {});
  }
  if (examination.text.empty()) examination.text = liveness::FormatDump(std::move(facts));
  return examination;
}

absl::StatusOr<absl::Duration> SilenceOf(int pid) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<liveness::PageView> view, liveness::PageView::Of(pid));
  if (view->page().beat_ns == 0) return absl::NotFoundError(absl::StrCat("process ", pid, " does not show it"));
  return SilenceOn(view->page());
}

}  // namespace lockstep
