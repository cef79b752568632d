#include "worker/account/account_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep::worker {
namespace {

constexpr size_t kNodes = 10;
constexpr auto kPeak = static_cast<size_t>(Level::kPeak);
constexpr auto kReachable = static_cast<size_t>(Level::kReachable);
constexpr auto kToday = static_cast<size_t>(Level::kToday);

std::string Line(const AccountRow& row, int width, double total) {
  const bool counts = row.calls > 0;
  const double giga = static_cast<double>(row.operations) * 1e-9;
  std::string text = absl::StrFormat("%-*s %6s %8s %9s %9s %-13s %8.3f %9.3f %8.3f %6.1f%%  %s", width, row.op,
                                     counts ? absl::StrCat(row.calls) : "", counts ? absl::StrCat(row.launches) : "",
                                     counts ? absl::StrFormat("%.3f", static_cast<double>(row.bytes) * 1e-9) : "",
                                     row.operations > 0 ? absl::StrFormat("%.1f", giga) : "",
                                     counts ? BoundName(row.bound) : "", row.ms[kPeak], row.ms[kReachable],
                                     row.ms[kToday], total > 0 ? 100 * row.ms[kToday] / total : 0, row.kernel);
  text.erase(text.find_last_not_of(' ') + 1);
  return absl::StrCat(text, "\n");
}

std::string RowsText(const std::vector<AccountRow>& rows, size_t most, double total) {
  size_t width = 2;
  for (size_t i = 0; i < std::min(most, rows.size()); ++i) width = std::max(width, rows[i].op.size());
  std::string text =
      absl::StrFormat("%-*s %6s %8s %9s %9s %-13s %8s %9s %8s %7s  %s\n", static_cast<int>(width), "op", "calls",
                      "launches", "GB", "GFLOP", "bound by", "ms: peak", "reachable", "today", "share", "kernel");
  for (size_t i = 0; i < std::min(most, rows.size()); ++i) {
    absl::StrAppend(&text, Line(rows[i], static_cast<int>(width), total));
  }
  return text;
}

std::string Head(const WrittenStep& step, const Machine& machine) {
  return absl::StrFormat(
      "account of a step on %s, by what a worker would queue: nothing was measured here\n"
      "%d samples on %d worker%s, %d trained values, a state of %.1f MB, %d bucket%s of gradients\n\n",
      machine.title, step.samples, step.workers, step.workers == 1 ? "" : "s", step.parameters,
      static_cast<double>(step.state_bytes) * 1e-6, step.buckets, step.buckets == 1 ? "" : "s");
}

// "17.50 ms a step, 468114 tokens/s, 457.1 samples/s, MFU 37.2%"
std::string Speed(const WrittenStep& step, const Machine& machine, const Account& account, size_t level) {
  const double seconds = account.total[level] * 1e-3;
  if (seconds <= 0) return "nothing is computed";
  std::string text = absl::StrFormat("%.3f ms a step, ", account.total[level]);
  const double samples = static_cast<double>(step.samples) / seconds;
  if (step.positions_per_sample > 0) {
    absl::StrAppendFormat(&text, "%.0f tokens/s, ", samples * static_cast<double>(step.positions_per_sample));
  }
  absl::StrAppendFormat(
      &text, "%.1f samples/s, MFU %.1f%%", samples,
      100 * static_cast<double>(account.model_operations) / (seconds * machine.operations_per_second(account.units)));
  return text;
}

std::string Communication(const WrittenStep& step, const Machine& machine, const Account& account) {
  if (step.workers < 2) return "communication: none, of one worker\n";
  return absl::StrFormat(
      "communication: %d bucket%s, %.1f MB leave a rank, over %s of %.0f GB/s each way; peak %.3f ms, reachable %.3f, "
      "today %.3f, of which %.3f, %.3f and %.3f are exposed; the first bucket is complete at %.0f%% of the passes\n",
      account.reductions, account.reductions == 1 ? "" : "s", static_cast<double>(account.reduced_bytes) * 1e-6,
      step.workers <= kGpusOfNode ? "links" : "a network",
      step.workers <= kGpusOfNode ? machine.link_gbs : machine.network_gbs, account.communication[kPeak],
      account.communication[kReachable], account.communication[kToday], account.exposed[kPeak],
      account.exposed[kReachable], account.exposed[kToday],
      account.gate_ms > 0 ? 100 * account.first_bucket_ms / account.gate_ms : 0);
}

// "of the units 68.0% reachable, 53.0% today"
std::string Shares(const char* of, double reachable, double today) {
  return absl::StrFormat("of %s %.1f%% reachable, %.1f%% today", of, 100 * reachable, 100 * today);
}

std::string Assumptions(const WrittenStep& step, const Machine& machine, const Account& account) {
  std::string text = absl::StrFormat(
      "assumptions\n"
      "  the machine: %.0f TFLOP/s of bf16 and %.0f of fp16, %.0f of tf32, %.1f of float32, dense; memory %.0f GB/s,\n"
      "    L2 %.0f MB, %d multiprocessors, bus %.0f GB/s (%s)\n"
      "  every kernel reads each input and writes each output once, from and to memory, scratch both ways: nothing is\n"
      "    found in L2. A kernel takes what the slower takes, its bytes or its operations\n"
      "  libraries serve what they are asked for, by one kernel a call; which engines they have is not known here\n",
      machine.bf16_tflops, machine.fp16_tflops, machine.tf32_tflops, machine.fp32_tflops, machine.memory_gbs,
      machine.l2_mb, machine.multiprocessors, machine.bus_gbs, machine.source);
  for (const Rate rate : account.rates) {
    const RateFacts& facts = FactsOf(rate);
    absl::StrAppend(&text, "  ", facts.name, ": ");
    if (facts.reachable_operations > 0) {
      absl::StrAppend(&text, Shares("the units", facts.reachable_operations, facts.today_operations), ", ");
    }
    absl::StrAppend(
        &text, Shares(rate == Rate::kHostCopy ? "the bus" : "the memory", facts.reachable_bytes, facts.today_bytes),
        " (", facts.source, ")\n");
  }
  const Overheads today = OverheadsAt(Level::kToday);
  absl::StrAppendFormat(
      &text,
      "  a rate under half of the memory's waits for instructions: it grows with the float32 units, not with memory\n"
      "  a kernel of a graph begins %.0f us after the one before it, one that is queued by itself %.0f us (assumed)\n"
      "  the host takes %.0f us to queue a kernel or a graph, and %.0f us at the gate before the update (assumed)\n",
      today.in_graph_us, today.launch_us, today.call_us, today.gate_us);
  if (step.workers > 1) {
    absl::StrAppendFormat(
        &text,
        "  NCCL takes %.0f us a call and reaches %.0f%% of a link, takes nothing from kernels that run "
        "beside it, and\n    up to %d GPUs are one node (assumed)\n",
        today.collective_us, 100 * today.links, kGpusOfNode);
  }
  absl::StrAppend(
      &text,
      "  at the peak nothing of this is lost. MFU: three times the forward products' operations, once each,\n"
      "    what a causal mask hides left out\n");
  return text;
}

}  // namespace

