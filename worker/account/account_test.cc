// What an account makes of works that are written down by hand.
#include "worker/account/account.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "worker/account/account_text.h"
#include "worker/account/machines.h"

namespace lockstep::worker {
namespace {

using Catch::Matchers::Contains;

constexpr Level kEvery[] = {Level::kPeak, Level::kReachable, Level::kToday};

Machine H100() { return FindMachine("h100").value(); }

// 1024 x 512 x 1024, and a sum that moves as much.
constexpr int64_t kOperations = int64_t{1} << 30;
Work Product() {
  return {.name = "product",
          .op = "MatMul",
          .kernel = "cublaslt:bf16",
          .shapes = "",
          .rate = Rate::kProduct,
          .units = Units::kBf16,
          .operations = kOperations,
          .bytes = 6 << 20,
          .forward = true};
}
Work Sum() {
  return {.name = "sum", .op = "Add", .kernel = "own:add", .shapes = "", .rate = Rate::kElements, .bytes = 6 << 20};
}

WrittenStep StepOf(std::vector<Work> works, std::vector<TapeEntry> entries, int workers = 1) {
  return {.works = std::move(works), .entries = std::move(entries), .workers = workers, .samples = 8};
}

TapeEntry Queued(int work, bool recorded = false) { return {.work = work, .recorded = recorded}; }
TapeEntry ToReduce(int64_t elements, bool exact = true) {
  return {.kind = TapeEntry::Kind::kReduce, .elements = elements, .exact = exact};
}
TapeEntry Gate() { return {.kind = TapeEntry::Kind::kWait}; }

double SumOf(const std::vector<AccountRow>& rows, size_t level) {
  return std::accumulate(rows.begin(), rows.end(), 0.0,
                         [&](double sum, const AccountRow& row) { return sum + row.ms[level]; });
}

TEST_CASE("account: a kernel takes what the slower of its bytes and its operations takes", "[account]") {
  const Price product = PriceOf(Product(), H100(), Level::kPeak);
  const Price sum = PriceOf(Sum(), H100(), Level::kPeak);

  CHECK(product.bound == Bound::kMemory);
  CHECK(product.ms == Approx((6 << 20) / 3.35e12 * 1e3));
  CHECK(sum.ms == Approx(product.ms));
  Work larger = Product();
  larger.operations *= 8;
  const Price units = PriceOf(larger, H100(), Level::kPeak);
  CHECK(units.bound == Bound::kMatrixUnits);
  CHECK(units.ms == Approx(8.0 * kOperations / 989.4e12 * 1e3));
}

TEST_CASE("account: of a large table only the rows that are picked are read", "[account]") {
  const Node node{.name = "pick", .op = OpType::kGather, .inputs = {"table", "at"}, .outputs = {"rows"}};
  const device::KernelRequest request{.node = &node,
                                      .inputs = {{.shape = {50257, 768}}, {.dtype = DType::kI64, .shape = {16}}},
                                      .outputs = {{.shape = {16, 768}}}};

  CHECK(DescribeWork(request, "own:gather", 0).bytes == 2 * 16 * 768 * 4 + 16 * 8);
  // Scratch is written and read.
  CHECK(DescribeWork(request, "own:gather", 100).bytes == 2 * 16 * 768 * 4 + 16 * 8 + 200);
}

TEST_CASE("account: a product is off where the rows of one operand are", "[account]") {
  const Node node{.name = "product", .op = OpType::kMatMul, .inputs = {"a", "b"}, .outputs = {"y"}};
  const auto rate_of = [&](int64_t k, int64_t n, const std::string& implementation) {
    const auto half = [](Shape shape) { return device::Operand{.dtype = DType::kBF16, .shape = std::move(shape)}; };
    const device::KernelRequest request{
        .node = &node, .inputs = {half({64, k}), half({k, n})}, .outputs = {half({64, n})}};
    return DescribeWork(request, implementation, 0).rate;
  };

  CHECK(rate_of(768, 50304, "cublaslt:bf16") == Rate::kProduct);
  CHECK(rate_of(768, 50257, "cublaslt:bf16") == Rate::kOffProduct);
  CHECK(rate_of(50257, 768, "cublaslt:bf16") == Rate::kOffProduct);
  CHECK(rate_of(768, 50257, "cublaslt:f32") == Rate::kFloatProduct);
  CHECK(rate_of(768, 768, "widened:own:tile") == Rate::kOwnProduct);
}

TEST_CASE("account: nothing is faster than the peak, and nothing today faster than what is reachable", "[account]") {
  for (const Machine& machine : Machines()) {
    for (int rate = 0; rate < kRates; ++rate) {
      for (const Units units : {Units::kBf16, Units::kTf32, Units::kF32}) {
        Work work = Product();
        work.rate = static_cast<Rate>(rate);
        work.units = units;
        if (FactsOf(work.rate).today_operations == 0) work.operations = 0;
        CAPTURE(machine.name, FactsOf(work.rate).name);
        const double peak = PriceOf(work, machine, Level::kPeak).ms;
        const double reachable = PriceOf(work, machine, Level::kReachable).ms;
        const double today = PriceOf(work, machine, Level::kToday).ms;
        CHECK(peak > 0);
        CHECK(peak <= reachable);
        CHECK(reachable <= today);
        CHECK(today < 100 * peak);
      }
    }
  }
}

TEST_CASE("account: rows add up to the total", "[account]") {
  const std::vector<TapeEntry> entries = {Queued(0),       Queued(1),       {.kind = TapeEntry::Kind::kReplay},
                                          Queued(0, true), Queued(1, true), ToReduce(1 << 20),
                                          Gate(),          Queued(1)};
  const WrittenStep step = StepOf({Product(), Sum()}, entries, /*workers=*/4);

  const Account account = MakeAccount(step, H100());

  for (size_t level = 0; level < kLevels; ++level) {
    CAPTURE(level);
    CHECK(account.total[level] > 0);
    CHECK(SumOf(account.rows, level) == Approx(account.total[level]));
    CHECK(SumOf(account.nodes, level) < account.total[level] + 1e-12);
  }
  CHECK(account.rows[0].calls + account.rows[1].calls == 5);
  CHECK(account.model_operations == 3 * 2 * kOperations);
  CHECK(account.units == Units::kBf16);
}

TEST_CASE("account: a node that is computed again counts in the step and not in the model", "[account]") {
  const WrittenStep step = StepOf({Product(), Product()}, {Queued(0), Queued(1), Queued(0), Queued(1)});

  const Account account = MakeAccount(step, H100());

  CHECK(account.model_operations == 3 * 2 * kOperations);
  REQUIRE(account.rows.size() >= 2);
  CHECK(account.rows[0].operations + account.rows[1].operations == 4 * kOperations);
  CHECK((account.rows[0].kernel + account.rows[1].kernel).find(", again") != std::string::npos);
}

TEST_CASE("account: what is not recorded costs a launch, what is recorded less, and the host its calls", "[account]") {
  const auto total = [](std::vector<TapeEntry> entries) {
    return MakeAccount(StepOf({Product(), Sum()}, std::move(entries)), H100());
  };
  const Account single = total({Queued(0), Queued(1)});
  const Account recorded = total({{.kind = TapeEntry::Kind::kReplay}, Queued(0, true), Queued(1, true)});
  const Overheads overheads = OverheadsAt(Level::kToday);

  const auto today = static_cast<size_t>(Level::kToday);
  CHECK(single.total[today] - recorded.total[today] ==
        Approx(2 * (overheads.launch_us - overheads.in_graph_us) * 1e-3));
  CHECK(single.host[today] == Approx(2 * overheads.call_us * 1e-3));
  CHECK(recorded.host[today] == Approx(overheads.call_us * 1e-3));
  CHECK(single.total[0] == Approx(recorded.total[0]));
}

TEST_CASE("account: communication is hidden by what is queued behind it, and exposed where nothing is", "[account]") {
  std::vector<TapeEntry> early = {ToReduce(1 << 20)}, late;
  for (int i = 0; i < 1000; ++i) {
    early.push_back(Queued(1, true));
    late.push_back(Queued(1, true));
  }
  late.push_back(ToReduce(1 << 20));
  for (auto* const entries : {&early, &late}) entries->push_back(Gate());

  const Account hidden = MakeAccount(StepOf({Product(), Sum()}, early, 8), H100());
  const Account exposed = MakeAccount(StepOf({Product(), Sum()}, late, 8), H100());

  for (size_t level = 0; level < kLevels; ++level) {
    CHECK(hidden.communication[level] > 0);
    CHECK(hidden.exposed[level] == 0);
    CHECK(exposed.exposed[level] == Approx(exposed.communication[level]));
    CHECK(exposed.total[level] == Approx(hidden.total[level] + exposed.communication[level]));
  }
  CHECK(hidden.first_bucket_ms == 0);
  CHECK(exposed.first_bucket_ms == Approx(exposed.gate_ms));
}

TEST_CASE("account: buckets are reduced one after another, each once it is complete", "[account]") {
  const auto exposed = [](std::vector<TapeEntry> entries) {
    const Account account = MakeAccount(StepOf({Sum()}, std::move(entries), 8), H100());
    return account.exposed[0] / account.communication[0];
  };
  std::vector<TapeEntry> apart = {ToReduce(1 << 20)};
  for (int i = 0; i < 1000; ++i) apart.push_back(Queued(0, true));
  apart.insert(apart.end(), {ToReduce(1 << 20), Gate()});

  CHECK(exposed(apart) == Approx(0.5));
  CHECK(exposed({ToReduce(1 << 20), ToReduce(1 << 20), Gate()}) == Approx(1));
}

TEST_CASE("account: more workers never have less communication, and one has none", "[account]") {
  CHECK(ReductionBytes(1200, true, 4) == 1200 * (8 + 4) / 4 * 3);
  CHECK(ReductionBytes(1200, false, 4) == 1200 * 2 * 4 / 4 * 3);
  for (const Machine& machine : Machines()) {
    for (const Level level : kEvery) {
      for (const bool exact : {false, true}) {
        CHECK(ReductionMs(1 << 22, exact, 1, machine, level) == 0);
        for (int workers = 1; workers < 40; ++workers) {
          CAPTURE(machine.name, exact, workers);
          CHECK(ReductionBytes(1 << 22, exact, workers) <= ReductionBytes(1 << 22, exact, workers + 1));
          CHECK(ReductionMs(1 << 22, exact, workers, machine, level) <=
                ReductionMs(1 << 22, exact, workers + 1, machine, level));
        }
      }
    }
  }
}

TEST_CASE("account: a step waits for a host and for inputs that take longer than its kernels", "[account]") {
  WrittenStep step = StepOf({Sum()}, {Queued(0, true)});
  step.input_bytes = 64'000'000'000;  // a second of the bus

  const Account account = MakeAccount(step, H100());

  CHECK(account.total[0] == Approx(1000));
  CHECK(SumOf(account.rows, 0) == Approx(1000));
}

TEST_CASE("account: what goes on in other streams is no part of the compute stream", "[account]") {
  TapeEntry beside = Queued(1);
  beside.stream = 3;
  TapeEntry wait = Gate();
  wait.stream = 3;

  const Account account = MakeAccount(StepOf({Product(), Sum()}, {Queued(0), beside, wait}), H100());

  const Account without = MakeAccount(StepOf({Product(), Sum()}, {Queued(0)}), H100());
  CHECK(account.total == without.total);
  CHECK(account.host == without.host);
  CHECK(account.rows.size() == without.rows.size());
}

TEST_CASE("account: what rows off 16 bytes cost is told beside what padded rows would", "[account]") {
  Work off = Product();
  off.rate = Rate::kOffProduct;
  off.operations *= 64;

  const Account account = MakeAccount(StepOf({off}, {Queued(0)}), H100());

  const auto today = static_cast<size_t>(Level::kToday);
  off.rate = Rate::kProduct;
  CHECK(account.off_rows_padded[today] == Approx(PriceOf(off, H100(), Level::kToday).ms));
  CHECK(account.off_rows[today] > 2 * account.off_rows_padded[today]);
  CHECK(account.off_rows[0] == Approx(account.off_rows_padded[0]));
}

TEST_CASE("account: every assumption that entered is told, and no other", "[account]") {
  const WrittenStep step = StepOf({Product(), Sum()}, {Queued(0), Queued(1)});

  const std::string text = AccountText(step, H100(), MakeAccount(step, H100()));

  CHECK_THAT(text, Contains("  products: ") && Contains("sums, Relu, copies: ") && Contains("H100 SXM") &&
                       Contains("data sheet") && Contains("(assumed)") && Contains("total"));
  CHECK_THAT(text, !Contains("batch normalisation") && !Contains("NCCL"));
  const WrittenStep shared = StepOf({Product()}, {Queued(0), ToReduce(1 << 20), Gate()}, 8);
  CHECK_THAT(AccountText(shared, H100(), MakeAccount(shared, H100())), Contains("NCCL") && Contains("1 bucket,"));
}

TEST_CASE("account: a GPU of another name is refused with those that there are", "[account]") {
  const absl::Status status = FindMachine("a100").status();

  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Contains("'a100'") && Contains("h100, h200, b200"));
  for (const Machine& machine : Machines()) CHECK(FindMachine(machine.name)->title == std::string(machine.title));
}

}  // namespace
}  // namespace lockstep::worker
