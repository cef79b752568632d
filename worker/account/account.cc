#include "worker/account/account.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::worker {
namespace {

constexpr double kMsPerUs = 1e-3;

// Rows by op and what stands beside it, with the time that each bound has of them.
class Rows {
 public:
  // Returns the row, with the work counted.
  void Count(const std::string& op, const std::string& kernel, const Work& work,
             const std::array<Price, kLevels>& prices, bool launch_bound) {
    auto& [row, bounds] = rows_[{op, kernel}];
    row.op = op;
    row.kernel = kernel;
    ++row.calls;
    row.launches += work.launches;
    row.bytes += work.bytes;
    row.operations += work.operations;
    for (size_t level = 0; level < kLevels; ++level) row.ms[level] += prices[level].ms;
    const Price& today = prices[static_cast<size_t>(Level::kToday)];
    bounds[launch_bound ? Bound::kLaunch : today.bound] += today.ms;
  }

  // The longest first.
  std::vector<AccountRow> Sorted() const {
    std::vector<AccountRow> sorted;
    for (const auto& [key, counted] : rows_) {
      sorted.push_back(counted.first);
      sorted.back().bound = std::max_element(counted.second.begin(), counted.second.end(), [](auto& a, auto& b) {
                              return a.second < b.second;
                            })->first;
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const AccountRow& a, const AccountRow& b) {
      return a.ms[static_cast<size_t>(Level::kToday)] > b.ms[static_cast<size_t>(Level::kToday)];
    });
    return sorted;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::pair<AccountRow, std::map<Bound, double>>> rows_;
};

// The compute stream at one level.
struct Timeline {
  Overheads overheads;
  double now = 0;
  double reduced = 0;  // when the communicator's stream has done what it was given
  double between = 0;
  double gates = 0;
};

class Accountant {
 public:
  Accountant(const WrittenStep& step, const Machine& machine) : step_(step), machine_(machine) {
    for (size_t level = 0; level < kLevels; ++level) lines_[level].overheads = OverheadsAt(static_cast<Level>(level));
  }

  Account Make() {
    for (const TapeEntry& entry : step_.entries) Take(entry);
    const Work inputs{.rate = Rate::kHostCopy, .bytes = step_.input_bytes};
    account_.rates.insert(inputs.rate);
    account_.rows = kinds_.Sorted();
    account_.nodes = nodes_.Sorted();
    LevelMs between{}, gates{}, late{};
    for (size_t level = 0; level < kLevels; ++level) {
      const Timeline& line = lines_[level];
      between[level] = line.between;
      gates[level] = line.gates;
      account_.host[level] = static_cast<double>(host_calls_) * line.overheads.call_us * kMsPerUs;
      account_.inputs[level] = PriceOf(inputs, machine_, static_cast<Level>(level)).ms;
      // Queueing and copies of inputs go on beside the kernels; what takes longer than these is waited for.
      late[level] = std::max({0.0, account_.host[level] - line.now, account_.inputs[level] - line.now});
      account_.total[level] = line.now + late[level];
    }
    AddRow("(between kernels)", between);
    AddRow("(gate)", gates);
    AddRow("(exposed communication)", account_.exposed);
    AddRow("(wait for the host)", late);
    account_.model_operations *= 3;
    for (const auto& [units, operations] : operations_) {
      if (operations > operations_[account_.units]) account_.units = units;
    }
    return std::move(account_);
  }

 private:
  void AddRow(const char* op, const LevelMs& ms) {
    if (*std::max_element(ms.begin(), ms.end()) > 0) account_.rows.push_back({.op = op, .kernel = "", .ms = ms});
  }

  void Take(const TapeEntry& entry) {
    switch (entry.kind) {
      case TapeEntry::Kind::kWork:
        // In other streams go the copies of inputs, which the step's bytes say; how far ahead depends on their reader.
        if (entry.stream != step_.compute_stream) break;
        if (!entry.recorded) host_calls_ += WorkOf(entry).launches;
        TakeWork(WorkOf(entry), entry);
        break;
      case TapeEntry::Kind::kReplay:
        ++host_calls_;
        break;
      case TapeEntry::Kind::kReduce:
        TakeReduction(entry);
        break;
      case TapeEntry::Kind::kWait:
        if (entry.stream == step_.compute_stream) TakeWait();
        break;
    }
  }

  const Work& WorkOf(const TapeEntry& entry) const { return step_.works[static_cast<size_t>(entry.work)]; }

  void TakeWork(const Work& work, const TapeEntry& entry) {
    account_.rates.insert(work.rate);
    operations_[work.units] += work.operations;
    // A node that is computed again is another work of the same name.
    const bool again = work.forward && first_.emplace(work.name, entry.work).first->second != entry.work;
    if (work.forward && !again) account_.model_operations += work.operations;
    std::array<Price, kLevels> prices;
    double gap = 0;
    for (size_t level = 0; level < kLevels; ++level) {
      Timeline& line = lines_[level];
      prices[level] = PriceOf(work, machine_, static_cast<Level>(level));
      gap = work.launches * (entry.recorded ? line.overheads.in_graph_us : line.overheads.launch_us) * kMsPerUs;
      line.now += prices[level].ms + gap;
      line.between += gap;
      if (work.rate != Rate::kOffProduct) continue;
      Work padded = work;
      padded.rate = Rate::kProduct;
      account_.off_rows[level] += prices[level].ms;
      account_.off_rows_padded[level] += PriceOf(padded, machine_, static_cast<Level>(level)).ms;
    }
    const bool launch_bound = prices[static_cast<size_t>(Level::kToday)].ms < gap;
    const std::string kernel = absl::StrCat(work.kernel, again ? ", again" : "");
    kinds_.Count(work.op, kernel, work, prices, launch_bound);
    nodes_.Count(work.op, absl::StrCat(kernel, "  ", work.name, "  ", work.shapes), work, prices, launch_bound);
  }

  void TakeReduction(const TapeEntry& entry) {
    if (account_.reductions++ == 0) account_.first_bucket_ms = lines_[static_cast<size_t>(Level::kToday)].now;
    account_.reduced_bytes += ReductionBytes(entry.elements, entry.exact, step_.workers);
    for (size_t level = 0; level < kLevels; ++level) {
      const double ms = ReductionMs(entry.elements, entry.exact, step_.workers, machine_, static_cast<Level>(level));
      Timeline& line = lines_[level];
      line.reduced = std::max(line.reduced, line.now) + ms;
      account_.communication[level] += ms;
    }
  }

  // Every bucket is reduced before the host queues the update.
  void TakeWait() {
    account_.gate_ms = lines_[static_cast<size_t>(Level::kToday)].now;
    for (size_t level = 0; level < kLevels; ++level) {
      Timeline& line = lines_[level];
      const double exposed = std::max(0.0, line.reduced - line.now);
      const double gate = line.overheads.gate_us * kMsPerUs;
      account_.exposed[level] += exposed;
      line.gates += gate;
      line.now += exposed + gate;
    }
  }

  const WrittenStep& step_;
  const Machine& machine_;
  Account account_;
  std::array<Timeline, kLevels> lines_;
  Rows kinds_;
  Rows nodes_;
  std::map<std::string, int> first_;  // work of a node
  std::map<Units, int64_t> operations_;
  int64_t host_calls_ = 0;
};

}  // namespace

Account MakeAccount(const WrittenStep& step, const Machine& machine) { return Accountant(step, machine).Make(); }

}  // namespace lockstep::worker
