#include "deploy/cli/top_view.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "chief/watch/present_job.h"
#include "common/log/escape.h"
#include "deploy/cli/columns.h"

namespace lockstep::cli {
namespace {

constexpr char kPlain[] = "\x1b[0m";
constexpr char kInverse[] = "\x1b[7m";
constexpr char kDim[] = "\x1b[2m";
constexpr char kYellow[] = "\x1b[33m";
constexpr char kRed[] = "\x1b[1;31m";
// Narrower screens have no room for hosts.
constexpr size_t kHostsFrom = 96;
constexpr size_t kLongestName = 24;
// Others wait a little in any job.
constexpr double kWorthTelling = 0.05;

double OwnMs(const proto::WorkerStatus& worker) { return worker.compute_ms() + worker.data_ms(); }

bool Steps(const proto::WorkerStatus& worker) { return worker.rank() >= 0 && worker.step_ms() > 0; }

// By digits as numbers, so that worker-2 is before worker-10.
bool NameBefore(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    const auto digits = [](const std::string& text, size_t at) {
      size_t end = at;
      while (end < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[end]))) ++end;
      return text.substr(at, end - at);
    };
    const std::string first = digits(a, i), second = digits(b, j);
    if (!first.empty() && !second.empty()) {
      if (first.size() != second.size()) return first.size() < second.size();
      if (first != second) return first < second;
      i += first.size(), j += second.size();
      continue;
    }
    if (a[i] != b[j]) return a[i] < b[j];
    ++i, ++j;
  }
  return a.size() - i < b.size() - j;
}

// The workers as the chief tells of them, or else as its last statistics do.
std::vector<proto::WorkerStatus> WorkersOf(const JobState& state) {
  std::vector<proto::WorkerStatus> workers(state.status.workers().begin(), state.status.workers().end());
  if (state.answered || !state.stats.has_value()) return workers;
  for (const WorkerStats& stats : state.stats->workers()) {
    proto::WorkerStatus& worker = workers.emplace_back();
    worker.set_name(stats.worker());
    worker.set_host(stats.host());
    const bool there = stats.connected() && !HasEnded(state);  // a chief that was killed said nothing of its end
    worker.set_state(there ? "joined" : "gone");
    worker.set_rank(-1);
    const double steps = std::max(1.0, static_cast<double>(stats.steps()));
    worker.set_step_ms(1000 * stats.step_seconds() / steps);
    worker.set_compute_ms(1000 * stats.compute_seconds() / steps);
    worker.set_all_reduce_ms(1000 * stats.all_reduce_seconds() / steps);
    worker.set_data_ms(1000 * stats.data_seconds() / steps);
    worker.set_samples_per_second(there ? stats.samples_per_second() : 0);
    worker.set_slowdown(stats.slowdown());
    worker.set_straggler(stats.straggler());
    worker.set_losses(stats.losses());
    worker.set_crashes(stats.crashes());
  }
  return workers;
}

void Sort(TopOrder order, std::vector<proto::WorkerStatus>& workers) {
  const auto key = [order](const proto::WorkerStatus& worker) {
    return order == TopOrder::kOwnTime ? OwnMs(worker) : order == TopOrder::kWaiting ? worker.all_reduce_ms() : 0;
  };
  std::stable_sort(workers.begin(), workers.end(), [&](const auto& a, const auto& b) {
    // Lines of hosts are no workers.
    if (a.name().empty() != b.name().empty()) return b.name().empty();
    if (key(a) != key(b)) return key(a) > key(b);
    return NameBefore(a.name(), b.name());
  });
}

std::string Ms(double ms) {
  if (ms <= 0) return "-";
  return absl::StrFormat(ms < 10 ? "%.2f" : ms < 1000 ? "%.1f" : "%.0f", ms);
}

std::string Fit(const std::string& text, size_t columns) {
  const std::string cut = CutToColumns(text, columns);
  return absl::StrCat(cut, std::string(columns - std::min(columns, ColumnsOf(cut)), ' '));
}

// Widths of the two columns whose content nobody can foresee.
struct Widths {
  size_t name = 6;
  size_t host = 0;  // 0: no such column
};