std::string AccountText(const WrittenStep& step, const Machine& machine, const Account& account) {
  std::string text = Head(step, machine);
  const double total = account.total[kToday];
  absl::StrAppend(&text, RowsText(account.rows, account.rows.size(), total));
  AccountRow sum{.op = "total", .kernel = "", .ms = account.total};
  absl::StrAppend(&text, Line(sum, 0, total), "\nthe nodes that cost most\n", RowsText(account.nodes, kNodes, total),
                  "\n");
  absl::StrAppend(&text, "at the peak:   ", Speed(step, machine, account, kPeak), "\n");
  absl::StrAppend(&text, "reachable:     ", Speed(step, machine, account, kReachable), "\n");
  absl::StrAppend(&text, "as of today:   ", Speed(step, machine, account, kToday), "\n");
  if (account.off_rows[kToday] > 0) {
    absl::StrAppendFormat(
        &text, "products whose rows begin off 16 bytes: %.2f ms reachable, %.2f today; in padded rows %.2f and %.2f\n",
        account.off_rows[kReachable], account.off_rows[kToday], account.off_rows_padded[kReachable],
        account.off_rows_padded[kToday]);
  }
  absl::StrAppend(&text, Communication(step, machine, account));
  absl::StrAppendFormat(&text,
                        "beside the kernels: the host queues for %.2f ms, inputs come over the bus for %.2f ms\n\n",
                        account.host[kToday], account.inputs[kToday]);
  return absl::StrCat(text, Assumptions(step, machine, account));
}

}  // namespace lockstep::worker
