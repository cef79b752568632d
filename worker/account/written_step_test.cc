// A step that is written down, against counts made by hand.
#include "worker/account/written_step.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/graph/build/build_metagraph.h"
#include "common/job/graph_request.h"
#include "worker/account/account.h"
#include "worker/account/account_text.h"

namespace lockstep::worker {
namespace {

using Catch::Matchers::Contains;

struct Case {
  std::string model;  // the section's text
  TensorSpec inputs;
  TensorSpec labels;
  std::string data = "{inputs: x.npy, labels: y.npy}";
  std::string train = "global_batch_size: 8, logical_shards: 1, optimizer: {name: adamw, lr: 0.01}";
};

absl::StatusOr<WrittenStep> WriteCase(const Case& of, int workers = 1) {
  const std::string yaml = absl::StrCat("name: account\nmodel: ", of.model, "\ndata: {train: ", of.data,
                                        "}\ntrain: {duration: 9steps, ", of.train, "}\n");
  const JobSpec job = ParseJob(yaml, "/job.yaml").value();
  const MetaGraph metagraph =
      BuildMetaGraph(MakeMetaGraphRequest(job, nullptr, {&of.inputs, 1}, of.labels, 64).value()).value();
  return WriteStep(metagraph, job, workers);
}

// 32 features, 16 values between, 10 classes.
Case TwoProducts() {
  return {.model = "{builtin: {name: mlp, classes: 10, hidden: [16]}, loss: softmax_cross_entropy}",
          .inputs = {"inputs", DType::kF32, {32}},
          .labels = {"labels", DType::kI64, {}}};
}

Case Gpt(const std::string& train, int width = 32, int vocabulary = 96) {
  return {.model = absl::StrCat("{builtin: {name: gpt2, layers: 2, heads: 2, width: ", width,
                                ", context: 64, vocabulary: ", vocabulary, "}}"),
          .inputs = {"inputs", DType::kI64, {64}},
          .labels = {"labels", DType::kI64, {64}},
          .data = "{tokens: t.bin, sequence_length: 64}",
          .train = absl::StrCat("global_batch_size: 8, optimizer: {name: adamw, lr: 0.01}, ", train)};
}

// So wide that gradients take several buckets.
constexpr int kWide = 256;

// Works that were queued, by op, as often as they were.
std::map<std::string, std::vector<Work>> ByOp(const WrittenStep& step) {
  std::map<std::string, std::vector<Work>> works;
  for (const TapeEntry& entry : step.entries) {
    if (entry.kind != TapeEntry::Kind::kWork || entry.stream != step.compute_stream) continue;
    const Work& work = step.works[static_cast<size_t>(entry.work)];
    works[work.op].push_back(work);
  }
  return works;
}

int64_t OperationsOf(const WrittenStep& step) {
  int64_t operations = 0;
  for (const auto& [op, works] : ByOp(step)) {
    for (const Work& work : works) operations += work.operations;
  }
  return operations;
}

int64_t Entries(const WrittenStep& step, TapeEntry::Kind kind) {
  return std::count_if(step.entries.begin(), step.entries.end(), [&](const auto& entry) { return entry.kind == kind; });
}

TEST_CASE("written step: products, their gradients and the update are what they are by hand", "[account]") {
  const WrittenStep step = WriteCase(TwoProducts()).value();

  auto works = ByOp(step);
  constexpr int64_t kBatch = 8, kIn = 32, kMiddle = 16, kOut = 10, kFloat = 4;
  std::vector<int64_t> operations, bytes;
  for (const Work& product : works["Gemm"]) {
    operations.push_back(product.operations);
    bytes.push_back(product.bytes);
    CHECK_THAT(product.kernel, Contains("cublaslt:f32"));
    CHECK(product.launches == 1);
  }
  // Forward both, with a bias; the gradient of no data, of what is between, and of both matrices.
  constexpr int64_t kFirst = kBatch * kIn * kMiddle, kSecond = kBatch * kMiddle * kOut;
  const auto sides = [](int64_t a, int64_t b, int64_t c) { return (a + b + c) * kFloat; };
  std::sort(operations.begin(), operations.end());
  CHECK(operations == std::vector<int64_t>{2 * kSecond, 2 * kSecond, 2 * kSecond, 2 * kFirst, 2 * kFirst});
  std::sort(bytes.begin(), bytes.end());
  constexpr int64_t kBetween = kBatch * kMiddle, kScores = kBatch * kOut, kTop = kMiddle * kOut;
  CHECK(bytes == std::vector<int64_t>{sides(kScores, kTop, kBetween), sides(kScores, kBetween, kTop),
                                      sides(kBetween, kTop, kScores) + kOut * kFloat,
                                      sides(kBetween, kBatch * kIn, kIn * kMiddle),
                                      sides(kBatch * kIn, kIn * kMiddle, kBetween) + kMiddle * kFloat});
  const int64_t parameters = kIn * kMiddle + kMiddle + kTop + kOut;
  CHECK(step.parameters == parameters);
  // AdamW reads and writes a value and two slots, and reads a gradient.
  REQUIRE(works["(update)"].size() == 1);
  CHECK(works["(update)"][0].bytes == parameters * 7 * kFloat);
  CHECK(works["(update)"][0].launches == 1);
  CHECK(step.input_bytes == kBatch * (kIn * kFloat + 8));
  CHECK(step.samples == kBatch);
  CHECK(step.positions_per_sample == 0);
}

TEST_CASE("written step: an update by norms reads its parameters twice", "[account]") {
  const auto update_of = [](const char* optimizer) {
    Case of = TwoProducts();
    of.train = absl::StrCat("global_batch_size: 8, logical_shards: 1, optimizer: {lr: 0.01, name: ", optimizer, "}");
    return ByOp(WriteCase(of).value())["(update)"].at(0);
  };
  constexpr int64_t kMatrices = 32 * 16 + 16 * 10, kVectors = 16 + 10;

  // As AdamW, and value and slots once more. Sums, the rates, and the step.
  CHECK(update_of("lamb").bytes == (kMatrices + kVectors) * 10 * 4);
  CHECK(update_of("lamb").launches == 3);
  // Rows, columns and the mean of rows come before.
  CHECK(update_of("adafactor").bytes == (kMatrices * 7 + kVectors * 8) * 4);
  CHECK(update_of("adafactor").launches == 6);
}

TEST_CASE("written step: a convolution's operations and layouts are those of the engine", "[account]") {
  Case of{.model = "{builtin: {name: lenet, classes: 10}, loss: softmax_cross_entropy}",
          .inputs = {"inputs", DType::kF32, {1, 28, 28}},
          .labels = {"labels", DType::kI64, {}}};
  const WrittenStep floats = WriteCase(of).value();
  of.train += ", precision: bf16";
  const WrittenStep halves = WriteCase(of).value();

  const std::vector<Work> convolutions = ByOp(floats)["Conv"];
  REQUIRE(convolutions.size() == 2);
  // 5 x 5 windows: padded from 1 to 6 channels, then on 14 x 14 from 6 to 16.
  CHECK(convolutions[0].operations == int64_t{2} * 8 * 6 * 28 * 28 * 25);
  CHECK(convolutions[1].operations == int64_t{2} * 8 * 16 * 10 * 10 * 25 * 6);
  CHECK(convolutions[0].kernel == "cudnn:f32 + Relu");
  CHECK(ByOp(floats).count("(layout)") == 0);
  CHECK_THAT(ByOp(halves)["Conv"][1].kernel, Contains("cudnn:bf16-nhwc"));
  CHECK(ByOp(halves).count("(layout)") == 1);
  CHECK(ByOp(halves).count("Cast") == 1);
}

TEST_CASE("written step: GPT-2 has six operations a parameter and token, and those of attention", "[account]") {
  const WrittenStep step = WriteCase(Gpt("logical_shards: 1")).value();

  constexpr int64_t kLayers = 2, kWidth = 32, kContext = 64, kVocabulary = 96, kTokens = 8 * kContext;
  // Four times the width squared for attention, eight for the two products behind it; the head has the table.
  const int64_t multiplied = kLayers * 12 * kWidth * kWidth + kVocabulary * kWidth;
  // A causal mask leaves n (n + 1) / 2 pairs, each of two products forward and five backward.
  const int64_t pairs = kContext * (kContext + 1) / 2;
  const int64_t attention = kLayers * 8 * pairs * 2 * kWidth * (2 + 5);
  CHECK(OperationsOf(step) == 6 * multiplied * kTokens + attention);
  CHECK(step.positions_per_sample == kContext);
  const Account account = MakeAccount(step, FindMachine("h100").value());
  CHECK(account.model_operations == 6 * multiplied * kTokens + kLayers * 8 * pairs * 2 * kWidth * 2 * 3);
  int64_t norms = 0;
  for (const Work& work : ByOp(step)["LayerNormalization"]) norms = std::max(norms, work.bytes);
  // Values in and out, gain and bias, mean and deviation of each row.
  CHECK(norms == (2 * kTokens * kWidth + 2 * kWidth + 2 * kTokens) * 4);
  // The table of tokens is smaller than what is picked from it.
  REQUIRE(ByOp(step)["Gather"].size() == 1);
  CHECK(ByOp(step)["Gather"][0].bytes == (kVocabulary * kWidth + kTokens * kWidth) * 4 + kTokens * 8);
}

TEST_CASE("written step: what is computed again stands in the step", "[account]") {
  const WrittenStep plain = WriteCase(Gpt("logical_shards: 1")).value();
  const WrittenStep again = WriteCase(Gpt("logical_shards: 1, recompute: blocks")).value();

  CHECK(OperationsOf(again) > OperationsOf(plain));
  const auto kernels = [](const WrittenStep& step) {
    std::set<std::string> names;
    const Account account = MakeAccount(step, FindMachine("h100").value());
    for (const AccountRow& row : account.rows) names.insert(absl::StrCat(row.op, " ", row.kernel));
    return names;
  };
  CHECK(kernels(again).count("Gemm cublaslt:f32, again") == 1);
  CHECK(kernels(plain).count("Gemm cublaslt:f32, again") == 0);
  const WrittenStep passes = WriteCase(Gpt("logical_shards: 1, micro_batch: 1", kWide)).value();
  for (const std::string& kernel : kernels(passes)) {
    if (absl::StartsWith(kernel, "Add ")) CHECK_THAT(kernel, !Contains("again"));
  }
  const Machine machine = FindMachine("h100").value();
  CHECK(MakeAccount(again, machine).model_operations == MakeAccount(plain, machine).model_operations);
}

TEST_CASE("written step: passes are replayed, a segment for each bucket, and written down alike each time",
          "[account]") {
  const WrittenStep step = WriteCase(Gpt("logical_shards: 4, micro_batch: 1", kWide)).value();

  const int64_t passes = 8;
  CHECK(step.buckets > 3);
  CHECK(Entries(step, TapeEntry::Kind::kReplay) % passes == 0);
  CHECK(Entries(step, TapeEntry::Kind::kReplay) >= passes);
  CHECK(Entries(step, TapeEntry::Kind::kReplay) <= passes * (step.buckets + 1));
  for (const TapeEntry& entry : step.entries) {
    if (entry.work < 0 || step.works[static_cast<size_t>(entry.work)].op != "Gemm") continue;
    CHECK(entry.recorded);
  }
  CHECK(ByOp(step)["(update)"].size() == 1);
  CHECK(ByOp(step)["(quantise)"].size() == static_cast<size_t>(4 * step.buckets));
  CHECK(ByOp(step)["(quantise)"][0].launches == 2);
  CHECK(ByOp(step)["(convert sums)"].size() == static_cast<size_t>(step.buckets));
  CHECK(ByOp(step)["Add"].size() > static_cast<size_t>(4 * step.buckets));  // sums over passes
  const WrittenStep once_more = WriteCase(Gpt("logical_shards: 4, micro_batch: 1", kWide)).value();
  const Machine machine = FindMachine("b200").value();
  const std::string text = AccountText(step, machine, MakeAccount(step, machine));
  CHECK(AccountText(once_more, machine, MakeAccount(once_more, machine)) == text);
}

TEST_CASE("written step: workers share the shards and reduce every bucket", "[account]") {
  const Machine machine = FindMachine("h100").value();
  const WrittenStep alone = WriteCase(Gpt("logical_shards: 4", kWide)).value();
  double communication = 0;
  for (const int workers : {1, 2, 3, 4}) {
    CAPTURE(workers);
    const WrittenStep step = WriteCase(Gpt("logical_shards: 4", kWide), workers).value();
    const Account account = MakeAccount(step, machine);

    int64_t elements = 0;
    for (const TapeEntry& entry : step.entries) elements += entry.elements;
    CHECK(account.reductions == (workers == 1 ? 0 : step.buckets));
    CHECK((workers == 1 ? 0 : step.parameters) <= elements);
    // The first worker has the most: of 4 shards among 3 two.
    CHECK(OperationsOf(step) == OperationsOf(alone) / 4 * (workers == 1 ? 4 : workers == 4 ? 1 : 2));
    CHECK(account.communication[0] >= communication);
    communication = account.communication[0];
  }
  CHECK(communication > 0);
  const absl::Status more = WriteCase(Gpt("logical_shards: 4"), 5).status();
  CHECK(absl::IsInvalidArgument(more));
  CHECK_THAT(std::string(more.message()), Contains("5 workers share 4 logical shards"));
}

TEST_CASE("written step: with bf16 buckets are complete during backward, as with float32", "[account]") {
  const Machine machine = FindMachine("h100").value();
  for (const std::string precision : {"fp32", "bf16"}) {
    CAPTURE(precision);
    const WrittenStep step = WriteCase(Gpt("logical_shards: 4, precision: " + precision, kWide), 4).value();
    const Account account = MakeAccount(step, machine);

    CHECK(step.buckets > 3);
    CHECK(account.first_bucket_ms < 0.7 * account.gate_ms);
  }
}

TEST_CASE("written step: with bf16 products of an odd number of classes have rows that begin on 16 bytes",
          "[account]") {
  const auto off_rows = [](int vocabulary) {
    const Case of = Gpt("logical_shards: 1, precision: bf16", 32, vocabulary);
    return MakeAccount(WriteCase(of).value(), FindMachine("h100").value()).off_rows[0];
  };

  CHECK(off_rows(1031) == 0);
  CHECK(off_rows(1023) > 0);  // too few
}

TEST_CASE("written step: of images that are mixed the second labels and the shares are inputs", "[account]") {
  Case of{.model = "{builtin: {name: lenet, classes: 10}, loss: softmax_cross_entropy}",
          .inputs = {"inputs", DType::kF32, {1, 28, 28}},
          .labels = {"labels", DType::kI64, {}}};
  const WrittenStep plain = WriteCase(of).value();
  of.data = "{inputs: x.npy, labels: y.npy}, augment: {mixup: 0.2}";
  const WrittenStep mixing = WriteCase(of).value();

  CHECK(mixing.input_bytes == plain.input_bytes + 8 * (8 + 4));
  CHECK(ByOp(mixing)["SoftmaxCrossEntropyLoss"].size() == 2);
  CHECK(ByOp(plain)["SoftmaxCrossEntropyLoss"].size() == 1);
}

TEST_CASE("written step: clipping, averages, statistics and native sums are queued as they are", "[account]") {
  Case of{.model =
              "{builtin: {name: mlp, classes: 10, hidden: [8], batch_norm: true, dropout: 0.1}, "
              "loss: softmax_cross_entropy}",
          .inputs = {"inputs", DType::kF32, {32}},
          .labels = {"labels", DType::kI64, {}},
          .train =
              "global_batch_size: 8, clip_norm: 1.0, ema: {decay: 0.9}, reduction: fast, logical_shards: 2, "
              "optimizer: {name: sgd, lr: 0.01}"};
  const WrittenStep step = WriteCase(of, 2).value();

  auto works = ByOp(step);
  CHECK(works["(squares)"].size() == static_cast<size_t>(step.buckets));
  CHECK(works["(clip)"].size() == 1);
  CHECK(works["(statistics)"].size() == 1);
  CHECK(works["(add gradients)"].size() == static_cast<size_t>(step.buckets));
  CHECK(works.count("(quantise)") == 0);
  // A value and its average both ways, and a gradient.
  CHECK(works["(update)"][0].bytes == step.parameters * 5 * 4);
}

}  // namespace
}  // namespace lockstep::worker