Widths WidthsOf(const std::vector<proto::WorkerStatus>& workers, size_t columns) {
  Widths widths;
  size_t host = 4;
  for (const proto::WorkerStatus& worker : workers) {
    widths.name = std::max(widths.name, ColumnsOf(EscapeControls(worker.name())));
    host = std::max(host, ColumnsOf(EscapeControls(worker.host())));
  }
  widths.name = std::min(widths.name, kLongestName);
  if (columns >= kHostsFrom) widths.host = std::min(host, kLongestName);
  return widths;
}

std::string HostCell(const Widths& widths, const std::string& host) {
  return widths.host == 0 ? "" : absl::StrCat(Fit(host, widths.host), " ");
}

std::string HeadRow(const Widths& widths) {
  return absl::StrCat(Fit("WORKER", widths.name), " ", HostCell(widths, "HOST"),
                      absl::StrFormat("%-9s %4s %8s %7s %7s %7s %9s %5s %5s", "STATE", "RANK", "STEP", "OWN ms",
                                      "WAIT ms", "DATA ms", "SAMPLES/S", "SLOW", "KILLS"));
}

std::string WorkerRow(const Widths& widths, const proto::WorkerStatus& worker) {
  const std::string name = worker.name().empty() ? "(host)" : EscapeControls(worker.name());
  const std::string rank = worker.rank() >= 0 ? absl::StrCat(worker.rank()) : "-";
  const std::string step = worker.step() > 0 ? absl::StrCat(worker.step()) : "-";
  const std::string rate = worker.samples_per_second() > 0 ? absl::StrFormat("%.0f", worker.samples_per_second()) : "-";
  const std::string slow = worker.slowdown() > 0 ? absl::StrFormat("%.2f", worker.slowdown()) : "-";
  return absl::StrCat(Fit(name, widths.name), " ", HostCell(widths, EscapeControls(worker.host())),
                      absl::StrFormat("%-9s %4s %8s %7s %7s %7s %9s %5s %5d", EscapeControls(worker.state()), rank,
                                      step, Ms(worker.compute_ms()), Ms(worker.all_reduce_ms()), Ms(worker.data_ms()),
                                      rate, slow, worker.losses() + worker.crashes()));
}

const char* ColourOf(const proto::WorkerStatus& worker) {
  if (worker.state() == chief::kExcludedHost) return kRed;
  if (worker.straggler()) return kYellow;
  return worker.rank() >= 0 ? "" : kDim;
}

const char* ColourOfPhase(const std::string& phase) {
  if (phase == "RUNNING" || phase == "DONE") return "\x1b[32m";
  return phase == "FAILED" || phase == "UNREACHABLE" ? kRed : kYellow;
}

std::string JobRow(const JobState& state) {
  const proto::StatusReply& status = state.status;
  const bool bounded = status.end_step() > 0 && status.end_step() != std::numeric_limits<int64_t>::max();
  std::string row = absl::StrCat(EscapeControls(status.job()), "  ", status.phase(), "  step ", status.step());
  if (bounded) {
    absl::StrAppendFormat(
        &row, "/%d  %d%%", status.end_step(),
        static_cast<int>(100.0 * static_cast<double>(status.step()) / static_cast<double>(status.end_step())));
  }
  if (!state.answered) return row;
  if (std::isfinite(status.eta_seconds())) {
    absl::StrAppend(&row, "  ETA ", absl::FormatDuration(absl::Seconds(static_cast<int64_t>(status.eta_seconds()))));
  }
  absl::StrAppendFormat(&row, "  loss %.4g  %.0f samples/s", status.loss(), status.samples_per_second());
  return row;
}

