#include "worker/profile/profile_report.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace lockstep::worker {
namespace {

// `key` gives what makes a row of a work: its op, and what stands beside it.
template <typename Key>
ProfileReport MakeReport(const Profiler& profiler, Key key) {
  ProfileReport report;
  report.total_ns = report.rest_ns = profiler.elapsed_ns();
  std::map<std::pair<std::string, std::string>, ProfileRow> rows;
  for (size_t i = 0; i < profiler.works().size(); ++i) {
    const ProfiledWork& work = profiler.works()[i];
    const ProfileTotal total = i < profiler.totals().size() ? profiler.totals()[i] : ProfileTotal{};
    if (total.calls == 0) continue;
    const std::pair<std::string, std::string> place = key(work);
    ProfileRow& row = rows.try_emplace(place, ProfileRow{.op = place.first, .kernel = place.second}).first->second;
    row.calls += total.calls;
    row.ns += total.ns;
    row.operations += total.calls * work.operations;
    row.bytes += total.calls * work.bytes;
    report.rest_ns -= total.ns;
    report.track_ns[static_cast<size_t>(work.track)] += total.ns;
    if (work.product) report.products_ns += total.ns;
  }
  for (auto& [place, row] : rows) report.rows.push_back(std::move(row));
  std::stable_sort(report.rows.begin(), report.rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.ns > b.ns; });
  report.rows.push_back({.op = kRestOp, .kernel = "", .ns = report.rest_ns});
  return report;
}

std::string Rate(const ProfileRow& row) {
  if (row.ns <= 0) return "";
  const double ns = static_cast<double>(row.ns);
  if (row.operations > 0) return absl::StrFormat("%.1f GFLOP/s", static_cast<double>(row.operations) / ns);
  if (row.bytes > 0) return absl::StrFormat("%.1f GB/s", static_cast<double>(row.bytes) / ns);
  return "";
}

double Percent(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

ProfileReport ReportByOp(const Profiler& profiler) {
  return MakeReport(profiler, [](const ProfiledWork& work) { return std::pair(work.op, work.implementation); });
}

ProfileReport ReportByNode(const Profiler& profiler) {
  return MakeReport(profiler, [](const ProfiledWork& work) {
    return std::pair(work.op, absl::StrCat(work.implementation, "  ", work.name, "  ", work.shapes));
  });
}

std::string TableText(const ProfileReport& report, int64_t steps) {
  size_t width = 2;
  for (const ProfileRow& row : report.rows) width = std::max(width, row.op.size());
  const auto line = [&](absl::string_view op, int64_t calls, int64_t ns, absl::string_view rate,
                        absl::string_view kernel) {
    const double ms = static_cast<double>(ns) * 1e-6;
    std::string text = absl::StrFormat("%-*s %9s %11.3f %11.3f %6.1f%% %14s  %s", static_cast<int>(width), op,
                                       calls == 0 ? "" : absl::StrCat(calls), ms, ms / static_cast<double>(steps),
                                       Percent(ns, report.total_ns), rate, kernel);
    text.erase(text.find_last_not_of(' ') + 1);
    return absl::StrCat(text, "\n");
  };
  std::string text = absl::StrFormat("%-*s %9s %11s %11s %7s %14s  %s\n", static_cast<int>(width), "op", "calls",
                                     "total ms", "ms per step", "share", "rate", "kernel");
  for (const ProfileRow& row : report.rows) {
    absl::StrAppend(&text, line(row.op, row.calls, row.ns, Rate(row), row.kernel));
  }
  return absl::StrCat(text, line("total", 0, report.total_ns, "", ""));
}

std::string SharesText(const ProfileReport& report) {
  const auto share = [&](int64_t ns) { return Percent(ns, report.total_ns); };
  const auto of = [&](ProfileTrack track) { return report.track_ns[static_cast<size_t>(track)]; };
  const int64_t kernels = of(ProfileTrack::kForward) + of(ProfileTrack::kBackward);
  return absl::StrFormat(
      "matrix products and convolutions %.1f%%, other kernels %.1f%%, data %.1f%%, reduction %.1f%%, update %.1f%%, "
      "the rest %.1f%%",
      share(report.products_ns), share(kernels - report.products_ns), share(of(ProfileTrack::kData)),
      share(of(ProfileTrack::kReduction)), share(of(ProfileTrack::kUpdate)), share(report.rest_ns));
}

std::string SlowText(const ProfileReport& report) {
  constexpr char kSlow[] = "reference";
  std::vector<std::string> ops;
  int64_t slow = 0;
  int64_t kernels = 0;
  for (const ProfileRow& row : report.rows) {
    if (row.kernel.empty()) continue;
    kernels += row.ns;
    if (row.kernel != kSlow) continue;
    slow += row.ns;
    ops.push_back(absl::StrFormat("%s %.1f%%", row.op, Percent(row.ns, report.total_ns)));
  }
  if (slow == 0 || slow == kernels) return "";
  return absl::StrFormat("on the reference kernels, which are slow, %.1f%%: %s", Percent(slow, report.total_ns),
                         absl::StrJoin(ops, ", "));
}

}  // namespace lockstep::worker