std::string SecondRow(const JobState& state) {
  const proto::StatusReply& status = state.status;
  std::string row = absl::StrCat("saved step ", status.published_step());
  if (status.goodput() > 0) absl::StrAppendFormat(&row, "  goodput %.0f%%", 100 * status.goodput());
  if (!state.answered) return state.reason.empty() ? row : absl::StrCat(row, "  ", EscapeControls(state.reason));
  if (status.generation().term() > 0) {
    absl::StrAppend(&row, "  generation ", status.generation().term(), ".", status.generation().counter());
  }
  absl::StrAppend(&row, "  failures ", status.failures(), "/", status.failures_allowed(), "  losses ", status.losses(),
                  "  preemptions ", status.preemptions());
  if (status.drained_size() > 0) absl::StrAppend(&row, "  drained ", status.drained_size());
  if (!status.storage_trouble().empty()) {
    absl::StrAppend(&row, "  storage: ", EscapeControls(status.storage_trouble()));
  }
  return row;
}

std::string FootRow(const TopSettings& settings, size_t shown, size_t all) {
  std::string row = settings.first == 0 && shown == all
                        ? absl::StrCat(all, all == 1 ? " worker" : " workers")
                        : absl::StrCat("workers ", settings.first + 1, " to ", settings.first + shown, " of ", all);
  const char* const order = settings.order == TopOrder::kName      ? "name"
                            : settings.order == TopOrder::kOwnTime ? "own time"
                                                                   : "waiting";
  absl::StrAppend(&row, ", by ", order);
  if (settings.keys) absl::StrAppend(&row, "   keys: n name, s own time, w waiting, arrows scroll, q quit");
  return row;
}

}  // namespace

std::string WhoWaits(const JobState& state) {
  if (!state.answered) return "";
  if (!state.status.waiting_for().empty()) {
    return absl::StrCat("the job waits for ", EscapeControls(state.status.waiting_for()));
  }
  std::vector<const proto::WorkerStatus*> members;
  for (const proto::WorkerStatus& worker : state.status.workers()) {
    if (Steps(worker)) members.push_back(&worker);
  }
  if (members.empty()) return "nothing is known of this generation's steps yet";
  if (members.size() == 1) return "one member: it waits for nobody";
  std::sort(members.begin(), members.end(), [](const auto* a, const auto* b) { return OwnMs(*a) > OwnMs(*b); });
  const proto::WorkerStatus& slowest = *members.front();
  // Of the others: the one in the middle speaks for them.
  const proto::WorkerStatus& other = *members[1 + (members.size() - 2) / 2];
  const double share = std::min(1.0, (OwnMs(slowest) - OwnMs(other)) / std::max(slowest.step_ms(), OwnMs(slowest)));
  if (share < kWorthTelling) return "no member keeps the others waiting";
  return absl::StrFormat("the others wait for %s: %.0f%% of each step (its own %s ms, theirs %s ms)",
                         EscapeControls(slowest.name()), 100 * share, Ms(OwnMs(slowest)), Ms(OwnMs(other)));
}

std::vector<std::string> TopRows(const JobState& state, TopSettings& settings) {
  std::vector<proto::WorkerStatus> workers = WorkersOf(state);
  Sort(settings.order, workers);
  const Widths widths = WidthsOf(workers, settings.columns);
  std::vector<std::string> rows;
  const auto add = [&](const std::string& text, const std::string& colour = "") {
    const std::string cut = CutToColumns(text, settings.columns);
    rows.push_back(settings.colour && !colour.empty() ? absl::StrCat(colour, cut, kPlain) : cut);
  };
  add(JobRow(state), ColourOfPhase(state.status.phase()));
  add(SecondRow(state));
  if (const std::string waits = WhoWaits(state); !waits.empty()) add(waits);
  add("");
  add(HeadRow(widths), kInverse);

  const size_t room = settings.rows == 0 ? workers.size() : settings.rows - std::min(settings.rows, rows.size() + 1);
  const size_t shown = std::min(workers.size(), room);
  settings.first = std::min(settings.first, workers.size() - shown);
  for (size_t i = settings.first; i < settings.first + shown; ++i) {
    add(WorkerRow(widths, workers[i]), ColourOf(workers[i]));
  }
  add(FootRow(settings, shown, workers.size()), kDim);
  if (settings.rows > 0 && rows.size() > settings.rows) rows.resize(settings.rows);
  return rows;
}

}  // namespace lockstep::cli
